"""The retention guard: its questions are sound, its grader compares whole words."""

from __future__ import annotations

import pytest

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.envs.environment import training_tasks
from postgrad.evaluate.retention import Retention

RETENTION = Retention()


def every_task() -> list[Task]:
    return [*RETENTION.tasks("facts"), *RETENTION.tasks("validation")]


def grade(question: str, answer: str) -> float:
    task = next(task for task in every_task() if task.messages[-1].text == question)
    return RETENTION.grade(task, Message.of("assistant", answer)).score


def test_every_reference_is_right_and_no_question_tells_its_answer() -> None:
    tasks = every_task()
    assert len({task.id for task in tasks}) == len(tasks) == 178
    assert len(RETENTION.tasks("validation")) == 60
    for task in tasks:
        assert task.reference is not None
        assert RETENTION.grade(task, task.reference).score == 1
        assert RETENTION.grade(task, task.messages[-1]).score == 0, task.id


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The capital of France is Paris.", 1),
        ("PARIS!", 1),
        ("Parisian cafes are nice.", 0),
        ("The capital of France is Lyon.", 0),
        ("", 0),
    ],
)
def test_whole_words_count(answer: str, right: int) -> None:
    assert grade("What is the capital of France?", answer) == right


def test_answers_of_several_words_and_digits() -> None:
    assert grade("What is the capital of Argentina?", "It is Buenos\nAires.") == 1
    assert grade("How many sides does a hexagon have?", "It has 6.") == 1
    assert grade("How many sides does a hexagon have?", "It has 60.") == 0


def test_subsets_are_fixed_and_nested() -> None:
    ten = [task.id for task in RETENTION.tasks("facts", 10, seed=3)]
    assert ten == [task.id for task in RETENTION.tasks("facts", 20, seed=3)][:10]
    assert ten != [task.id for task in RETENTION.tasks("facts", 10, seed=4)]
    with pytest.raises(ConfigError, match="fewer questions"):
        RETENTION.tasks("facts", 119)


def test_it_is_a_guard_and_never_training_data() -> None:
    with pytest.raises(ConfigError, match="may not be trained on"):
        training_tasks(RETENTION, "facts")
    with pytest.raises(ConfigError, match="unknown split"):
        RETENTION.tasks("train")
