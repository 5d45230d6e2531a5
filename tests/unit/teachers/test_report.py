"""What is told of a replay, by hand."""

from __future__ import annotations

from pathlib import Path

from postgrad.core.actor import Answer, Ask
from postgrad.core.message import Message, Text
from postgrad.teachers.journal import Journal, Line
from postgrad.teachers.money.prices import Price
from postgrad.teachers.replay import ReplayedStep, Teacher, TeacherAnswer
from postgrad.teachers.report import errors_of, per_trace, percentile, report, what_was_sent
from postgrad.teachers.scripted import ScriptedActor
from unit.signals.traces_by_hand import WEATHER, act, call
from unit.teachers.asking import openai, teacher

ROME = act(call("get_weather", {"city": "Rome"}))
ASK = Ask((Message.of("user", "?"),), (WEATHER,))


def answered(*answers: Answer, cached: int = 0) -> list[ReplayedStep]:
    return [
        ReplayedStep("t", place, ASK, ROME, {"a": TeacherAnswer(answer, "HTTP endpoint", cached=place < cached)})
        for place, answer in enumerate(answers)
    ]


STEPS = answered(
    Answer(ROME, "m-1", prompt_tokens=100, completion_tokens=10, seconds=4.0, cost=1.0, cached_tokens=60),
    Answer(act(call("get_weather", {"city": 5})), "m-2", prompt_tokens=50, completion_tokens=5, seconds=1.0, cost=2.0),
    Answer(act(Text(" ")), "m-1", seconds=2.0, cost=4.0),
    Answer(None, "m-1", stop_reason="refused: 400 too long", seconds=3.0, error="refused"),
    Answer(None, "m-1"),
    cached=1,
)
LINES = [
    Line("sent", "1", "a", host="h:1", trace="t", request="r1", bytes=300, reserved=9.0),
    Line("settled", "1", "a", trace="t", outcome="answered", cost=2.0),
    Line("sent", "2", "a", host="h:1", trace="t", request="r2", bytes=200, reserved=9.0),
    Line("settled", "2", "a", trace="t", outcome="timeout", uncertain=9.0),
    Line("sent", "3", "a", host="h:1", trace="u", request="r2", bytes=200, reserved=9.0),
    Line("settled", "3", "a", trace="u", outcome="answered", cost=4.0),
]


def journal_of(lines: list[Line]) -> Journal:
    journal = Journal()
    for line in lines:
        journal.write(line)
    return journal


def test_report_by_hand(tmp_path: Path) -> None:
    """The first answer is from the cache: value 1 + 2 + 4, paid 2 + 4. Seconds 1, 2, 4: p50 the 2nd, p95 the 3rd.

    The try that timed out was made again and cost 4 then, so it may have cost 4 as well.
    """
    asked, journal = teacher(tmp_path, openai("http://localhost:1")), journal_of(LINES)
    assert report(STEPS, [Teacher("a", asked, price=Price(1.0, 1.0, as_of="2026-01-01"))], journal)["a"] == {
        "kind": "HTTP endpoint",
        "models": ["m-1", "m-2"],
        "answers": 3,
        "abstentions": 2,
        "refusals": {"refused: 400 too long": 1, "nothing to say": 1},
        "truncated": 0,
        "too_long": 0,
        "invalid": 2,
        "invalid_reasons": {"against_schema": 1, "empty": 1},
        "hinted": 0,
        "errors": {"refused": 1},
        "cached": 1,
        "calls": 2,
        "retries": {"timeout": 1},
        "cost": 6.0,
        "value": 7.0,
        "uncertain": 4.0,
        "price_as_of": "2026-01-01",
        "tokens_in": 150,
        "tokens_out": 15,
        "tokens_cached": 60,
        "p50": 2.0,
        "p95": 4.0,
        "p99": 4.0,
    }


def test_calls_of_an_actor_without_a_network_are_what_was_not_kept() -> None:
    told = report(STEPS, [Teacher("a", ScriptedActor("a", {}))])["a"]
    assert (told["calls"], told["cached"], told["cost"]) == (4, 1, 0.0)


def test_what_may_have_been_billed_is_told_per_teacher_as_in_all(tmp_path: Path) -> None:
    """A try of a that broke off counts as the bill of the next one, 2; one of b stays at what was set aside, 5."""
    lines = [
        Line("sent", "1", "a", key="k", reserved=9.0),
        Line("settled", "1", "a", key="k", outcome="timeout", uncertain=9.0),
        Line("sent", "2", "a", key="k", reserved=9.0),
        Line("settled", "2", "a", key="k", outcome="answered", cost=2.0),
        Line("sent", "3", "b", key="l", reserved=5.0),
        Line("settled", "3", "b", key="l", outcome="truncated", uncertain=5.0),
    ]
    journal = journal_of(lines)
    told = report([], [Teacher(name, teacher(tmp_path, openai("http://localhost:1"))) for name in "ab"], journal)
    assert (told["a"]["uncertain"], told["b"]["uncertain"], journal.uncertain) == (2.0, 5.0, 7.0)


def test_per_trace(tmp_path: Path) -> None:
    """Trace u was paid and left unfinished by the budget: nothing is known of its answer."""
    measured = {"tokens_in": 150, "tokens_out": 15, "tokens_cached": 60, "p50": 2.0, "p95": 4.0, "p99": 4.0}
    nothing = {"tokens_in": 0, "tokens_out": 0, "tokens_cached": 0, "p50": None, "p95": None, "p99": None}
    assert per_trace(STEPS, LINES) == {
        "t": {"steps": 5, "calls": 1, "cached": 1, "cost": 2.0, "errors": {"refused": 1}, **measured},
        "u": {"steps": 0, "calls": 1, "cached": 0, "cost": 4.0, "errors": {}, **nothing},
    }
    assert errors_of(STEPS) == {"refused": 1}


def test_what_was_sent_where(tmp_path: Path) -> None:
    journal = journal_of(LINES[:3])
    asked = Teacher("a", teacher(tmp_path, openai("http://localhost:1")))
    sent = what_was_sent([asked, Teacher("b", ScriptedActor("b", {}))], journal)
    assert {key: sent["a"][key] for key in ("where", "model", "bytes", "tries")} == {
        "where": ["h:1"],
        "model": "asked-1",
        "bytes": 500,
        "tries": 2,
    }
    assert [(row["request"], row["outcome"]) for row in sent["a"]["requests"]] == [
        ("r1", "answered"),
        ("r2", "under way"),
    ]
    assert sent["b"] == {"kind": "script", "where": "this machine", "requests": []}


def test_percentile_of_nothing_and_of_one() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.95) == 3.0
