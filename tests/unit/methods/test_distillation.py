"""Rows for distillation: given actions, logged teachers, and the student's own completions in some places."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem, LoggedTeacher, Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.methods.alignment import logged_over, logged_teacher, reads_alike
from postgrad.methods.distillation import GKD, Distillation
from postgrad.models.policy import Policy, load_policy
from postgrad.models.sampler import generate
from postgrad.objectives.divergence import Divergence
from postgrad.objectives.teaching import Teacher
from postgrad.signals.rows.records import write_records
from recipes.taught import rows


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write_records(tmp_path / "records.jsonl", rows())
    return tmp_path / "records.jsonl"


def actions(units: list[Unit]) -> list[tuple[int, ...]]:
    return [tuple(u.branches[0][p] for p in u.items[0].student.positions) for u in units]


def test_the_teacher_reads_the_very_tokens_of_the_student(policy: Policy, records: Path):
    units = Distillation(records=records, batch_size=3, alpha=0.7).source(policy, seed=0).units(0)
    for unit in units:
        divergence, imitation = unit.items
        assert isinstance(divergence, DivergenceItem)
        assert divergence.teacher == divergence.student
        assert isinstance(imitation, CrossEntropyItem)
        assert imitation.span == divergence.student
    assert Distillation(records=records, alpha=0.7).weights() == {
        "divergence": 0.7,
        "cross_entropy": pytest.approx(0.3),
    }
    assert Distillation(records=records).weights() == {"divergence": 1.0}


def test_logged_teachers_come_with_their_rows_alone(policy: Policy, records: Path):
    units = Distillation(records=records, batch_size=1, targets="logged").source(policy, seed=0).units(0)
    (item,) = units[0].items
    assert isinstance(item, DivergenceItem)
    assert isinstance(item.teacher, LoggedTeacher)
    assert item.teacher.ids_NK[:, 0].tolist() == list(actions(list(units))[0])


@pytest.mark.parametrize("change", ["other token", "one too few", "none"])
def test_targets_over_other_tokens_are_refused(policy: Policy, tmp_path: Path, change: str):
    row = rows()[2]
    assert row.soft is not None
    tokens = {"other token": (9, *row.soft.tokens[1:]), "one too few": row.soft.tokens[1:], "none": ()}[change]
    write_records(
        tmp_path / "r.jsonl", [msgspec.structs.replace(row, soft=msgspec.structs.replace(row.soft, tokens=tokens))]
    )
    with pytest.raises(DataError, match="over other tokens than the student's"):
        Distillation(records=tmp_path / "r.jsonl", targets="logged").source(policy, seed=0)


def test_targets_may_leave_the_stop_token_out(policy: Policy):
    soft = rows()[2].soft
    assert soft is not None
    action = policy.renderer.action(Message.of("assistant", "b"))
    assert logged_over(policy.renderer, soft, action) == 2
    shorter = msgspec.structs.replace(soft, tokens=soft.tokens[:1])
    assert logged_over(policy.renderer, shorter, action) == 1


def test_targets_of_different_length_are_padded():
    soft = rows()[2].soft
    assert soft is not None
    uneven = msgspec.structs.replace(soft, ids=((5, 6), (7,)), logprobs=((-1.0, -2.0), (-0.5,)))
    teacher = logged_teacher(uneven)
    assert teacher.ids_NK.tolist() == [[5, 6], [7, -1]]
    assert np.isneginf(teacher.logprobs_NK[1, 1])


def test_on_policy_places_hold_what_the_student_samples(policy: Policy, records: Path):
    """on_policy 1: every action is the sample that `generate` gives for that prompt; 0: the row's; a step repeats."""
    own = GKD(records=records, batch_size=3, on_policy=1.0, max_new_tokens=5).source(policy, seed=2)
    units = list(own.units(4))
    prompts = [u.branches[0][: u.items[0].student.positions[0]] for u in units]
    sampled = generate(policy, prompts, temperature=1.0, max_new_tokens=5, seed=2 * 1_000_003 + 4)
    assert actions(units) == [sample.tokens for (sample,) in sampled]
    assert actions(list(own.units(4))) == actions(units)
    given = GKD(records=records, batch_size=3, on_policy=0.0).source(policy, seed=2)
    rows_ = Distillation(records=records, batch_size=3).source(policy, seed=2)
    assert actions(list(given.units(4))) == actions(list(rows_.units(4)))


def test_the_divergence_counts_the_tokens_that_were_sampled(policy: Policy, records: Path):
    """The denominator is what is trained on, own completions of up to 5 tokens here, and not the rows' actions."""
    channel = Divergence(teacher=Teacher("frozen"))
    own = GKD(records=records, batch_size=3, on_policy=1.0, max_new_tokens=5).source(policy, seed=2).units(4)
    rows_ = Distillation(records=records, batch_size=3).source(policy, seed=2).units(4)
    counts = [channel.count([u.items[0] for u in units]) for units in (own, rows_)]
    assert counts == [sum(len(action) for action in actions(list(units))) for units in (own, rows_)]
    assert counts[0] <= 15
    assert counts[0] != counts[1]


def test_the_share_of_own_completions_is_the_one_asked_for(policy: Policy, records: Path):
    source = GKD(records=records, on_policy=0.3).source(policy, seed=0)
    drawn = np.concatenate([source._draws(step, 50) for step in range(40)])
    assert np.mean(drawn < 0.3) == pytest.approx(0.3, abs=0.03)


def test_own_completions_are_no_examples_to_imitate(policy: Policy, records: Path):
    mixed = GKD(records=records, batch_size=2, on_policy=1.0, alpha=0.5, max_new_tokens=3).source(policy, seed=0)
    assert all(len(unit.items) == 1 for unit in mixed.units(0))


def test_a_teacher_that_is_the_student_is_refused(records: Path):
    with pytest.raises(ConfigError, match="is the student"):
        Distillation(records=records).check({"divergence": {}})
    with pytest.raises(ConfigError, match="support: top_k"):
        Distillation(records=records, targets="logged").check({"divergence": {}})
    model = {"divergence": {"teacher": {"kind": "model", "model": "x"}}}
    Distillation(records=records).check(model)
    with pytest.raises(ConfigError, match="at on_policy 0"):
        GKD(records=records, on_policy=0.0, max_new_tokens=9).check(model)


def test_an_action_that_reads_otherwise_is_noticed(policy: Policy):
    """The second byte of é after its first and after an a: a letter in one context, a lone byte in the other."""
    first, second = policy.tokenizer.encode("é", add_special_tokens=False)
    (a,) = policy.tokenizer.encode("a", add_special_tokens=False)
    assert not reads_alike(policy.renderer, [a, first], [first, a], [second])
    assert reads_alike(policy.renderer, [a, a], [first, a], [a])


def test_rows_that_are_too_long_are_dropped_and_counted(policy: Policy, records: Path):
    with pytest.raises(DataError, match="longer than 3 tokens"):
        Distillation(records=records, max_length=3).source(policy, seed=0)


def test_records_of_foreign_kinds_do_not_end_a_run(policy: Policy, tmp_path: Path):
    ask = (Message.of("user", "a"),)
    write_records(tmp_path / "r.jsonl", [Record(ask, Message.of("assistant", "b"), hint="h")])
    with pytest.raises(DataError, match="no row of"):
        Distillation(records=tmp_path / "r.jsonl").source(policy, seed=0)
