from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from postgrad.core.annotation import Unit
from postgrad.core.errors import TrainingFault
from postgrad.run.rundir import RunDir
from postgrad.train.config import SpikesConfig
from postgrad.train.loop import train
from postgrad.train.spikes import Spikes
from unit.train.tiny_training import MemoryRun, StepSource, TinyPolicy, config, mixed_units

BAD = 8
"""The batch whose weights are a million times too large."""


def spikes(**fields: object) -> Spikes:
    return Spikes(SpikesConfig.model_validate({"threshold": 5, "window": 5, "watch": "loss"} | fields))


def fed(watch: Spikes, *losses: float) -> list[bool]:
    return [watch.reason({"loss": loss, "gradient_norm": 1.0}) is not None for loss in losses]


@pytest.mark.parametrize("setting", [{"window": 8}, {"watch": "loss"}, {"before": 0}, {"limit": 5}])
def test_what_would_do_nothing_without_a_threshold_is_refused(setting: dict[str, object]):
    with pytest.raises(ValueError, match="does nothing without a threshold"):
        SpikesConfig.model_validate(setting)
    assert SpikesConfig.model_validate({"threshold": 6, **setting}).threshold == 6
    assert SpikesConfig.model_validate(SpikesConfig().resolved()) == SpikesConfig()  # as a stored run has it


def test_the_threshold_by_hand():
    """1 2 3 4 5: median 3, deviations 2 1 0 1 2 with median 1, so a spike is above 3 + 5 · 1.4826 = 10.413."""
    assert fed(spikes(), 1, 2, 3, 4, 5, 10.41) == [False] * 6
    assert fed(spikes(), 1, 2, 3, 4, 5, 10.42) == [False] * 5 + [True]


def test_equal_losses_have_a_spread_of_a_hundredth():
    """Median 2, no deviation: a spike is above 2 + 5 · 0.02 = 2.1. Falling is none, however far."""
    assert fed(spikes(), 2, 2, 2, 2, 2, 2.099, -100) == [False] * 7
    assert fed(spikes(), 2, 2, 2, 2, 2, 2.101)[-1]


def test_nothing_is_judged_before_the_window_is_full_but_what_is_not_finite():
    assert fed(spikes(), 1, 2, 3, 1e9) == [False] * 4
    assert fed(spikes(), math.nan) == [True]


def test_a_spike_is_not_remembered():
    watch = spikes()
    fed(watch, 1, 2, 3, 4, 5, 1e9)
    assert watch.state()["seen"]["loss"] == [1, 2, 3, 4, 5]


def test_which_batches_are_left_out():
    """before = 1: 8 and 7. The next spike at 9 leaves 9 out and, 8 and 7 being gone, 6; none before the checkpoint."""
    watch = spikes()
    watch.leave_out(8, first=4, why="")
    assert [watch.next_batch(b) for b in (6, 7, 8, 9)] == [6, 9, 9, 9]
    watch.leave_out(9, first=4, why="")
    assert watch.next_batch(6) == 10
    late = spikes(before=5)
    late.leave_out(8, first=7, why="")
    assert [late.next_batch(b) for b in (6, 7, 8)] == [6, 9, 9]


def units(step: int) -> list[Unit]:
    return mixed_units(step, kinds=("cross_entropy",))


def with_a_bad_batch(step: int) -> list[Unit]:
    """Batch `BAD` teaches with the weights of its items a million times too large."""
    scale = 1e6 if step == BAD else 1.0
    return [replace(u, items=tuple(replace(i, weight=i.weight * scale) for i in u.items)) for u in units(step)]


def settings(steps: int = 10, **fields: object):
    watch = {"threshold": 20, "window": 4, "before": 0} | fields
    optim = {"schedule": "constant"}
    return config(steps=steps, save_every=3, channels={"cross_entropy": {}}, spikes=watch, optim=optim)


def test_a_run_with_a_spike_equals_a_run_without_that_batch_bit_for_bit(tmp_path: Path):
    """Back to step 6, then batches 6 and 7 again, and 9 and 10 in place of 8 and 9. Dropout is on: the random states
    went back too. The plain run gets the same batches from the start.
    """
    spiky, plain = TinyPolicy(dropout=0.1), TinyPolicy(dropout=0.1)
    run = MemoryRun(tmp_path / "spiky")
    train(spiky, StepSource(with_a_bad_batch), settings(), run)
    train(plain, StepSource(lambda s: units(s if s < BAD else s + 1)), settings(), MemoryRun(tmp_path / "plain"))
    assert all(torch.equal(spiky.weights()[name], weight) for name, weight in plain.weights().items())
    assert [line["step"] for line in run.lines] == list(range(10))
    assert [line["rollbacks"] for line in run.lines] == [0] * 6 + [1] * 4


def test_the_batches_before_are_left_out_too(tmp_path: Path):
    """before = 1: batches 7 and 8; the last of ten steps takes batch 11."""
    asked: list[int] = []

    def noted(step: int) -> list[Unit]:
        asked.append(step)
        return with_a_bad_batch(step)

    train(TinyPolicy(), StepSource(noted), settings(before=1), MemoryRun(tmp_path))
    assert asked == [*range(9), 6, 9, 10, 11]


def test_resumed_after_a_spike_equals_uninterrupted(tmp_path: Path):
    """Killed at step 9, after the rollback; the last checkpoint is of step 9 or of step 6: both must do."""

    class Stop(Exception):
        pass

    stopped: list[int] = []

    def stopping(step: int) -> list[Unit]:
        if step == 10 and not stopped:
            stopped.append(step)
            raise Stop
        return with_a_bad_batch(step)

    whole, resumed = TinyPolicy(dropout=0.1), TinyPolicy(dropout=0.1)
    train(whole, StepSource(with_a_bad_batch), settings(), RunDir(tmp_path / "whole"))
    with pytest.raises(Stop):
        train(TinyPolicy(dropout=0.1), StepSource(stopping), settings(), RunDir(tmp_path / "broken"))
    train(resumed, StepSource(stopping), settings(), RunDir(tmp_path / "broken"))
    assert all(torch.equal(whole.weights()[name], weight) for name, weight in resumed.weights().items())
    lines = [RunDir(tmp_path / name).metrics() for name in ("whole", "broken")]
    assert [line["loss"] for line in lines[0]] == [line["loss"] for line in lines[1]]


def test_too_many_spikes_stop_the_run(tmp_path: Path):
    """From batch 8 on all are bad: with before 0 and limit 2 the third one stops it, and no weight has moved on."""
    source = StepSource(lambda step: with_a_bad_batch(min(step, BAD)))
    with pytest.raises(TrainingFault, match=r"batch 10: .*went back 2 times, which is loop.spikes.limit"):
        train(TinyPolicy(), source, settings(limit=2), MemoryRun(tmp_path))


def test_a_loss_that_is_no_number_is_gone_back_from_as_well(tmp_path: Path):
    def broken(step: int) -> list[Unit]:
        weight = math.nan if step == BAD else 1.0
        return [replace(u, items=tuple(replace(i, weight=weight) for i in u.items)) for u in units(step)]

    policy, run = TinyPolicy(), MemoryRun(tmp_path)
    train(policy, StepSource(broken), settings(), run)
    assert run.lines[-1]["rollbacks"] == 1
    assert all(torch.isfinite(weight).all() for weight in policy.weights().values())
