"""Filling gaps: a catalogue, inferred schemas, and the sum of input tokens."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postgrad.core.errors import DataError
from postgrad.core.message import Message, Text, Tool, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Fidelity, Request, Source, Step, Trace
from postgrad.traces import readers
from postgrad.traces.contexts.catalogue import Catalogue, Entry
from postgrad.traces.contexts.fidelity import INPUT_TOKENS, MISSING, complete, fidelity_counts
from postgrad.traces.contexts.inferred_tools import infer_tools
from postgrad.traces.contexts.size import ContextSizes, by_script, logged_input

READ = {"name": "Read", "description": "Read a file", "input_schema": {"type": "object", "properties": {}}}
SYSTEM = "You are an agent. " * 20
USER = "word " * 80  # 400 characters: 100 tokens by the rule of four, 104 with the message's own


def made(
    *usages: dict[str, Any],
    missing: tuple[str, ...] = ("system prompt", "tool schemas"),
    fidelity: Fidelity = "partial",
    calls: tuple[ToolCall, ...] = (),
) -> Trace:
    """A trace of an agent at version 2.1.44: one user message, a step per usage, all with the same context."""
    user = Message.of("user", USER)
    answer = Message("assistant", calls or (Text("done"),))
    steps = tuple(
        Step(
            index,
            Request((user.id,), fidelity=fidelity, missing=missing),
            (Candidate(answer, model="claude-opus-4-1", usage=usage),),
        )
        for index, usage in enumerate(usages or ({},))
    )
    return Trace("t", Source("a.jsonl", "claude_code", app="claude-code", app_version="2.1.44"), {user.id: user}, steps)


def entry(**more: Any) -> Entry:
    return Entry(**{"app": "claude-code", "system": SYSTEM, "tools": [READ], **more})


def test_a_catalogue_fills_prompt_and_tools_and_lifts_the_level() -> None:
    filled = complete(made(), Catalogue((entry(),)))
    (step,) = filled.steps
    assert [message.role for message in filled.context(step)] == ["system", "user"]
    assert filled.context(step)[0].text == SYSTEM
    assert [(tool.name, tool.inferred) for tool in step.request.tools] == [("Read", False)]
    assert (step.request.fidelity, step.request.missing, filled.id) == ("reconstructed", (), "t")
    assert complete(filled, Catalogue((entry(),))) == filled


def test_what_is_lost_otherwise_keeps_a_context_partial() -> None:
    trace = made(missing=("system prompt", "tool schemas", "earlier messages"))
    request = complete(trace, Catalogue((entry(),))).steps[0].request
    assert (request.fidelity, request.missing) == ("partial", ("earlier messages",))
    half = complete(made(), Catalogue((entry(tools=None),))).steps[0].request
    assert (half.fidelity, half.missing) == ("partial", ("tool schemas",))


def test_exact_steps_and_known_prompts_are_left_alone() -> None:
    exact = made(fidelity="exact", missing=())
    assert complete(exact, Catalogue((entry(),))) is exact
    none = made(fidelity="none", missing=("messages",))
    assert complete(none, Catalogue((entry(),))) is none
    known = made(missing=("tool schemas",))
    system = Message.of("system", "its own")
    request = msgspec.structs.replace(known.steps[0].request, messages=(system.id, *known.steps[0].request.messages))
    known = msgspec.structs.replace(
        known,
        messages={**known.messages, system.id: system},
        steps=(msgspec.structs.replace(known.steps[0], request=request),),
    )
    filled = complete(known, Catalogue((entry(),)))
    assert [message.text for message in filled.context(filled.steps[0])] == ["its own", USER]


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, True),
        ({"app": "claude-*"}, True),
        ({"app": "codex-cli"}, False),
        ({"versions": "2.1.*"}, True),
        ({"versions": ">=2.1,<2.2"}, True),
        ({"versions": ">2.1.9"}, True),
        ({"versions": "<2.1.5"}, False),
        ({"versions": "2.1.44"}, True),
        ({"versions": "!=2.1.*"}, False),
        ({"models": ["gpt-*", "claude-opus-*"]}, True),
        ({"models": ["claude-haiku-*"]}, False),
        ({"kinds": ["subagent"]}, False),
    ],
)
def test_entries_are_found_by_application_version_model_and_kind(more: dict[str, Any], fits: bool) -> None:
    words = complete(made(), Catalogue((entry(**more),))).steps[0].request.missing
    assert ("system prompt" not in words) is fits


def test_the_first_entry_that_fits_wins_and_an_unknown_version_fits_no_range() -> None:
    trace = made()
    two = Catalogue((entry(versions="2.1.*", system="new"), entry(system="any")))
    assert complete(trace, two).context(complete(trace, two).steps[0])[0].text == "new"
    unknown = msgspec.structs.replace(trace, source=Source("a", "claude_code", app="claude-code"))
    assert complete(unknown, two).context(complete(unknown, two).steps[0])[0].text == "any"


# Inferred schemas


def test_schemas_are_what_the_calls_have_in_common() -> None:
    """Three calls: `path` in all, `limit` in two (a whole number and a broken one), `tags` a list of texts."""
    texts = ('{"path": "a", "limit": 3}', '{"path": "b", "limit": 2.5, "tags": ["x"]}', '{"path": null}', '{"path"')
    calls = tuple(ToolCall.from_raw(id=f"c{n}", name="read", raw=raw) for n, raw in enumerate(texts))
    (tool,) = infer_tools(made(calls=calls))
    assert tool == Tool(
        "read",
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": ["string", "null"]},
                "limit": {"type": "number"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["path"],
        },
        inferred=True,
    )


def test_inferred_tools_stand_in_and_are_still_missing() -> None:
    call = ToolCall.from_raw(id="c0", name="Bash", raw='{"command": "ls"}')
    request = complete(made(calls=(call,))).steps[0].request
    assert ([tool.name for tool in request.tools], request.tools[0].inferred) == (["Bash"], True)
    assert (request.fidelity, request.missing) == ("partial", ("system prompt", "tool schemas"))


def test_a_tool_that_the_application_did_not_know_is_not_inferred() -> None:
    call = ToolCall.from_raw(id="c0", name="Bsh", raw="{}")
    trace = made(calls=(call,))
    result = ToolResult("c0", 'Tool "Bsh" not found in registry', True, "error")
    assert (
        infer_tools(msgspec.structs.replace(trace, steps=(msgspec.structs.replace(trace.steps[0], results=(result,)),)))
        == ()
    )


# The sum of input tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 4, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 20}, 124),
        ({"prompt_tokens": 120, "prompt_tokens_details": {"cached_tokens": 100}}, 120),
        ({"input_tokens": 120, "cached_input_tokens": 100}, 120),
        ({"input": 20, "cache": {"read": 90, "write": 10}}, 120),
        ({"input": 120, "cached": 50, "output": 3}, 120),
        ({"output_tokens": 3}, None),
        ({"input_tokens": "many"}, None),
        ({}, None),
    ],
)
def test_logged_input_tokens_of_several_providers(usage: dict[str, Any], tokens: int | None) -> None:
    assert logged_input(usage) == tokens


@pytest.mark.parametrize(("logged", "flagged"), [(104, False), (122, False), (123, True), (91, False), (90, True)])
def test_a_gap_above_fifteen_per_cent_is_flagged(logged: int, flagged: bool) -> None:
    """The context weighs 104: 1 - 104/122 = 14.8 %, 1 - 104/123 = 15.4 %; 104/91 - 1 = 14.3 %, 104/90 - 1 = 15.6 %."""
    words = complete(made({"input_tokens": logged}, missing=("texts added at run time",))).steps[0].request.missing
    assert (INPUT_TOKENS in words) is flagged


def test_a_flag_goes_when_the_catalogue_explains_the_gap() -> None:
    """System prompt 360/4 + 4 = 94, user 104, tools 52/4 = 13."""
    trace = made({"input_tokens": 211})
    assert INPUT_TOKENS in complete(trace).steps[0].request.missing
    assert complete(complete(trace), Catalogue((entry(),))).steps[0].request.missing == ()


def test_a_tokenizer_that_differs_from_the_rule_of_thumb_is_fitted_away() -> None:
    """Contexts grow by 104 estimated and 156 logged tokens a step: rate 1.5, and nothing is missing."""
    users = [Message.of("user", f"{number}{USER[1:]}") for number in range(6)]
    answer = Candidate(Message.of("assistant", "x"))
    steps = tuple(
        Step(
            n,
            Request(tuple(user.id for user in users[: n + 1]), fidelity="reconstructed"),
            (msgspec.structs.replace(answer, usage={"prompt_tokens": 156 * (n + 1)}),),
        )
        for n in range(6)
    )
    trace = Trace("t", Source("a", "x"), {user.id: user for user in users}, steps)
    assert max(map(abs, ContextSizes(trace).gaps().values())) < 1e-9
    assert all(step.request.missing == () for step in complete(trace).steps)
    assert all(gap == pytest.approx(1 / 3) for gap in ContextSizes(trace, lambda text: len(text) / 4).gaps().values())


def test_wide_characters_are_a_token_each() -> None:
    assert by_script("abcd") == 1
    assert by_script("漢字かな") == 4


def test_levels_are_counted() -> None:
    assert fidelity_counts([made({}, {}), made(fidelity="exact")]) == {"partial": 2, "exact": 1}


# Real samples, where they are at hand

SHARED = Path(os.environ.get("POSTGRAD_SHARED", Path(__file__).parents[4] / "shared")) / "traces"
TRUTH = SHARED / "GROUND_TRUTH.tsv"
FILES = (
    [row["file"].partition("#")[0] for row in csv.DictReader(TRUTH.open(), delimiter="\t")] if TRUTH.is_file() else []
)


@pytest.mark.parametrize("file", dict.fromkeys(FILES))
def test_readers_speak_of_what_is_missing_in_the_words_of_the_vocabulary(file: str) -> None:
    try:
        traces = [complete(trace) for trace in readers.read(SHARED / file).traces]
    except DataError:
        traces = []
    assert {word for trace in traces for step in trace.steps for word in step.request.missing} <= MISSING.keys()
    for trace in traces:
        assert all(set(step.request.messages) <= trace.messages.keys() for step in trace.steps)
        assert all(step.request.messages or step.request.fidelity in ("exact", "none") for step in trace.steps)


def test_an_action_without_any_context_is_called_that() -> None:
    trace = made()
    (step,) = trace.steps
    bare = msgspec.structs.replace(step, request=msgspec.structs.replace(step.request, messages=()))
    request = complete(msgspec.structs.replace(trace, steps=(bare,))).steps[0].request
    assert (request.fidelity, request.missing[-1]) == ("none", "messages")
