"""Exports: nothing but what the loss report names is lost, and what is written is read back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from atif import Trajectory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postgrad.core.errors import MissingDependency
from postgrad.core.message import Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.run.plugins import resolve
from postgrad.traces import readers
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.exports import EXPORTS
from postgrad.traces.exports.exporter import Losses
from postgrad.traces.exports.openai import STUB, OpenAIMessages
from postgrad.traces.records import totals
from unit.traces.test_shared_samples import READ, SHARED

SUFFIX = {"openai": ".jsonl", "atif": ".json", "sharegpt": ".jsonl", "inspect": ".eval"}
FORMAT = {"openai": "messages", "atif": "atif", "sharegpt": "sharegpt", "inspect": "inspect"}


def talk(**more: Any) -> Trace:
    """Two questions, two calls at once of which one fails, an answer."""
    told = Conversation(fidelity="exact", tools=(Tool("ls", "lists", {"type": "object", "properties": {}}),), **more)
    told.tell(Message.of("system", "Be brief."))
    told.tell(Message.of("user", "List."))
    told.event("user_text", 1, "List.")
    calls = [ToolCall.from_raw(id=f"c{n}", name="ls", raw=f'{{"d":  {n}}}') for n in (1, 2)]
    told.act(
        Action(
            (Reasoning("hm", signature="s"), Text("Looking."), *calls),
            (2,),
            "m-1",
            "tool_use",
            {"input_tokens": 7},
            "2026-01-01T00:00:00Z",
        )
    )
    told.answer(ToolResult("c1", "a.txt", False), record=3)
    told.answer(ToolResult("c2", "no such folder", True, "error"), record=4)
    told.tell(Message.of("user", "Thanks."))
    told.act(Action((Text("Done."),), (6,), "m-1", "end_turn"))
    told.judge(Feedback("score", 1.0, "fine", "judge"))
    trace = told.trace(Source("f", "openai_chat", app="app", app_version="1"), "demo")
    assert trace is not None
    return trace


def export(trace: Trace | list[Trace], path: Path, form: str) -> Losses:
    losses = Losses()
    resolve("export", form, EXPORTS)().write(trace if isinstance(trace, list) else [trace], path, losses)
    return Losses({kind: count for kind, count in losses.items() if count})


def substance(trace: Trace) -> list[Any]:
    """What a round trip keeps: per step its words, its calls with their arguments, and its results' texts."""
    return [
        [
            step.action.text,
            [(c.name, c.arguments if c.arguments is not None else c.arguments_raw) for c in step.action.tool_calls],
            [result.text for result in step.results],
        ]
        for step in trace.steps
    ]


def bag(traces: Iterable[Trace]) -> list[str]:
    """The steps of all traces, in an order of their own: subagents stand elsewhere in a trajectory."""
    return sorted(json.dumps(step, sort_keys=True) for trace in traces for step in substance(trace))


@pytest.mark.parametrize("form", EXPORTS)
def test_what_is_written_is_read_back(tmp_path: Path, form: str) -> None:
    trace, path = talk(), tmp_path / f"out{SUFFIX[form]}"
    export(trace, path, form)
    found = readers.read(path)
    assert (found.source.format, [substance(back) for back in found.traces]) == (FORMAT[form], [substance(trace)])


def test_atif_gives_back_nearly_all_and_is_valid(tmp_path: Path) -> None:
    """Flags, argument strings, thoughts with their signatures, usage, stop reasons, feedback, fidelity: in `extra`."""
    environment = {"repository": {"commit": "0f", "dirty": True}, "command": ["agent", "-p", "x"]}
    trace, path = msgspec.structs.replace(talk(), environment=environment), tmp_path / "t.json"
    assert export(trace, path, "atif") == {}
    Trajectory.model_validate_json(path.read_bytes())
    (back,) = readers.read(path).traces
    assert back.environment == environment
    for before, after in zip(trace.steps, back.steps, strict=True):
        assert [msgspec.structs.replace(c, message=Message.of("user", "")) for c in after.candidates] == [
            msgspec.structs.replace(c, message=Message.of("user", "")) for c in before.candidates
        ]
        assert (after.action.blocks, after.results, after.feedback) == (
            before.action.blocks,
            before.results,
            before.feedback,
        )
        assert (after.request.fidelity, after.request.tools, after.time) == ("exact", before.request.tools, before.time)
        assert [m.blocks for m in back.context(after)] == [m.blocks for m in trace.context(before)]


def test_atif_carries_what_is_no_object_and_results_without_a_call(tmp_path: Path) -> None:
    told = Conversation()
    told.tell(Message("tool", (ToolResult("lost", "orphan"),)))
    told.act(Action((ToolCall.from_raw(id="c", name="f", raw='{"a": '), Text("after"))))
    trace = told.trace(Source("f", "x"), "t")
    assert trace is not None
    assert export(trace, tmp_path / "t.json", "atif") == {"results without a call (their ids)": 1}
    value = json.loads((tmp_path / "t.json").read_text())
    Trajectory.model_validate(value)
    assert value["steps"][1]["tool_calls"][0]["arguments"] == {"_raw": '{"a": '}
    assert value["steps"][0]["observation"]["results"] == [{"source_call_id": None, "content": "orphan"}]
    (back,) = readers.read(tmp_path / "t.json").traces
    assert back.steps[0].action.blocks == trace.steps[0].action.blocks


def test_losses_are_counted_by_kind(tmp_path: Path) -> None:
    """By hand: 2 steps with a model and a stop reason, one with usage and a time; 2 flagged results; 1 event."""
    assert export(talk(), tmp_path / "o.jsonl", "openai") == {
        "model names": 2,
        "stop reasons": 2,
        "usage": 1,
        "times": 1,
        "feedback": 1,
        "error flags": 2,
        "thought signatures": 1,
        "events": 1,
    }
    assert export(talk(), tmp_path / "o.eval", "inspect") == {
        "argument strings": 2 * 3,  # in the step's output, in the pool of contexts, in the final messages
        "stop reasons (written in Inspect's words)": 2,
    }


def test_branches_and_compactions_begin_new_rows_in_openais_form(tmp_path: Path) -> None:
    """After the compaction the first answer is only context in its row: weight 0, and no step when read back."""
    told = Conversation()
    told.tell(Message("user", (Text("a"),), (1,)))
    told.act(Action((Text("b"),), (2,)))
    told.tell(Message("user", (Text("c"),), (3,)))
    told.act(Action((Text("d"),), (4,)))
    told.rewind(3)
    told.tell(Message("user", (Text("e"),), (5,)))
    told.act(Action((Text("f"),), (6,)))
    trace = told.trace(Source("f", "x"), "t")
    assert trace is not None
    export(trace, tmp_path / "o.jsonl", "openai")
    rows = [json.loads(line)["messages"] for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [[m["content"] for m in row] for row in rows] == [["a", "b", "c", "d"], ["a", "b", "e", "f"]]
    assert [[m.get("weight") for m in row if m["role"] == "assistant"] for row in rows] == [[None, None], [0, None]]
    back = readers.read(tmp_path / "o.jsonl").traces
    assert [s.action.text for t in back for s in t.steps] == ["b", "d", "f"]


def test_openais_rules_for_messages(tmp_path: Path) -> None:
    """Words of one speaker are one message, orphans go; a pending call gets a result on request, thoughts as asked."""
    told = Conversation()
    told.tell(Message("tool", (ToolResult("lost", "orphan"),)))
    told.tell(Message.of("user", "a"))
    told.tell(Message("user", (Text("b"), Media("image/png", "", "https://x.test/a.png"), Opaque("odd", 1))))
    told.act(Action((Reasoning("hm"), ToolCall.from_raw(id="c", name="f", raw="{'n': 1}"))))
    told.act(Action((Text("end"),)))
    trace = told.trace(Source("f", "x"), "t")
    assert trace is not None
    losses = Losses()
    OpenAIMessages("text", stubs=True).write([trace], tmp_path / "o.jsonl", losses)
    messages = json.loads((tmp_path / "o.jsonl").read_text())["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant"]
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    assert messages[0]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, image]
    assert messages[1]["content"] == "<think>\nhm\n</think>\n\n"
    assert messages[2] == {"role": "tool", "tool_call_id": "c", "content": STUB}
    assert (losses["results without a call"], losses["borders between messages of one speaker"]) == (1, 1)


@pytest.mark.parametrize("form", EXPORTS)
def test_transcripts_of_evaluations_are_marked(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"out{SUFFIX[form] if form != 'inspect' else '.json'}"
    export(talk(params={"purpose": "evaluation"}), path, form)
    assert '"purpose": "evaluation"' in path.read_text()
    if form != "inspect":
        assert readers.read(path).traces[0].for_evaluation


def test_subagents_stand_inside_their_parents_trajectory(tmp_path: Path) -> None:
    main = talk()
    child = msgspec.structs.replace(talk(), id="child", parent=main.id)
    export([child, main], tmp_path / "t.json", "atif")
    value = json.loads((tmp_path / "t.json").read_text())
    assert [inner["trajectory_id"] for inner in value["subagent_trajectories"]] == ["child"]
    assert [t.parent is not None for t in readers.read(tmp_path / "t.json").traces] == [False, True]


def test_several_trajectories_as_list_lines_and_folder(tmp_path: Path) -> None:
    two = [talk(), msgspec.structs.replace(talk(), id="other")]
    for path in (tmp_path / "t.json", tmp_path / "t.jsonl"):
        export(two, path, "atif")
        assert totals(readers.read(path).traces)["steps"] == 4
    export(two, tmp_path / "folder", "atif")
    names = sorted(path.name for path in (tmp_path / "folder").iterdir())
    assert names == sorted(f"{trace.id}.json" for trace in two)


def test_lone_surrogates_leave_as_valid_text(tmp_path: Path) -> None:
    """W4."""
    told = Conversation()
    told.tell(Message.of("user", "a\ud83d"))
    told.act(Action((Text("b\ud83d"), ToolCall.from_raw(id="c", name="f", raw='{"x": "\\ud83d"}'))))
    trace = told.trace(Source("f", "x"), "t")
    assert trace is not None
    for form in EXPORTS:
        export(trace, tmp_path / f"o{SUFFIX[form]}", form)
        assert readers.read(tmp_path / f"o{SUFFIX[form]}").traces[0].steps[0].action.text == "b\ufffd"


def test_without_the_library_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "atif", None)
    with pytest.raises(MissingDependency, match=r"atif is not installed.*postgrad\[export\]"):
        export(talk(), tmp_path / "t.json", "atif")


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
ARGUMENTS = st.one_of(
    st.dictionaries(WORDS, st.none() | st.integers() | WORDS | st.lists(WORDS, max_size=2), max_size=3).map(json.dumps),
    st.sampled_from(["", "{", '{"a": 1}{"b": 2}', "[1]", "null", "{'a': 1}", '{"_raw": "x"}']),
)
TURNS = st.lists(
    st.tuples(
        WORDS, st.lists(st.tuples(WORDS.filter(bool), ARGUMENTS, st.none() | WORDS), max_size=3), st.none() | WORDS
    ),
    min_size=1,
    max_size=4,
)


def built(turns: list[Any]) -> Trace:
    """A turn: words, calls (name, argument string, result or None), what the user says then. All ids are "0"."""
    told = Conversation()
    told.tell(Message.of("user", "start"))
    for words, calls, user in turns:
        blocks = [ToolCall.from_raw(id="0", name=name, raw=raw) for name, raw, _ in calls]
        told.act(Action(([Text(words)] if words else []) + list[Any](blocks)))
        for call, (_, _, answer) in zip(told.message(-1).tool_calls, calls, strict=True):
            if answer is not None:
                step = told.message(-1).tool_calls.index(call)
                told.answer(ToolResult("0", answer), record=step)
        if user:
            told.tell(Message.of("user", user))
    trace = told.trace(Source("f", "x"), "t")
    assert trace is not None
    return trace


@pytest.mark.parametrize("form", ["atif", "openai", "inspect"])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS)
def test_any_trace_comes_back_with_its_steps_calls_arguments_and_results(
    tmp_path: Path, form: str, turns: list[Any]
) -> None:
    trace, path = built(turns), tmp_path / f"out{SUFFIX[form]}"
    path.unlink(missing_ok=True)
    resolve("export", form, EXPORTS)().write([trace], path, Losses())
    (back,) = resolve("format", FORMAT[form], {FORMAT[form]: readers.READERS[FORMAT[form]]})().read(path).traces
    assert substance(back) == substance(trace)
    if form == "atif":
        assert [s.action.blocks for s in back.steps] == [s.action.blocks for s in trace.steps]


@pytest.mark.parametrize("form", ["atif", "openai"])
@pytest.mark.parametrize("row", READ, ids=lambda row: row["file"])
def test_real_traces_come_back(tmp_path: Path, row: dict[str, str], form: str) -> None:
    traces = [trace for trace in readers.read(SHARED / row["file"].partition("#")[0]).traces if trace.steps]
    path = tmp_path / f"out{'.jsonl' if form == 'openai' else '.json'}"
    export(list(traces), path, form)
    back = list(readers.read(path).traces) if traces else []
    if form == "openai":  # its results are what the model was shown, which SWE-agent frames
        assert totals(back)["tool_results"] == totals(traces)["tool_results"] - sum(len(t.orphans) for t in traces)
        traces, back = [[_unanswered(trace) for trace in each] for each in (traces, back)]
    assert bag(back) == bag(traces)


def _unanswered(trace: Trace) -> Trace:
    steps = tuple(msgspec.structs.replace(step, results=()) for step in trace.steps)
    return msgspec.structs.replace(trace, steps=steps)
