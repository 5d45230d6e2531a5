"""Inspect logs: model and tool events, pools and attachments, agents, archives of every kind, broken ones."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from postgrad.core.errors import DataError
from postgrad.core.message import Media, Reasoning, Text
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.inspect_log.packed import members, unpack
from postgrad.traces.formats.inspect_log.reader import Inspect
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head

TOOL = {
    "name": "bash",
    "description": "run",
    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def act(content: Any = "", *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def call(id: str, error: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "function": "bash", "arguments": arguments, "type": "function", "parse_error": error}


def model(messages: list[Any], *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    choices = [{"message": answer, "stop_reason": "stop"} for answer in answers]
    output = {"model": "m-1", "choices": choices, "usage": {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}}
    config = {"temperature": 0.5, "seed": None}
    base = {
        "event": "model",
        "model": "x/m-1",
        "input": messages,
        "tools": [TOOL],
        "tool_choice": "auto",
        "config": config,
    }
    return {**base, "output": output, "timestamp": "2026-01-01T00:00:00+00:00", **more}


def tool(id: str, result: Any = "", **more: Any) -> dict[str, Any]:
    return {"event": "tool", "id": id, "function": "bash", "arguments": {}, "result": result, **more}


def told(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": id, "function": "bash"}


EVENTS = [
    {"event": "sample_init"},
    model([user("go")], act("look", call("c1", cmd="ls"))),
    tool("c1", "a.txt"),
    model([user("go"), act("look", call("c1", cmd="ls")), told("c1", "a.txt")], act("done")),
    {"event": "score", "score": {"value": "C"}},
]


def sample(*events: Any, **more: Any) -> dict[str, Any]:
    return {"id": "s1", "epoch": 1, "input": "go", "target": "", "messages": [], "events": list(events), **more}


def log(*samples: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"eval_id": "e1", "run_id": "r1", "task": "demo", "model": "x/m-1", "packages": {"inspect_ai": "0.3.1"}}
    return {"version": 2, "status": "success", "eval": spec, "samples": list(samples), **more}


def read(folder: Path, value: dict[str, Any]) -> ReadResult:
    path = folder / "log.json"
    path.write_text(json.dumps(value))
    return readers.read(path)


def only(found: ReadResult) -> Trace:
    (trace,) = found.traces
    return trace


def test_model_events_are_steps_with_their_very_contexts(tmp_path: Path) -> None:
    found = read(tmp_path, log(sample(*EVENTS, scores={"match": {"value": "C", "explanation": "fits"}})))
    trace = only(found)
    assert (found.source.format, found.source.app_version, trace.task_id) == ("inspect", "0.3.1", "demo/s1")
    assert totals([trace]) == {
        "steps": 2,
        "tool_calls": 1,
        "tool_results": 1,
        "calls_without_result": 0,
        "flagged_errors": 0,
    }
    first, second = trace.steps
    assert (first.request.fidelity, first.request.missing, first.request.tools[0].name) == ("exact", (), "bash")
    assert first.request.params == {"temperature": 0.5, "tool_choice": "auto"}
    assert (first.candidates[0].model, first.candidates[0].stop_reason) == ("m-1", "stop")
    assert (first.results[0].text, first.results[0].is_error) == ("a.txt", False)
    assert [m.role for m in trace.context(second)] == ["user", "assistant", "tool"]
    assert [(f.kind, f.value, f.text, f.source) for f in second.feedback] == [("score", 1.0, "fits", "match")]


def test_records_are_the_events_counted_from_0(tmp_path: Path) -> None:
    """Two samples of five events; around them the header and each sample's own fields."""
    found = read(tmp_path, log(sample(*EVENTS), sample(*EVENTS) | {"id": "s2"}))
    assert [s.records for t in found.traces for s in t.steps] == [(1,), (3,), (6,), (8,)]
    assert [t.result_records for t in found.traces] == [{"c1": 2}, {"c1": 7}]
    assert found.uses == {"step": 4, "result": 2, "event": 2, "metadata": 2 + 3}


def test_typed_errors(tmp_path: Path) -> None:
    """The error's message stands in for an empty result; a refused and a cancelled call are no plain errors."""
    kinds = ("parsing", "timeout", "permission", "approval", "cancelled", "unknown")
    calls = [call(kind) for kind in kinds]
    events = [model([user("go")], act("", *calls))]
    events += [tool(kind, error={"type": kind, "message": f"no {kind}"}) for kind in kinds]
    (step,) = only(read(tmp_path, log(sample(*events)))).steps
    assert [(r.is_error, r.status, r.text) for r in step.results] == [
        (True, {"approval": "rejected", "cancelled": "interrupted"}.get(kind, "error"), f"no {kind}") for kind in kinds
    ]


def test_malformed_arguments_and_the_apis_own_argument_string(tmp_path: Path) -> None:
    response = {"choices": [{"message": {"tool_calls": [{"id": "a", "function": {"arguments": '{"cmd":  "ls"}'}}]}}]}
    event = model([user("go")], act("", call("a", cmd="ls"), call("b", error="bad JSON")), call={"response": response})
    first, second = only(read(tmp_path, log(sample(event)))).steps[0].action.tool_calls
    assert (first.arguments_raw, first.arguments, first.parse_error) == ('{"cmd":  "ls"}', {"cmd": "ls"}, None)
    assert (second.arguments, second.parse_error) == (None, "bad JSON")


@pytest.mark.parametrize("where", ["message_pool", "events_data"])
def test_contexts_from_a_pool(tmp_path: Path, where: str) -> None:
    """W28 and format version 3: inputs are ranges of places in a pool, long texts stand among the attachments."""
    pool = [user("attachment://h1"), act("look", call("c1", cmd="ls")), told("c1", "attachment://h2")]
    kept = {"message_pool": pool} if where == "message_pool" else {"events_data": {"messages": pool, "calls": []}}
    events = [model([], act("a"), input_refs=[[0, 1]]), model([], act("b"), input_refs=[[0, 2], [2, 3]])]
    trace = only(read(tmp_path, log(sample(*events, attachments={"h1": "long text"}, **kept))))
    contexts = [[m.text or "".join(r.text for r in m.tool_results) for m in trace.context(s)] for s in trace.steps]
    assert contexts == [["long text"], ["long text", "look", "attachment://h2"]]
    assert [(s.request.fidelity, s.request.missing) for s in trace.steps] == [
        ("exact", ()),
        ("partial", ("attachments",)),
    ]


def test_old_logs_keep_events_in_a_transcript_and_texts_beside_it(tmp_path: Path) -> None:
    old = sample() | {"transcript": {"events": [model([user("tc://h")], act("a"))], "content": {"h": "long"}}}
    del old["events"]
    trace = only(read(tmp_path, log(old, version=1)))
    assert trace.context(trace.steps[0])[0].text == "long"


def test_reasoning_media_and_several_choices(tmp_path: Path) -> None:
    thought = {"type": "reasoning", "reasoning": "hm", "signature": "sig"}
    hidden = {"type": "reasoning", "reasoning": "ENC", "redacted": True}
    picture = {"type": "image", "image": "data:image/png;base64,QUJD"}
    event = model([user([picture])], act([thought, hidden, {"type": "text", "text": "a"}]), act("b"))
    trace = only(read(tmp_path, log(sample(event))))
    chosen, other = trace.steps[0].candidates
    assert chosen.message.blocks == (Reasoning("hm", "sig"), Reasoning("", encrypted="ENC"), Text("a"))
    assert (chosen.chosen, other.chosen, other.message.text) == (True, False, "b")
    assert isinstance(trace.context(trace.steps[0])[0].blocks[0], Media)


def test_inner_agents_and_scorers_are_traces_of_their_own(tmp_path: Path) -> None:
    def span(id: str, kind: str, name: str, parent: str | None = None) -> dict[str, Any]:
        return {"event": "span_begin", "id": id, "type": kind, "name": name, "parent_id": parent}

    events = [
        span("a", "agent", "react"),
        model([user("go")], act("", call("c", cmd="x")), span_id="a"),
        span("t", "tool", "helper", "a"),
        span("b", "agent", "helper", "t"),
        model([user("sub")], act("sub done"), span_id="b"),
        tool("c", "sub done", span_id="a"),
        span("sc", "scorer", "judge"),
        model([user("grade")], act("C"), span_id="sc"),
    ]
    found = read(tmp_path, log(sample(*events, scores={"judge": {"value": 0.5}})))
    main, helper, judge = found.traces
    assert [(t.steps[0].agent, t.steps[0].kind, t.parent) for t in found.traces] == [
        ("react", "main", None),
        ("helper", "subagent", main.id),
        ("judge", "subagent", main.id),
    ]
    assert (main.tool_results, [f.value for f in main.steps[-1].feedback], judge.steps[-1].feedback) == (1, [0.5], ())
    assert [e.kind for e in main.events] == ["user_text", "spawn", "spawn"]
    assert len({main.id, helper.id, judge.id}) == 3


def test_what_happened_beside_the_steps(tmp_path: Path) -> None:
    events = [
        model([user("go")], act("", call("c", cmd="rm"))),
        {
            "event": "approval",
            "decision": "reject",
            "approver": "human",
            "explanation": "too risky",
            "call": {"id": "c"},
        },
        {"event": "sample_limit", "type": "token", "message": "out of tokens"},
        {"event": "interrupt", "source": "user_cancel", "interrupted": "generate"},
        {"event": "compaction", "type": "summary"},
        {"event": "input", "input": "go on"},
        model([user("go")], error="Cancelled by operator"),
        {"event": "error", "error": {"message": "boom"}},
        {"event": "novelty"},
    ]
    found = read(tmp_path, log(sample(*events)))
    trace = only(found)
    assert [(e.kind, e.text, e.before_step) for e in trace.events] == [
        ("user_text", "go", 0),
        ("approval", "too risky", 1),
        ("sample_limit", "out of tokens", 1),
        ("interrupt", "", 1),
        ("compaction", "", 1),
        ("user_text", "go on", 1),
        ("api_error", "Cancelled by operator", 1),
        ("error", "boom", 1),
    ]
    assert trace.events[1].data == {"decision": "reject", "approver": "human", "call": "c"}
    assert [t.what for t in found.diagnostics] == ["unknown event 'novelty', 1 of them"]


def test_results_that_only_the_messages_hold(tmp_path: Path) -> None:
    """No tool events: the result is in the next input, the last one in the sample's final messages."""
    one, two = act("", call("c1", cmd="a")), act("", call("c2", cmd="b"))
    events = [model([user("go")], one), model([user("go"), one, told("c1", "A")], two)]
    final = [user("go"), one, told("c1", "A"), two, told("c2", "B")]
    assert [s.results[0].text for s in only(read(tmp_path, log(sample(*events, messages=final)))).steps] == ["A", "B"]


def test_a_sample_without_events_is_read_from_its_messages(tmp_path: Path) -> None:
    broken = told("lost", "") | {"error": {"type": "timeout", "message": "too slow"}}
    found = read(
        tmp_path, log(sample(messages=[user("go"), act("a", call("c")), told("c", "r")]), sample(messages=[broken]))
    )
    first, second = found.traces
    assert (first.steps[0].request.fidelity, first.steps[0].results[0].text) == ("reconstructed", "r")
    assert (len(second.steps), [r.text for r in second.orphans]) == (0, ["too slow"])
    assert totals([second]) == {
        "steps": 0,
        "tool_calls": 0,
        "tool_results": 1,
        "calls_without_result": 0,
        "flagged_errors": 1,
    }


def archive(value: dict[str, Any], *, header: bool = True) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("_journal/start.json", json.dumps({key: value[key] for key in ("version", "eval")}))
        for one in value["samples"]:
            packed.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        if header:
            packed.writestr("header.json", json.dumps({k: v for k, v in value.items() if k != "samples"}))
    return data.getvalue()


def zstd_archive(files: dict[str, Any]) -> bytes:
    """Method 93, as newer writers use: local headers and a directory, written by hand."""
    body, directory = b"", b""
    for name, value in files.items():
        plain = json.dumps(value).encode()
        packed, raw = zstandard.ZstdCompressor().compress(plain), name.encode()
        fields = struct.pack("<5H3I2H", 63, 0, 93, 0, 0, 0, len(packed), len(plain), len(raw), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + fields + struct.pack("<3H2I", 0, 0, 0, 0, len(body)) + raw
        body += b"PK\x03\x04" + fields + raw + packed
    end = struct.pack("<4H2IH", 0, 0, len(files), len(files), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def write(folder: Path, data: bytes) -> Path:
    path = folder / "log.eval"
    path.write_bytes(data)
    return path


def test_archives_and_documents_are_one_session(tmp_path: Path) -> None:
    value = log(sample(*EVENTS), sample(*EVENTS) | {"id": "s10"}, sample(*EVENTS) | {"id": "s2", "epoch": 2})
    document = read(tmp_path, value)
    files = {"header.json": {k: v for k, v in value.items() if k != "samples"}}
    files |= {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in value["samples"]}
    for data in (archive(value), zstd_archive(files)):
        found = readers.read(write(tmp_path, data))
        assert {t.id for t in found.traces} == {t.id for t in document.traces}
        assert (found.source.format, totals(found.traces)) == ("inspect", totals(document.traces))
        assert found.diagnostics == ()


def test_samples_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    value = log(*(sample(*EVENTS) | {"id": number} for number in (10, 9, 1)))
    assert [t.task_id for t in readers.read(write(tmp_path, archive(value))).traces] == ["demo/1", "demo/9", "demo/10"]


def test_a_crashed_run_has_no_header_and_a_torn_file_no_directory(tmp_path: Path) -> None:
    """The last member of the torn file is cut: it is told, the samples before it are read."""
    value = log(sample(*EVENTS), sample(*EVENTS) | {"id": "s2"})
    crashed = readers.read(write(tmp_path, archive(value, header=False)))
    assert (len(crashed.traces), [t.what for t in crashed.diagnostics]) == (
        2,
        ["the log has no header: its run did not end"],
    )
    data = archive(value)
    torn = readers.read(write(tmp_path, data[: data.index(b"samples/s2") + 60]))
    assert [t.task_id for t in torn.traces] == ["demo/s1"]
    words = " ".join(told.what for told in torn.diagnostics)
    assert "torn" in words
    assert "samples/s2_epoch_1.json cannot be unpacked" in words


def test_a_member_of_unknown_packing_is_told(tmp_path: Path) -> None:
    data = bytearray(zstd_archive({"header.json": log(), "samples/a_epoch_1.json": sample(*EVENTS)}))
    found, torn = members(bytes(data))
    assert (torn, [unpack(bytes(data), m) is not None for m in found]) == (False, [True, True])
    broken = bytes(data).replace(zstandard.FRAME_HEADER, b"\0\0\0\0")
    assert [unpack(broken, m) for m in members(broken)[0]] == [None, None]


def test_hostile_samples_never_raise(tmp_path: Path) -> None:
    odd = [
        5,
        None,
        [],
        {"event": "model"},
        {"event": "model", "input": 5, "output": {"choices": [{"message": {}}, 7]}},
        {"event": "tool"},
    ]
    refs = model([], act("a"), input_refs=[[0, 99], ["x"], 5, [-1, 2]])
    found = read(tmp_path, log(sample(*odd, refs, scores=[1], attachments=7), "x", {"events": "y", "messages": [5]}))
    assert sum(len(t.steps) for t in found.traces) == 2
    assert sum(found.uses.values()) == len(found.records)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    """NaN and infinity in scores, as the JSON of older logs has them."""
    path = tmp_path / "log.json"
    text = json.dumps(
        log(sample(*EVENTS, scores={"a": {"value": float("nan")}, "b": {"value": {"x": 1}}, "c": {"value": True}}))
    )
    path.write_text(text)
    assert "NaN" in text
    assert [f.value for f in only(readers.read(path)).steps[-1].feedback] == [None, None, 1.0]


def test_a_newer_version_is_read_and_told(tmp_path: Path) -> None:
    found = read(tmp_path, log(sample(*EVENTS), version=9))
    assert (len(found.traces), [t.what for t in found.diagnostics]) == (1, ["log version 9 is newer than 3"])


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    for document in ({"eval": {}, "status": "x", "version": 1}, {"version": 2, "status": "success"}, {"eval": "x"}, []):
        assert not Inspect().recognises(Head.of(document=document))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr("conversations.json", "[]")
    path = write(tmp_path, other.getvalue())
    assert not Inspect().recognises(Head(path))
    with pytest.raises(DataError, match="not an Inspect log"):
        Inspect().read(path)
    broken = tmp_path / "log.json"
    broken.write_text('{"version": 1, "status": ')
    with pytest.raises(DataError, match="not an Inspect log"):
        Inspect().read(broken)
