"""ShareGPT rows: speakers, calls in turns and in texts, files in every form, broken rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postgrad.core.message import Reasoning
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.datasets.sharegpt import ShareGPT
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head

TOOLS = [{"name": "search", "description": "", "parameters": {"type": "object", "properties": {"q": {}}}}]
CALL = json.dumps({"name": "search", "arguments": {"q": "tea"}})


def turns(*said: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"from": who, "value": what} for who, what in said]


ROW = {
    "conversations": turns(("human", "tea?"), ("function_call", CALL), ("observation", '{"n": 3}'), ("gpt", "Three.")),
    "tools": json.dumps(TOOLS),
}


def written(folder: Path, rows: list[Any], name: str = "data.json") -> Path:
    path = folder / name
    data = json.dumps(rows) if name.endswith(".json") else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(data)
    return path


def read(folder: Path, *rows: Any, name: str = "data.json") -> ReadResult:
    return readers.read(written(folder, list(rows), name))


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def said(trace: Trace, step: int) -> list[str]:
    return [
        m.role + ":" + (m.text or "".join(r.text for r in m.tool_results)) for m in trace.context(trace.steps[step])
    ]


def test_a_function_call_turn_is_a_step_and_its_observation_the_result(tmp_path: Path) -> None:
    result = read(tmp_path, ROW)
    trace = only(result)
    assert result.source.format == "sharegpt"
    assert [[c.name for c in step.action.tool_calls] for step in trace.steps] == [["search"], []]
    assert [[r.text for r in step.results] for step in trace.steps] == [['{"n": 3}'], []]
    assert trace.steps[0].action.tool_calls[0].arguments == {"q": "tea"}
    assert (trace.steps[0].results[0].is_error, trace.steps[0].request.tools[0].name) == (None, "search")
    assert said(trace, 1) == ["user:tea?", "assistant:", 'tool:{"n": 3}']
    assert (result.uses, trace.result_records) == ({"step": 1}, {"call_0": 0})


def test_every_kind_of_file_gives_the_same_conversations(tmp_path: Path) -> None:
    """A list, lines, lines packed with gzip, Parquet. Records count from 0 in lists and tables, lines from 1."""
    other = {"conversations": turns(("human", "a"), ("gpt", "b")), "tools": "[]"}
    listed = read(tmp_path, ROW, other)
    lines = read(tmp_path, ROW, other, name="data.jsonl")
    packed = tmp_path / "data.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "data.jsonl").read_bytes()))
    table = tmp_path / "data.parquet"
    pq.write_table(pa.Table.from_pylist([ROW, other]), table)
    for result, first in ((listed, 0), (lines, 1), (readers.read(packed), 1), (readers.read(table), 0)):
        assert [trace.id for trace in result.traces] == [trace.id for trace in listed.traces]
        assert [step.records for trace in result.traces for step in trace.steps] == [(first,), (first,), (first + 1,)]
        assert [record.used_as for record in result.records] == ["step", "step"]


def test_one_conversation_in_a_file_has_a_record_for_each_turn(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(ROW, indent=1))
    result = readers.read(path)
    assert result.uses == {"context": 1, "step": 2, "result": 1, "metadata": 1}
    assert [step.records for step in only(result).steps] == [(1,), (3,)]
    assert only(result).id == only(read(tmp_path, ROW)).id


def test_fidelity_says_what_is_not_there(tmp_path: Path) -> None:
    """All messages known: exact but for tools and parameters; neither system nor tools, but calls: partial."""
    plain = {"conversations": turns(("human", "a"), ("gpt", "b"))}
    system = {"system": "Be brief.", "conversations": ROW["conversations"]}
    bare = {"conversations": ROW["conversations"]}
    found = [trace.steps[0].request for trace in read(tmp_path, ROW, plain, system, bare).traces]
    assert [(r.fidelity, r.missing) for r in found] == [
        ("exact-messages", ("sampling parameters",)),
        ("exact-messages", ("sampling parameters",)),
        ("exact-messages", ("tool schemas", "sampling parameters")),
        ("partial", ("system prompt", "tool schemas", "sampling parameters")),
    ]


def test_hermes_calls_and_results_are_matched_in_order(tmp_path: Path) -> None:
    """Two calls without ids in one turn, two results in one turn; the tools stand in the system prompt."""
    system = '<tools>[{"name": "f", "parameters": {}}]</tools>'
    calls = '<think>both</think>\n<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>\n'
    calls += '<tool_call>{"name": "f", "arguments": {"n": 2}}</tool_call>'
    answers = "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
    row = {
        "conversations": turns(("system", system), ("human", "go"), ("gpt", calls), ("tool", answers), ("gpt", "ok"))
    }
    trace = only(read(tmp_path, row))
    first = trace.steps[0]
    assert first.action.blocks[0] == Reasoning("both")
    assert [(c.arguments, r.text) for c, r in zip(first.action.tool_calls, first.results, strict=True)] == [
        ({"n": 1}, "one"),
        ({"n": 2}, "two"),
    ]
    assert first.request.tools[0].name == "f"


def test_results_without_a_call_and_calls_without_a_result(tmp_path: Path) -> None:
    """W17, W18: the orphan stays in the contexts and in no step; the pending call is a step."""
    row = {"conversations": turns(("human", "a"), ("observation", "lost"), ("gpt", "b"), ("function_call", CALL))}
    result = read(tmp_path, row)
    trace = only(result)
    assert totals(result.traces) == {
        "steps": 2,
        "tool_calls": 1,
        "tool_results": 1,
        "calls_without_result": 1,
        "flagged_errors": 0,
    }
    assert [orphan.text for orphan in trace.orphans] == ["lost"]
    assert said(trace, 0) == ["user:a", "tool:lost"]
    assert ["call is not there" in told.what for told in result.diagnostics] == [True]


@pytest.mark.parametrize("speaker", ["gpt", "assistant", "chatgpt", "model", "bot"])
def test_names_of_the_model(tmp_path: Path, speaker: str) -> None:
    assert len(only(read(tmp_path, {"conversations": turns(("human", "a"), (speaker, "b"))})).steps) == 1


def test_texts_with_template_marks(tmp_path: Path) -> None:
    """One string a row, with ChatML or Llama 3 marks; the last answer may be cut."""
    chatml = "<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhey<|im_end|>"
    llama = (
        "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nhey"
    )
    result = read(tmp_path, {"text": chatml}, {"text": llama})
    assert [said(trace, 0) for trace in result.traces] == [["system:Be.", "user:hi"], ["user:hi"]]
    assert [trace.steps[0].action.text for trace in result.traces] == ["hey", "hey"]


def test_broken_rows_are_told_and_the_others_read(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    rows = [
        json.dumps(ROW),
        '{"conversations": [{"from": "human"',
        json.dumps({"conversations": 5}),
        "[1]",
        json.dumps(ROW)[:-9],
    ]
    path.write_text("\n".join(rows))
    result = ShareGPT().read(path)
    assert len(result.traces) == 1
    assert [record.used_as for record in result.records] == [
        "step",
        "unreadable",
        "unknown",
        "unreadable",
        "unreadable",
    ]
    assert [told.line for told in result.diagnostics] == [2, 3, 4, 5]
    assert result.records[4].status == "truncated"


def test_odd_turns_are_kept_opaque(tmp_path: Path) -> None:
    row = {
        "conversations": [
            *turns(("human", None), ("narrator", "x")),
            7,
            {"from": "gpt", "value": {"a": 1}},
            *turns(("gpt", "b")),
        ]
    }
    trace = only(ShareGPT().read(written(tmp_path, [row])))
    assert [step.action.text for step in trace.steps] == ['{"a": 1}', "b"]


def test_a_list_cut_in_the_middle_is_read_to_its_last_whole_row(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    text = json.dumps([ROW, ROW | {"id": "2"}, ROW])
    path.write_text(text[: text.rindex("function_call")])
    result = readers.read(path)
    assert [record.used_as for record in result.records] == ["step", "step", "unreadable"]
    assert len(result.traces) == 2


def test_a_context_turn_of_weight_0_is_no_step(tmp_path: Path) -> None:
    row = {
        "conversations": [
            {"from": "human", "value": "a"},
            {"from": "gpt", "value": "b", "weight": 0},
            *turns(("gpt", "c")),
        ]
    }
    trace = only(read(tmp_path, row))
    assert [step.action.text for step in trace.steps] == ["c"]
    assert said(trace, 0) == ["user:a", "assistant:b"]


@pytest.mark.parametrize(
    "row",
    [
        {"conversations": [{"role": "user", "content": "x", "parts": []}]},
        {"conversations": ["a", "b"]},
        {"text": "plain words"},
        {"messages": [{"role": "user", "content": "x"}]},
        {"conversation_id": "c", "mapping": {}},
    ],
)
def test_look_alikes_are_refused(row: dict[str, Any]) -> None:
    assert not ShareGPT().recognises(Head.of([row], document=None))


def test_an_observation_in_the_users_words_answers_the_call(tmp_path: Path) -> None:
    asked = "<function=search>\n<parameter=q>tea</parameter>\n</function>"
    trace = only(
        read(tmp_path, {"conversations": turns(("human", "tea?"), ("gpt", asked), ("human", "OBSERVATION:\n3"))})
    )
    assert [[result.text for result in step.results] for step in trace.steps] == [["3"]]
    assert said(only(read(tmp_path, ROW)), 1)[0] == "user:tea?"
