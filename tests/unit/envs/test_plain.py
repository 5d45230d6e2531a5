"""Everyday requests: words pass, calls do not, and the retention guard is not among them."""

from __future__ import annotations

from postgrad.core.message import Message, ToolCall
from postgrad.data.overlap import overlap
from postgrad.envs import load_environment
from postgrad.evaluate.retention import Retention

PLAIN = load_environment("plain")


def test_words_pass_and_calls_do_not() -> None:
    task = PLAIN.tasks("train", 1)[0]
    call = Message("assistant", (ToolCall.from_raw(id="c", name="f", raw="{}"),))
    assert PLAIN.grade(task, Message.of("assistant", "It rains.")).score == 1.0
    assert PLAIN.grade(task, call).error == "unwanted_call"
    assert PLAIN.grade(task, Message.of("assistant", " ")).error == "no_answer"
    assert [result.is_error for result in PLAIN.respond(task, call)] == [True]


def test_no_request_is_a_question_of_the_retention_guard() -> None:
    guard = [task for split in Retention().splits for task in Retention().tasks(split)]
    assert overlap(PLAIN.tasks("train"), guard).clean
    assert {task.messages[-1].text for task in PLAIN.tasks("train")}.isdisjoint(
        task.messages[-1].text for task in guard
    )
