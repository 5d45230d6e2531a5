"""Fresh attempts and where their hints come from; tasks are the coin's: an answer is right by its first character."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from postgrad.core.actor import Answer
from postgrad.core.annotation import DivergenceItem, Unit
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message
from postgrad.core.task import Grade
from postgrad.methods.completion import Completion
from postgrad.methods.self_distillation import (
    OPSD,
    SDPOFresh,
    feedback_hint,
    reference_hint,
    sibling_hint,
    without_thinking,
)
from postgrad.models.policy import Policy, load_policy
from postgrad.models.sampler import Sample
from recipes.coin import Coin

COIN = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 3, "max_new_tokens": 4}
(TASK,) = Coin().tasks("train", 1)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def attempt(policy: Policy, text: str, score: float, detail: str = "") -> Completion:
    message = Message.of("assistant", text)
    tokens = tuple(policy.renderer.action(message))
    prompt = tuple(policy.renderer.prompt(TASK.messages, TASK.tools))
    return Completion(
        TASK, prompt, Sample(tokens, (-1.0,) * len(tokens), "stop"), Answer(message, "m"), Grade(score, None, detail)
    )


def test_a_sibling_tells_what_succeeded_and_never_itself(policy: Policy):
    right, wrong, other = attempt(policy, "b", 1.0), attempt(policy, "a", 0.0), attempt(policy, "d", 1.0)
    hint = sibling_hint(wrong, [wrong, right], policy.renderer, success=1.0)
    assert hint is not None
    assert "\n\nb\n\n" in hint
    assert sibling_hint(right, [right, wrong], policy.renderer, success=1.0) is None
    assert sibling_hint(right, [right, replace(right)], policy.renderer, success=1.0) is None  # equal: tells nothing
    told = sibling_hint(right, [right, other], policy.renderer, success=1.0)
    assert told is not None
    assert "\n\nd\n\n" in told
    assert sibling_hint(wrong, [attempt(policy, "b", 0.5)], policy.renderer, success=0.6) is None


def test_reasoning_is_left_out_of_demonstrations(policy: Policy):
    assert without_thinking("<think>two\nlines</think>\n\nb") == "b"
    thought = attempt(policy, "<think>hm</think>b", 1.0)
    hint = sibling_hint(attempt(policy, "a", 0.0), [thought], policy.renderer, success=1.0)
    assert hint is not None
    assert "hm" not in hint


def test_feedback_is_what_was_found_and_nothing_where_all_is_well(policy: Policy):
    hint = feedback_hint(attempt(policy, "a", 0.0, "the first character is odd"), Coin())
    assert hint is not None
    assert "the first character is odd" in hint
    assert feedback_hint(attempt(policy, "b", 1.0), Coin()) is None


def test_the_reference_is_the_tasks_solution(policy: Policy):
    hint = reference_hint(TASK, policy.renderer)
    assert hint is not None
    assert "\n\nb\n\n" in hint


def units_of(policy: Policy, method: type[SDPOFresh] = SDPOFresh, **fields: Any) -> list[Unit]:
    return list(method.model_validate({"rollouts": COIN, **fields}).source(policy, seed=1).units(0))


def test_teacher_and_student_score_the_tokens_that_were_sampled(policy: Policy):
    """Same ids in both branches, both contexts are whole prompts, and the sampler's log-probabilities come along."""
    units = units_of(policy, hints=["feedback", "reference"])
    assert units
    for unit in units:
        (item,) = unit.items
        assert isinstance(item, DivergenceItem)
        student, teacher = unit.branches
        assert [student[p] for p in item.student.positions] == [teacher[p] for p in item.teacher.positions]
        assert item.behaviour_T is not None
        assert (item.behaviour_T <= 0).all()
        assert len(teacher) > len(student)
    again = units_of(policy, hints=["feedback", "reference"])
    assert [unit.branches for unit in units] == [unit.branches for unit in again]


def test_attempts_without_a_hint_take_no_part(policy: Policy):
    """The coin's words are for failures alone: as many units as failures, whether successes may be taught or not."""
    source = SDPOFresh.model_validate({"rollouts": COIN, "hints": ["feedback"]}).source(policy, seed=1)
    groups = source._sampler.groups(source._tasks.units(0), seed=1_000_003)
    failed = sum(c.grade.score < 1 for group in groups for c in group)
    assert 0 < failed < 12
    assert len(units_of(policy, hints=["feedback"])) == failed
    assert len(units_of(policy, hints=["reference"])) == 12
    assert len(units_of(policy, hints=["reference"], teach="failed")) == failed
    assert units_of(policy, hints=["reference"], max_hinted=5) == []


def test_opsd_is_one_attempt_a_task_with_its_reference(policy: Policy):
    assert OPSD().hints == ("reference",)
    assert OPSD().rollouts.group_size == 1
    assert len(units_of(policy, OPSD, rollouts={**COIN, "group_size": 1})) == 3


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigError, match="twice"):
        SDPOFresh(hints=("feedback", "feedback")).check({})
    with pytest.raises(ConfigError, match="group_size of 2"):
        SDPOFresh.model_validate({"hints": ["sibling"], "rollouts": {"group_size": 1}}).check({})
    with pytest.raises(ConfigError, match="does nothing"):
        OPSD(success=0.5).check({})
    OPSD(success=0.5, teach="failed").check({})
