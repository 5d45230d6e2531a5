"""Template hints: true, useful, and never the answer."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Text
from postgrad.core.trace import Feedback
from postgrad.signals.error_sites.sites import find_sites
from postgrad.signals.hints.hint import gold_hint, template_hint
from unit.signals.traces_by_hand import ALARM, WEATHER, TraceBuilder, act, bash, call


def hint_of(builder: TraceBuilder) -> str | None:
    trace = builder.build()
    (site,) = find_sites(trace)
    return template_hint(site, trace)


@pytest.mark.parametrize(
    ("name", "arguments", "parts"),
    [
        ("get_wether", {"city": "Rome"}, ["no tool named get_wether", "get_weather, set_alarm"]),
        ("get_weather", '{"city": "Rome"', ["one JSON object", "double quotes"]),
        ("get_weather", {"days": 2}, ["get_weather needs the argument city", '{"type": "string"}']),
        ("get_weather", {"city": "Rome", "zip": 1}, ["no argument zip", "city, days, unit"]),
        ("get_weather", {"city": "Rome", "days": "two"}, ["days must be of type integer"]),
        ("get_weather", {"city": "Rome", "days": True}, ["days must be of type integer"]),
        ("get_weather", {"city": "Rome", "unit": "kelvin"}, ['unit must be one of ["celsius", "fahrenheit"]']),
    ],
)
def test_faults_against_the_schema(name: str, arguments: object, parts: list[str]) -> None:
    action = act(call(name, arguments))  # type: ignore[arg-type]
    hint = hint_of(TraceBuilder(tools=[WEATHER, ALARM]).step(action, [("Error: bad call", True)]))
    assert hint is not None
    assert all(part in hint for part in parts), hint


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("<tool_use_error>String to replace not found in file.", "without line numbers"),
        ("<tool_use_error>Found 3 matches of the string to replace", "more than once"),
        ("<tool_use_error>File has not been read yet. Read it first", "read it before writing"),
        ("<tool_use_error>File content (806.5KB) exceeds maximum allowed size (256KB).", "ask for a part"),
        ("<tool_use_error>Directory does not match the pattern 42", "the environment says: Directory does not match"),
    ],
)
def test_faults_that_the_environment_names(text: str, part: str) -> None:
    hint = hint_of(TraceBuilder().step(act(call("Edit", {"file_path": "a"})), [(text, True)]))
    assert hint is not None
    assert " ".join(part.split()) in " ".join(hint.split())


def test_the_environments_own_words_are_cut_to_600_characters() -> None:
    hint = hint_of(TraceBuilder().step(act(bash("git push")), [("Exit code 1\n" + "x" * 5000, True)]))
    assert hint is not None
    assert hint.endswith("…")
    assert len(hint.split("says: ", 1)[1]) == 600


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("wrong_value", "exactly as the request states"),
        ("no_call", "get_weather, set_alarm"),
        ("unwanted_call", "answer in words"),
        ("wrong_tool", "get_weather, set_alarm"),
        ("wrong_count", "one call for each thing"),
        ("missing_argument", "every one that the request states"),
        ("wrong_type", "in the type"),
    ],
)
def test_a_verifiers_kind_becomes_advice_without_the_verifiers_words(kind: str, part: str) -> None:
    """The detail holds the right value, 31, and reads like a tool's own error: repeated, it would be the answer."""
    action = act(Text("It is sunny.")) if kind == "no_call" else act(call("get_weather", {"city": "Rome", "days": 13}))
    said = Feedback("verifier", 0.0, f"{kind}: days is missing, must be 31", "test")
    hint = hint_of(TraceBuilder(tools=[WEATHER, ALARM]).step(action, [("20", False)], feedback=[said]))
    assert hint is not None
    assert part in hint
    assert "31" not in hint


def test_an_unknown_kind_of_a_verifier_gives_no_hint() -> None:
    said = Feedback("verifier", 0.0, "secret_reason: days must be 31", "test")
    assert hint_of(TraceBuilder().step(act(Text("hm")), feedback=[said])) is None


def test_benign_places_give_no_hint() -> None:
    assert hint_of(TraceBuilder().step(act(bash("grep x y")), [("Exit code 1", True)])) is None


def test_a_repeated_call_is_told_so() -> None:
    builder = TraceBuilder()
    for number in range(2):
        builder.step(act(bash("git push", f"c{number}")), [("Exit code 128\nfatal: no upstream", True)])
    trace = builder.build()
    first, second = (template_hint(site, trace) for site in find_sites(trace))
    assert first is not None
    assert second is not None
    assert "failed before" in second
    assert second.endswith(first)


def test_a_failed_run_is_told_from_its_first_failure_on() -> None:
    builder = TraceBuilder().step(act(call("Edit", {"file_path": "b.py"}, "c0")), [("done", False)])
    text = "Exit code 1\ncompiling\nseed 3\n  1) test b (B)\n     expected 1"
    hint = hint_of(builder.step(act(bash("mix test", "c1")), [(text, True)]))
    assert hint is not None
    assert hint.startswith("After this change the checks fail with: 1) test b")


def test_gold_hints_give_the_answer_and_have_their_own_name() -> None:
    right = act(call("get_weather", {"days": 2, "city": "Rome"}))
    assert gold_hint(right) == 'The right call is get_weather({"city":"Rome","days":2}).'
    assert gold_hint(Message.of("assistant", "No tool fits.")) == "The right answer is: No tool fits."


@pytest.mark.parametrize(("undone", "begins"), [(False, "The user's view of this"), (True, "The user would take this")])
def test_the_hint_for_an_objection_is_what_the_user_said(begins: str, *, undone: bool) -> None:
    builder = TraceBuilder().step(act(Text("Done.")))
    builder = builder.event("command", "/undo") if undone else builder
    hint = hint_of(builder.event("user_text", "you forgot the header").step(act(Text("Well."))))
    assert hint is not None
    assert hint.startswith(begins)
    assert hint.endswith(": you forgot the header")
