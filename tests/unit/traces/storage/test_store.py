"""The store: the same file adds nothing, a grown one replaces itself, one session is one trace."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import dataset

from postgrad.core.errors import DataError
from postgrad.core.message import Message, Tool, ToolCall
from postgrad.core.trace import Candidate, Request, Source, Step, Trace
from postgrad.traces.formats.claude_code.reader import ClaudeCode
from postgrad.traces.readers import read
from postgrad.traces.records import ReadResult, RecordTable
from postgrad.traces.storage.store import Store
from unit.traces.formats.claude_file import ClaudeFile, call, text


def session(*answers: str, name: str = "a") -> ClaudeFile:
    """A session with a question and an answer for every word."""
    file = ClaudeFile(session=name)
    for number, answer in enumerate(answers):
        file.user(f"question {number}")
        file.assistant(f"m {answer}", text(answer))
    return file


def actions(store: Store) -> list[list[str]]:
    return [[step.action.text for step in trace.steps] for trace in store.traces()]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., ReadResult]:
    """Write a file, read it, add it to the store in `tmp_path / "store"`."""

    def adds(data: bytes, name: str = "session.jsonl") -> ReadResult:
        path = tmp_path / name
        path.write_bytes(data)
        result = read(path)
        Store(tmp_path / "store").add(result)
        return result

    return adds


def test_what_went_in_comes_out(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    file = session("one")
    file.assistant("m 2", call("t1", command="ls"))
    file.result("t1", "boom", is_error=True)
    result = add(file.data)
    store = Store(tmp_path / "store")
    assert tuple(store.traces()) == result.traces
    assert store.raw(result.source.sha256) == file.data
    records = store.records(result.source.sha256).to_pylist()
    assert records == [msgspec.to_builtins(record) for record in result.records]


def test_plain_columns_are_readable_by_any_parquet_reader(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    file = session("one")
    file.assistant("m 2", call("t1"), call("t2"))
    file.result("t1", is_error=True)
    add(file.data)
    (row,) = pq.read_table(tmp_path / "store" / "traces").to_pylist()
    names = ("format", "steps", "tool_calls", "tool_results", "calls_without_result", "flagged_errors")
    assert [row[name] for name in names] == ["claude_code", 2, 2, 1, 1, 1]
    assert (row["models"], row["first_time"]) == (["claude-x"], "2026-01-01T00:00:01.000Z")
    assert json.loads(row["trace"])["id"] == row["id"]


def test_the_same_file_again_adds_nothing(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    data = session("one", "two").data
    add(data)
    before = listing(tmp_path / "store")
    add(data)
    add(data, "a copy.jsonl")
    add(gzip.compress(data), "packed.jsonl.gz")
    assert listing(tmp_path / "store").keys() == before.keys()
    assert actions(Store(tmp_path / "store")) == [["one", "two"]]


def test_add_says_whether_the_source_is_new(tmp_path: Path) -> None:
    result = ClaudeCode().read(session("one").write(tmp_path / "s.jsonl"))
    store = Store(tmp_path / "store")
    assert [store.add(result), store.add(result)] == [True, False]


def test_a_grown_file_replaces_its_older_reading_even_when_that_ended_in_a_torn_line(
    tmp_path: Path, add: Callable[..., ReadResult]
) -> None:
    data = session("one", "two", "three").data
    add(data[:-10])
    add(data)
    store = Store(tmp_path / "store")
    assert len(store.sources()) == 1
    assert actions(store) == [["one", "two", "three"]]
    assert pq.read_table(tmp_path / "store" / "traces").num_rows == 1, "nobody sees the older reading"
    assert store.raw(store.sources()[0].sha256) == data


def test_a_grown_file_writes_only_its_new_bytes(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    """The piece of the beginning stays where it is; the second piece holds the rest."""
    short, data = session("one", "two").data, session("one", "two", "three").data
    assert data.startswith(short)
    add(short)
    before = listing(tmp_path / "store" / "raw")
    add(data)
    (source,) = Store(tmp_path / "store").sources()
    assert [piece.size for piece in source.pieces] == [len(short), len(data) - len(short)]
    assert before.items() <= listing(tmp_path / "store" / "raw").items()


def test_two_files_of_one_session_give_one_trace(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    """A resumed file copies the rows (new session id) and goes on; order of adding does not matter."""
    add(session("one", "two", "three", name="b").data, "b.jsonl")
    add(session("one", "two", name="a").data, "a.jsonl")
    store = Store(tmp_path / "store")
    assert len(store.sources()) == 2
    assert actions(store) == [["one", "two", "three"]]


def test_sessions_that_went_different_ways_are_both_kept(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    add(session("one", "two", "three").data, "a.jsonl")
    add(session("one", "other").data, "b.jsonl")
    store = Store(tmp_path / "store")
    assert actions(store) == [["one", "two", "three"], ["one", "other"]]
    first, second = [trace.id for trace in store.traces()]
    assert second.startswith(f"{first}-")


def test_odd_text_survives(tmp_path: Path) -> None:
    """Lone surrogates, NaN and integers beyond 64 bits, which strict JSON libraries refuse."""
    result = ClaudeCode().read(session("one").write(tmp_path / "s.jsonl"))
    (trace,) = result.traces
    strange = ToolCall("c", "f", "{}", {"text": "\ud83d", "big": 10**30})
    step = msgspec.structs.replace(trace.steps[0].candidates[0], message=Message("assistant", (strange,)))
    changed = msgspec.structs.replace(trace, steps=(msgspec.structs.replace(trace.steps[0], candidates=(step,)),))
    store = Store(tmp_path / "store")
    store.add(msgspec.structs.replace(result, traces=(changed,)))
    assert list(store.traces()) == [changed]


def test_names_that_are_no_text_are_stored_as_their_escapes(tmp_path: Path) -> None:
    """A file's name, a version, a row's type: Parquet takes only UTF-8."""
    file = session("one")
    file.rows[0] |= {"version": "2\ud83d"}
    file.row("new\ud83d", parent=None)
    result = ClaudeCode().read(file.write(tmp_path / os.fsdecode(b"s\xff.jsonl")))
    store = Store(tmp_path / "store")
    store.add(result)
    (source,) = store.sources()
    assert source.path == result.source.path
    assert "new\\ud83d" in store.records(source.sha256).column("row_kind").to_pylist()
    assert list(store.traces()) == list(result.traces)


def test_raw_bytes_are_private_and_optional(tmp_path: Path) -> None:
    result = ClaudeCode().read(session("one").write(tmp_path / "s.jsonl"))
    Store(tmp_path / "with").add(result)
    (raw,) = (tmp_path / "with" / "raw").iterdir()
    assert raw.stat().st_mode & 0o077 == 0
    assert zstandard.ZstdDecompressor().decompress(raw.read_bytes()) == Path(result.source.path).read_bytes()
    without = Store(tmp_path / "without")
    without.add(result, raw="drop")
    assert len(list(without.traces())) == 1
    assert not (tmp_path / "without" / "raw").exists()
    with pytest.raises(DataError, match="does not hold these bytes"):
        without.raw(result.source.sha256)


def test_a_file_that_changed_since_it_was_read_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = session("one").write(tmp_path / "s.jsonl")
    result = ClaudeCode().read(path)
    path.write_bytes(session("two").data)
    store = Store(tmp_path / "store")
    with pytest.raises(DataError, match="changed while it was read"):
        store.add(result)
    assert store.sources() == []
    left = [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert sorted(left) == [".lock", "store.json"]


def test_a_file_that_grew_since_it_was_read_is_kept_as_it_was_read(tmp_path: Path) -> None:
    path = session("one").write(tmp_path / "s.jsonl")
    result = ClaudeCode().read(path)
    path.write_bytes(session("one", "two").data)
    store = Store(tmp_path / "store")
    store.add(result)
    assert store.raw(result.source.sha256) == session("one").data


def test_what_the_journal_does_not_name_is_not_in_the_store(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    """The state after a kill between a segment and its line, also with half of the line; the next writer tidies up."""
    add(session("one").data)
    journal = tmp_path / "store" / "journal.jsonl"
    line = journal.read_bytes()
    store = Store(tmp_path / "store")
    for torn in (b"", line[:40], line[:-1]):
        journal.write_bytes(torn)
        assert list(store.traces()) == []
        add(session("one").data)
        assert actions(store) == [["one"]]
        assert len(list((tmp_path / "store" / "traces").iterdir())) == 1


def test_half_written_files_of_a_killed_process_are_removed(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    add(session("one").data)
    for kind in ("traces", "raw"):
        (tmp_path / "store" / kind / ".0123.parquet.tmp").write_bytes(b"half")
    add(session("two", name="b").data, "b.jsonl")
    assert not list((tmp_path / "store").rglob("*.tmp"))


def test_one_process_writes_at_a_time(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    result = add(session("one").data)
    store = Store(tmp_path / "store")
    with store.writing(), pytest.raises(DataError, match="another process is writing"):
        store.add(result)
    assert actions(store) == [["one"]]


def test_every_table_is_a_dataset_for_other_programs(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    """Several segments read as one table; messages join by id, each once for the traces that share it."""
    add(session("one", "two").data)
    add(session("other", name="b").data, "b.jsonl")
    tables = {kind: dataset.dataset(tmp_path / "store" / kind).to_table() for kind in ("records", "traces", "messages")}
    texts = {row["id"]: json.loads(row["blocks"])[0]["text"] for row in tables["messages"].to_pylist()}
    used = {trace["path"][-7:]: [texts[key] for key in trace["messages"]] for trace in tables["traces"].to_pylist()}
    assert used == {"n.jsonl": ["question 0", "one", "question 1", "two"], "b.jsonl": ["question 0", "other"]}
    assert tables["records"].group_by(["source", "used_as"]).aggregate([([], "count_all")]).num_rows == 4


def test_traces_of_one_source_share_messages_and_tools(tmp_path: Path) -> None:
    """Two calls with the same request and tools: 1 question, 2 answers and 1 list of tools are 4 rows."""
    tool = Tool("weather", "Tells it.", {"type": "object", "properties": {"city": {"type": "string"}}})
    ask = Message.of("user", "Weather in Rome?")
    traces = []
    for number in range(2):
        step = Step(0, Request((ask.id,), (tool,)), (Candidate(Message.of("assistant", f"answer {number}")),))
        traces.append(Trace(f"t{number}", Source("x", "test", "0" * 64), {ask.id: ask}, (step,), index=number))
    (tmp_path / "x").write_bytes(b"data")
    source = Source(str(tmp_path / "x"), "test", hashlib.sha256(b"data").hexdigest())
    traces = [msgspec.structs.replace(trace, source=source) for trace in traces]
    store = Store(tmp_path / "store")
    store.add(ReadResult(source, 4, RecordTable(), traces))
    assert list(store.traces()) == traces
    roles = pq.read_table(tmp_path / "store" / "messages").column("role").to_pylist()
    assert sorted(roles) == ["assistant", "assistant", "tools", "user"]


def test_a_store_of_another_version_is_refused(tmp_path: Path, add: Callable[..., ReadResult]) -> None:
    result = add(session("one").data)
    (tmp_path / "store" / "store.json").write_text('{"version": 1}')
    for use in (lambda: list(Store(tmp_path / "store").traces()), lambda: Store(tmp_path / "store").add(result)):
        with pytest.raises(DataError, match="of version 1"):
            use()


def test_other_folders_are_refused(tmp_path: Path) -> None:
    result = ClaudeCode().read(session("one").write(tmp_path / "s.jsonl"))
    with pytest.raises(DataError, match="no trace store here"):
        list(Store(tmp_path).traces())
    with pytest.raises(DataError, match="not a trace store"):
        Store(tmp_path).add(result)


def test_many_traces_of_one_file(tmp_path: Path) -> None:
    """More traces than one row group; order kept."""
    rows: list[dict[str, Any]] = []
    for number in range(40):
        ask = [{"role": "user", "content": f"q{number}"}]
        answer = {"role": "assistant", "content": f"a{number}"}
        rows.append({"request": {"messages": ask}, "response": {"choices": [{"message": answer}]}})
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store = Store(tmp_path / "store")
    store.add(read(path))
    traces: list[Trace] = list(store.traces())
    assert [trace.steps[0].action.text for trace in traces] == [f"a{number}" for number in range(40)]
