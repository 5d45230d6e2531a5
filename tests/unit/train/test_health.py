from __future__ import annotations

import math

import pytest

from postgrad.core.errors import DeadChannel, TrainingFault
from postgrad.train.health import ChannelHealth


def health(patience: int = 3) -> ChannelHealth:
    return ChannelHealth({"a": "advice for a", "b": "advice for b"}, patience=patience)


def observe(watch: ChannelHealth, count: int, norm: float) -> None:
    """Channel a is always well; b is as told."""
    watch.observe({"a": 1, "b": count}, {"a": 1.0, "b": norm})


def test_no_items_in_the_first_steps_may_be_chance():
    """Nothing failed at steps 0 and 1, so nothing was hinted; step 2 brings items, which is the first contact."""
    watch = health(patience=3)
    for _ in range(2):
        assert not watch.awaits({"a": 0, "b": 0})
        observe(watch, 0, 0.0)
    assert watch.awaits({"a": 1, "b": 1})
    observe(watch, 1, 1.0)
    assert not watch.awaits({"a": 1, "b": 1})
    watch.finish()


def test_no_items_for_the_patience_is_death():
    watch = health(patience=2)
    observe(watch, 0, 0.0)
    with pytest.raises(
        DeadChannel, match=r"'b': .*2 steps in a row: no items in 2; feed it, or set its weight to 0"
    ) as c:
        observe(watch, 0, 0.0)
    assert c.value.channel == "b"
    assert c.value.exit_code == 2


def test_never_an_item_in_a_short_run_is_death():
    watch = health(patience=8)
    observe(watch, 0, 0.0)
    with pytest.raises(DeadChannel, match="'b': no gradient in any of the 1 steps: no items in 1"):
        watch.finish()


def test_patience_counts_consecutive_idle_steps_of_both_kinds():
    """Idle at 0 and 1, alive at 2, idle at 3, 4, 5: the third in a row stops it and the advice is told."""
    watch = health(patience=3)
    for count, norm in [(2, 0.0), (2, 0.0), (2, 1.0), (2, 0.0), (0, 0.0)]:
        observe(watch, count, norm)
    with pytest.raises(DeadChannel, match="3 steps in a row: no items in 1 and zero gradient in 2; advice for b"):
        observe(watch, 2, 0.0)


def test_steps_without_items_give_no_advice_about_gradients():
    watch = health(patience=2)
    observe(watch, 2, 1.0)
    observe(watch, 0, 0.0)
    with pytest.raises(DeadChannel, match=r"no items in 2; feed it, or set its weight to 0$"):
        observe(watch, 0, 0.0)


def test_a_run_shorter_than_the_patience_does_not_end_in_silence():
    watch = health(patience=8)
    for _ in range(2):
        observe(watch, 1, 0.0)
    with pytest.raises(DeadChannel, match="'b': no gradient in any of the 2 steps: zero gradient in 2; advice for b"):
        watch.finish()


def test_one_living_step_is_enough_to_finish():
    watch = health()
    observe(watch, 1, 0.0)
    observe(watch, 1, 1e-30)
    watch.finish()


def test_a_gradient_that_is_no_number_is_a_fault():
    with pytest.raises(TrainingFault, match="gradient of channel 'b' is nan"):
        observe(health(), 1, math.nan)


def test_a_gradient_must_reach_a_weight():
    with pytest.raises(DeadChannel, match="'b': its gradient reaches no trainable weight"):
        health().require_reach({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.0})
    health().require_reach({"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 0.0})


def test_state_continues_the_count():
    first = health(patience=3)
    observe(first, 1, 0.0)
    observe(first, 1, 0.0)
    second = health(patience=3)
    second.restore(first.state())
    with pytest.raises(DeadChannel):
        observe(second, 1, 0.0)
