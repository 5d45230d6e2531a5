"""Rows of chat messages: forms of arguments and content, files in every form, look-alikes of other applications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postgrad.core.message import Media, Opaque, Reasoning
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.datasets.messages import ChatMessages
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head


def call(id: str | None, arguments: Any, name: str = "search") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def act(*calls: dict[str, Any], content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **more}


def result(id: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"tool_call_id": id} if id is not None else {}), **more}


TALK = [user("tea?"), act(call("c1", '{"q": "tea"}')), result("c1", "3 kinds"), act(content="Three.")]


def read(folder: Path, *rows: Any, name: str = "rows.jsonl") -> ReadResult:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return readers.read(path)


def only(found: ReadResult) -> Trace:
    (trace,) = found.traces
    return trace


def test_assistant_messages_are_steps_and_earlier_messages_their_contexts(tmp_path: Path) -> None:
    found = read(tmp_path, {"messages": TALK, "tools": [{"type": "function", "function": {"name": "search"}}]})
    trace = only(found)
    assert (found.source.format, found.uses) == ("messages", {"step": 1})
    assert [len(step.request.messages) for step in trace.steps] == [1, 3]
    assert [[r.text for r in step.results] for step in trace.steps] == [["3 kinds"], []]
    assert {step.request.fidelity for step in trace.steps} == {"exact-messages"}
    assert [(event.kind, event.before_step) for event in trace.events] == [("user_text", 0)]


@pytest.mark.parametrize(
    ("written", "raw", "parsed", "broken"),
    [
        ('{"a": 1}', '{"a": 1}', {"a": 1}, False),
        ({"a": 1}, '{"a": 1}', {"a": 1}, False),
        ('"{\\"a\\": 1}"', '{"a": 1}', {"a": 1}, False),
        ('{"a": 1', '{"a": 1', None, True),
        ('{"a": 1}{"b": 2}', '{"a": 1}{"b": 2}', None, True),
        ("", "", {}, False),
        (None, "", {}, False),
    ],
)
def test_arguments_in_every_form(tmp_path: Path, written: Any, raw: str, parsed: Any, broken: bool) -> None:
    """W26: object, string, string in a string, cut, glued, empty, absent."""
    (step,) = only(read(tmp_path, {"messages": [user("a"), act(call("c", written))]})).steps
    (made,) = step.action.tool_calls
    assert (made.arguments_raw, made.arguments, made.parse_error is not None) == (raw, parsed, broken)


def test_repeated_and_missing_ids_are_matched_by_place(tmp_path: Path) -> None:
    """W14: the id "0" for every call, twice in one message; calls without ids, results by name, else in order."""
    same = [
        user("a"),
        act(call("0", "{}"), call("0", "{}")),
        result("0", "x"),
        result("0", "y"),
        act(call("0", "{}")),
        result("0", "z"),
    ]
    none = [
        user("a"),
        act(call(None, "{}", "f"), call(None, "{}", "g")),
        result(None, "G", name="g"),
        result(None, "F"),
    ]
    first, second = read(tmp_path, {"messages": same}, {"messages": none}).traces
    assert [[r.text for r in step.results] for step in first.steps] == [["x", "y"], ["z"]]
    assert [
        (c.name, r.text) for c, r in zip(second.steps[0].action.tool_calls, second.steps[0].results, strict=True)
    ] == [
        ("f", "F"),
        ("g", "G"),
    ]


def test_content_in_every_form(tmp_path: Path) -> None:
    """W27, W28: null, parts, an image by its address, reasoning beside the text, a refusal."""
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    talk = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
        act(content="ok", reasoning_content="hm"),
        user("b"),
        act(content=None, refusal="no"),
    ]
    trace = only(read(tmp_path, {"messages": talk}))
    assert trace.context(trace.steps[0])[0].blocks[1] == Media("image/*", "", "https://x.test/a.png")
    assert trace.steps[0].action.blocks[0] == Reasoning("hm")
    assert trace.steps[1].action.blocks == (Opaque("refusal", "no"),)


def test_every_kind_of_file(tmp_path: Path) -> None:
    """Lines, a list of rows, Parquet with the messages as JSON text, one bare list of messages, a list a line."""
    lines = read(tmp_path, {"messages": TALK})
    (tmp_path / "rows.json").write_text(json.dumps([{"messages": TALK}]))
    (tmp_path / "talk.json").write_text(json.dumps(TALK, indent=1))
    (tmp_path / "lists.jsonl").write_text(
        json.dumps({"source": "x"}) + "\n" + json.dumps(TALK) + "\n" + json.dumps(TALK[:2])
    )
    pq.write_table(pa.Table.from_pylist([{"messages": json.dumps(TALK), "resolved": True}]), tmp_path / "rows.parquet")
    found = {name: readers.read(tmp_path / name) for name in ("rows.json", "talk.json", "lists.jsonl", "rows.parquet")}
    assert {name: totals(each.traces)["steps"] for name, each in found.items()} == {
        "rows.json": 2,
        "talk.json": 2,
        "lists.jsonl": 3,
        "rows.parquet": 2,
    }
    assert {only(found[name]).id for name in ("rows.json", "talk.json", "rows.parquet")} == {only(lines).id}
    assert found["talk.json"].uses == {"context": 1, "step": 2, "result": 1}
    assert found["lists.jsonl"].uses == {"metadata": 1, "step": 2}
    assert only(found["rows.parquet"]).steps[-1].feedback[0].value == 1.0


def test_an_evaluation_row_stays_marked(tmp_path: Path) -> None:
    assert only(read(tmp_path, {"messages": TALK, "metadata": {"purpose": "evaluation"}})).for_evaluation
    assert not only(read(tmp_path, {"messages": TALK})).for_evaluation


def test_broken_rows_never_end_the_reading(tmp_path: Path) -> None:
    """W2, W3: a message that is a number, a row without messages, a torn line; U+2028 in a text does not split one."""
    path = tmp_path / "rows.jsonl"
    odd = {"messages": [user("a\u2028b"), 5, act(content="ok")]}
    data = [json.dumps(odd, ensure_ascii=False), '{"messages": 5}', "", '{"messages": [{"role": "user"']
    path.write_bytes("\n".join(data).encode())
    found = ChatMessages().read(path)
    assert [step.action.text for step in only(found).steps] == ["ok"]
    assert [record.used_as for record in found.records] == ["step", "unknown", "blank", "unreadable"]
    assert [told.line for told in found.diagnostics] == [1, 2, 4]
    assert found.diagnostics[-1].offset == found.records[3].offset


@pytest.mark.parametrize("opening", ["OBSERVATION:\n", "Observation: ", "EXECUTION RESULT of [search]:\n"])
def test_results_told_in_the_users_words_answer_the_call(tmp_path: Path, opening: str) -> None:
    """Agents without a tool role: two calls, the first answered in the user's words; a talk about results is none."""
    asked = act(content="Look.\n<function=search>\n<parameter=q>tea</parameter>\n</function>")
    rows = [user("OBSERVATION: tea is out"), asked, user(f"{opening}3 kinds"), asked, user("Which result: the first?")]
    trace = only(read(tmp_path, {"messages": [*rows, act(content="Three.")]}))
    assert [[result.text for result in step.results] for step in trace.steps] == [["3 kinds"], [], []]
    assert trace.steps[0].action.tool_calls[0].id == trace.steps[0].results[0].call_id
    assert [message.role for message in trace.context(trace.steps[2])] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [event.text for event in trace.events] == ["OBSERVATION: tea is out", "Which result: the first?"]


def test_a_list_of_messages_line_by_line_is_one_conversation(tmp_path: Path) -> None:
    found = read(tmp_path, user("tea?"), act(content="Green."), user("why?"), act(content="It is."))
    assert found.uses == {"context": 2, "step": 2}
    assert [len(step.request.messages) for step in only(found).steps] == [1, 3]


def test_a_lone_surrogate_survives(tmp_path: Path) -> None:
    """W4."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "\\ud83d"}]}\n')
    assert only(readers.read(path)).steps[0].action.text == "\ud83d"


@pytest.mark.parametrize(
    "row",
    [
        {"messages": TALK, "sessionId": "s"},
        {"messages": TALK, "info": {}, "trajectory_format": "mini-swe-agent-1.1"},
        {"messages": TALK, "response": {"choices": []}},
        {"messages": [{"info": {}, "parts": []}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]},
        {"messages": [{"role": "user", "content": "x", "ts": 1}]},
        {"messages": [{"role": "user", "parts": [{"text": "x"}]}]},
        {"messages": [{"type": "user", "content": "x"}]},
        {"messages": [{"role": "model", "content": "x"}]},
        {"role": "user", "content": "x"},
    ],
)
def test_other_applications_sessions_are_refused(row: dict[str, Any]) -> None:
    assert not ChatMessages().recognises(Head.of([row]))


@pytest.mark.parametrize(
    "document",
    [
        [{"role": "user", "content": [{"type": "text", "text": "<task>"}]}, {"role": "assistant", "content": "x"}],
        [{"role": "user", "content": "x", "timestamp": 1}, {"role": "assistant", "content": "y"}],
        [{"role": "user", "parts": []}, {"role": "model", "parts": []}],
    ],
)
def test_lists_of_other_applications_are_refused(document: list[Any]) -> None:
    assert not ChatMessages().recognises(Head.of(document=document))
