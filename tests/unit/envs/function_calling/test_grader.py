"""Every kind of error once, from calls written by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from postgrad.core.message import Message, Tool, ToolCall
from postgrad.core.task import Task
from postgrad.envs.function_calling import grade

BOOK = Tool(
    "hotel.book",
    "Book a hotel.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer"},
            "budget": {"type": "number"},
            "quiet": {"type": "boolean"},
            "extras": {"type": "array", "items": {"type": "string"}},
            "guest": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
        },
        "required": ["city", "nights"],
    },
)
CANCEL = Tool("hotel.cancel", "Cancel.", {"type": "object", "properties": {"id": {"type": "string"}}})
RIGHT = {
    "city": "St. Gallen",
    "nights": 2,
    "budget": 90.0,
    "extras": ["Pool", "late-checkout"],
    "guest": {"name": "O'Hara"},
}
EXPECTED = {
    "hotel.book": {
        "city": ["St. Gallen"],
        "nights": [2],
        "budget": [90],
        "quiet": [False, ""],
        "extras": [["pool", "late checkout"]],
        "guest": [{"name": ["O'Hara"], "age": [30, ""]}],
    }
}
TASK = Task("t", (Message.of("user", "Book it."),), "hotel.book", (BOOK, CANCEL), (EXPECTED,))


def said(*calls: tuple[str, Any], text: str = "") -> Message:
    """A message with calls; an argument given as text stands as it is."""
    written = [
        ToolCall.from_raw(id=f"call_{i}", name=name, raw=value if isinstance(value, str) else json.dumps(value))
        for i, (name, value) in enumerate(calls)
    ]
    return Message("assistant", (*Message.of("assistant", text).blocks, *written))


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in RIGHT.items() if name != key}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, None),
        ({"city": "ST GALLEN"}, None),  # case, spaces and the point do not count
        ({"city": "St.Gallen "}, None),
        ({"city": "Gallen"}, "wrong_value"),
        ({"city": 7}, "wrong_type"),
        ({"nights": 3}, "wrong_value"),
        ({"nights": "2"}, "wrong_type"),
        ({"nights": 2.0}, "wrong_type"),  # as in BFCL: the schema says integer
        ({"nights": True}, "wrong_type"),
        ({"budget": 90}, None),  # an integer is a number
        ({"budget": 91}, "wrong_value"),
        ({"budget": "90"}, "wrong_type"),
        ({"quiet": False}, None),
        ({"quiet": True}, "wrong_value"),
        ({"quiet": 0}, "wrong_type"),
        ({"extras": ["pool", "LATE CHECKOUT"]}, None),
        ({"extras": ["late checkout", "pool"]}, "wrong_value"),  # order counts
        ({"extras": "pool"}, "wrong_type"),
        ({"extras": ["pool", 1]}, "wrong_type"),
        ({"guest": {"name": 'o"hara', "age": 30}}, None),
        ({"guest": {"name": "O'Hara", "age": 31}}, "wrong_value"),
        ({"guest": {"age": 30}}, "wrong_value"),
        ({"guest": {"name": "O'Hara", "shoe": 44}}, "wrong_value"),
        ({"stars": 5}, "unexpected_argument"),
    ],
)
def test_one_changed_argument(change: dict[str, Any], kind: str | None) -> None:
    result = grade(TASK, said(("hotel.book", {**RIGHT, **change})))
    assert (result.error, result.score) == (kind, 0.0 if kind else 1.0)
    assert all(repr(name) in result.detail for name in change if kind)


@pytest.mark.parametrize("key", ["nights", "budget"])
def test_an_argument_left_out(key: str) -> None:
    """`nights` is required by the schema; `budget` is optional there, but the request states it."""
    assert grade(TASK, said(("hotel.book", without(key)))).error == "missing_argument"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (said(text="Done."), "no_call"),
        (said(("hotel.book", RIGHT), text="I will book it."), None),
        (said(("hotel.rent", RIGHT)), "unknown_tool"),
        (said(("hotel.cancel", {"id": "1"})), "wrong_tool"),
        (said(("hotel.book", '{"city": "St.')), "malformed_call"),
        (said(("hotel.book", "[1]")), "malformed_call"),
        (said(("hotel.rent", '{"city": "St.')), "malformed_call"),
        (said(("hotel.book", RIGHT), ("hotel.book", RIGHT)), "wrong_count"),
    ],
)
def test_a_whole_message(message: Message, kind: str | None) -> None:
    assert grade(TASK, message).error == kind


def test_no_call_expected() -> None:
    """Where no tool fits, any text is right; any call is wrong, and so is silence."""
    task = Task("t", TASK.messages, "hotel.book", (BOOK,))
    assert grade(task, said(text="I cannot do that.")).score == 1.0
    assert grade(task, said(("hotel.book", RIGHT))).error == "unwanted_call"
    assert grade(task, said(("nothing", {}))).error == "unknown_tool"
    assert grade(task, said(text=" ")).error == "no_answer"


def test_several_calls_in_any_order() -> None:
    """Two bookings are expected; each call matches one of them, and no call may serve twice."""
    one, two = ({"hotel.cancel": {"id": [name]}} for name in ("a1", "b2"))
    task = Task("t", TASK.messages, "g", (BOOK, CANCEL), (one, two))
    a, b = ("hotel.cancel", {"id": "a1"}), ("hotel.cancel", {"id": "b2"})
    assert grade(task, said(a, b)).score == grade(task, said(b, a)).score == 1.0
    assert grade(task, said(a, a)).error == "wrong_value"
    assert grade(task, said(a)).error == "wrong_count"
    assert grade(task, said(a, ("hotel.book", RIGHT))).error == "wrong_tool"
