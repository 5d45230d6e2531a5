"""What holds for every reader of a coding agent: what it recognises, what it refuses, the books, copies, torn files."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.errors import DataError
from postgrad.traces import READERS, readers
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head
from unit.traces.formats import agent_files
from unit.traces.formats.agent_files import WRITERS, write_json, write_lines

OURS = sorted({name for name, _ in WRITERS.values()})
TWO_STEPS = {"steps": 2, "tool_calls": 1, "tool_results": 1, "calls_without_result": 0, "flagged_errors": 0}
WITHOUT_CALLS = {**TWO_STEPS, "tool_calls": 0, "tool_results": 0}


def read(path: Path, name: str) -> ReadResult:
    return readers.reader(name).read(path)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_source_is_recognised_by_its_reader_and_by_no_other_of_ours(kind: str, tmp_path: Path) -> None:
    name, write = WRITERS[kind]
    head = Head(write(tmp_path))
    assert [other for other in OURS if readers.reader(other).recognises(head)] == [name]


@pytest.mark.parametrize("kind", WRITERS)
def test_counts_and_books(kind: str, tmp_path: Path) -> None:
    """Two steps, one call, one result; Aider's edits are text. Every record has a use."""
    name, write = WRITERS[kind]
    result = read(write(tmp_path), name)
    assert totals(result.traces) == (WITHOUT_CALLS if name.startswith("aider") else TWO_STEPS)
    assert all(record.used_as for record in result.records)
    assert sum(result.uses.values()) == len([record for record in result.records if record.status != "blank"])
    assert "unknown" not in result.uses
    assert result.diagnostics == ()


@pytest.mark.parametrize("kind", WRITERS)
def test_the_next_context_holds_the_action_and_its_result(kind: str, tmp_path: Path) -> None:
    name, write = WRITERS[kind]
    for trace in read(write(tmp_path), name).traces:
        for step, following in zip(trace.steps, trace.steps[1:], strict=False):
            seen = {result.call_id for message in trace.context(following) for result in message.tool_results}
            if following.request.fidelity != "none":
                assert {result.call_id for result in step.results} <= seen
                assert step.action.text in "\n".join(message.text for message in trace.context(following))


@pytest.mark.parametrize("kind", WRITERS)
def test_a_copy_elsewhere_has_the_same_trace_ids(kind: str, tmp_path: Path) -> None:
    """W13: ids come from the content, so two copies of one session are one trace in a store."""
    name, write = WRITERS[kind]
    path = write(tmp_path)
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy)
    assert [trace.id for trace in read(copy, name).traces] == [trace.id for trace in read(path, name).traces]


@pytest.mark.parametrize(
    ("one", "other"),
    [("cline history", "cline task"), ("goose lines", "goose database"), ("openhands document", "openhands folder")],
)
def test_two_forms_of_one_session_are_one_trace(one: str, other: str, tmp_path: Path) -> None:
    """W13."""
    ids = []
    for kind in (one, other):
        name, write = WRITERS[kind]
        (tmp_path / kind).mkdir()
        ids.append([trace.id for trace in read(write(tmp_path / kind), name).traces])
    assert ids[0] == ids[1]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_torn_file_is_read_to_its_last_whole_record(kind: str, tmp_path: Path) -> None:
    """W2, W6: nothing raises, whatever the place where the file stops; what is there is accounted for."""
    name, write = WRITERS[kind]
    path = write(tmp_path)
    if path.is_dir():
        path = max((file for file in path.rglob("*.json")), key=lambda file: file.stat().st_size)
        whole, source = path.read_bytes(), tmp_path / path.relative_to(tmp_path).parts[0]
    else:
        whole, source = path.read_bytes(), path
    for stop in {len(whole) * part // 8 for part in range(1, 8)}:
        path.write_bytes(whole[:stop])
        with suppress(DataError):  # a database without its end is no database, a document without a start no document
            assert all(record.used_as for record in read(source, name).records)


ODD = [None, True, 0, -1, 2**70, 1.5, "", "x", "\ud83d", [], {}, [[]], [None], {"": None}, {"a": [1]}]


def mutants(value: Any, rng: random.Random) -> Any:
    """The value with some parts of it of another type."""
    if rng.random() < 0.04:
        return rng.choice(ODD)
    if isinstance(value, dict):
        return {key: mutants(item, rng) for key, item in value.items() if rng.random() > 0.03}
    if isinstance(value, list):
        kept = [mutants(item, rng) for item in value if rng.random() > 0.03]
        return kept + kept[:1] if rng.random() < 0.05 else kept
    return value


JSON_SOURCES: dict[str, tuple[str, Any]] = {
    "openhands": ("document", agent_files.openhands_events),
    "openhands_v1": ("lines", agent_files.sdk_events),
    "swe_agent": ("document", agent_files.swe_agent_run),
    "mini_swe_agent": ("document", agent_files.mini_messages),
    "cline": ("document", agent_files.cline_history),
    "copilot_cli": ("lines", agent_files.copilot_rows),
    "cursor_cli": ("lines", agent_files.cursor_rows),
    "vscode_chat": ("document", agent_files.vscode_session),
    "continue": ("document", agent_files.continue_session),
    "continue_dev_data": ("lines", agent_files.continue_events),
    "goose": ("lines", agent_files.goose_messages),
}


@pytest.mark.parametrize("name", JSON_SOURCES)
def test_records_of_wrong_types_never_raise_and_are_accounted_for(name: str, tmp_path: Path) -> None:
    """60 files a format, each with a few values of another type, keys missing, items twice."""
    shape, build = JSON_SOURCES[name]
    rng = random.Random(name)
    for number in range(60):
        value = mutants(build(), rng)
        rows = value if isinstance(value, list) else [value]
        path = tmp_path / f"{number}.json"
        if shape == "lines":
            write_lines(path, rows)
        elif isinstance(value, dict | list):
            write_json(path, value)
        else:
            continue
        readers.reader(name).recognises(Head(path))
        result = read(path, name)
        assert all(record.used_as for record in result.records)
        json.dumps([trace.id for trace in result.traces])
        for trace in result.traces:
            assert all(key in trace.messages for step in trace.steps for key in step.request.messages)


def cursor_mutant(path: Path, rng: random.Random) -> None:
    bubbles = {key: mutants(value, rng) for key, value in agent_files.cursor_bubbles().items()}
    kept = {key: value for key, value in bubbles.items() if isinstance(value, dict) and "type" in value}
    more = mutants({"status": "completed", "codeBlockData": {"a": [{"bubbleId": "b4", "status": "accepted"}]}}, rng)
    agent_files.cursor_database(path, kept, **(more if isinstance(more, dict) else {}))


def goose_mutant(path: Path, rng: random.Random) -> None:
    messages = agent_files.goose_messages()
    for message in messages:
        message["content"], message["metadata"] = mutants(message["content"], rng), mutants(message["metadata"], rng)
    agent_files.goose_database(path, messages)


def zed_mutant(path: Path, rng: random.Random) -> None:
    data = json.dumps(mutants(agent_files.zed_thread(), rng))
    rows = [
        ("z1", "s", "t", "json", data, None),
        ("z2", "s", "t", "zstd", b"broken", None),
        ("z3", "s", "t", "json", None, None),
    ]
    agent_files.database(path, agent_files.ZED_TABLES, {"insert into threads values(?, ?, ?, ?, ?, ?)": rows})


@pytest.mark.parametrize("mutant", [cursor_mutant, goose_mutant, zed_mutant])
def test_rows_of_wrong_types_never_raise(mutant: Callable[[Path, random.Random], None], tmp_path: Path) -> None:
    rng = random.Random(mutant.__name__)
    for number in range(20):
        path = tmp_path / f"{number}.db"
        mutant(path, rng)
        result = read(path, mutant.__name__.partition("_")[0])
        assert all(record.used_as for record in result.records)


# Look-alikes: heads of other tools, none of which any reader here may take.
USER = {"role": "user", "content": "x"}
CLAUDE_ROW = {"uuid": "u", "parentUuid": None, "sessionId": "s", "type": "user"}
FOREIGN: dict[str, Any] = {
    "qwen code": [{**CLAUDE_ROW, "message": {"role": "user", "parts": []}}],
    "iflow": [{**CLAUDE_ROW, "message": USER}],
    "droid": [{"type": "session_start", "id": "x"}, {"type": "message", "id": "y", "message": USER}],
    "pi": [{"type": "session", "id": "x"}, {"type": "message", "id": "1", "message": USER}],
    "kimi": [{"type": "metadata", "protocol_version": "1.2"}, {"timestamp": 1.0, "message": {"type": "TurnBegin"}}],
    "amp": {"id": "T-1", "v": 1, "created": 1, "messages": [{**USER, "content": [{"type": "text", "text": "x"}]}]},
    "vibe": [USER, {"role": "assistant", "content": "y"}],
    "gptme": [{**USER, "timestamp": "2026-06-13T10:00:00"}],
    "grok": [{"type": "user", "content": "x"}, {"type": "assistant", "content": "y"}],
    "helicone": [{"request_id": "r", "request_body": {"messages": []}, "response_body": {"choices": []}}],
    "braintrust": [{"id": "r", "span_id": "s", "root_span_id": "s", "input": "x", "output": "y", "scores": {}}],
    "crush tables": "create table sessions(id text); create table messages(id text, session_id text, parts text);",
    "vs code state": "create table ItemTable(key text unique on conflict replace, value blob);",
    "opencode tables": "create table session(id text); create table message(id text); create table part(id text);",
    "warp tables": "create table ai_queries(id integer); create table agent_conversations(id integer);",
    "windsurf state": "create table ItemTable(key text, value blob); create table cursorDiskKV(key text, value blob);",
    "trae": {"version": 3, "sessionId": "s", "requests": "none"},
    "kiro": {"history": [{"message": USER}], "sessionId": "s"},
    "zencoder": {"chatId": "c", "messages": [USER]},
    "openai request": {"model": "m", "messages": [USER]},
    "message list": [USER, {"role": "assistant", "content": "y"}, {"role": "tool", "content": "z"}],
    "k8s events": [{"kind": "Event", "id": "1", "metadata": {}}, {"kind": "Pod", "id": "2"}],
    "redux actions": [{"action": "open", "observation": "x"}],
    "chat log": [{**USER, "created": 1}, {"role": "assistant", "content": "y", "created": 2}],
    "notes": "# aider chat started\n\nWe talked about _**User**_ and TO LLM things.\n> a quote\n",
    "realtime api": [{"type": "session.created", "session": {"id": "x"}}, {"type": "response.done", "response": {}}],
    "mutations": [{"kind": 0, "v": {"rows": []}}, {"kind": 1, "k": ["rows", 0], "v": 1}],
}


@pytest.mark.parametrize("tool", FOREIGN)
def test_look_alikes_of_other_tools_are_refused(tool: str, tmp_path: Path) -> None:
    value = FOREIGN[tool]
    path = tmp_path / "source"
    if isinstance(value, list):
        write_lines(path, value)
    elif isinstance(value, dict):
        write_json(path, value)
    elif value.startswith("create"):
        agent_files.database(path, value, {})
    else:
        path.write_text(value)
    assert [name for name in OURS if readers.reader(name).recognises(Head(path))] == []


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\0" * 100, b"{", b"[", b"[]", b"{}", b"null", b"\xff\xfe", b"[[[[" * 500]
)
def test_files_of_nothing_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(content)
    assert [name for name in OURS if readers.reader(name).recognises(Head(path))] == []


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert [name for name in OURS if readers.reader(name).recognises(Head(tmp_path))] == []


def test_every_format_of_this_file_is_in_the_table() -> None:
    assert set(OURS) <= READERS.keys()
