"""Rows on disk: what is written is read back, and a bad line is named."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.core.record import Provenance, Record
from postgrad.signals.rows.made import Source, provenance
from postgrad.signals.rows.records import read_records, row_content, write_records
from postgrad.traces.readers import read
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call

ROW = Record(
    (Message.of("user", "Zürich? \u2028 \ud83d"),),
    act(call("get_weather", {"city": "Zürich"})),
    (WEATHER,),
    rejected=act(call("get_weather", "{broken")),
    hint="a hint",
    weight=0.75,
    provenance=Provenance("t", 3, "majority/1", ("a", "b"), 0.75),
)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert write_records(path, [ROW, Record((), act())]) == 2
    assert list(read_records(path)) == [ROW, Record((), act())]
    assert path.read_bytes().count(b"\n") == 2


BAD = [b"{", b'{"messages": []}', b"[]", b'{"messages": [], "action": {"role": "cat"}}', b"\xff", b"[" * 10_000]


@pytest.mark.parametrize("bad", BAD, ids=[str(place) for place in range(len(BAD))])
def test_a_bad_line_is_named(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "records.jsonl"
    write_records(path, [ROW])
    path.write_bytes(path.read_bytes() + b"\n" + bad + b"\n")
    with pytest.raises(DataError, match=r"line 3 is no Record"):
        list(read_records(path))


@pytest.mark.parametrize("weight", [math.nan, math.inf, -0.5])
def test_a_weight_that_is_none_is_refused_before_it_reaches_a_loss(tmp_path: Path, weight: float) -> None:
    """A negative one would turn imitation into its opposite; 0 masks a row."""
    path = tmp_path / "records.jsonl"
    write_records(path, [msgspec.structs.replace(ROW, weight=0.0), ROW])
    path.write_text(path.read_text().replace('"weight": 0.75', f'"weight": {json.dumps(weight)}'))
    rows = read_records(path)
    assert next(rows).weight == 0.0
    with pytest.raises(DataError, match="row 2: its weight; got"):
        next(rows)


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        list(read_records(tmp_path / "none.jsonl"))


def test_ids_and_provenance_do_not_make_a_row_and_content_does() -> None:
    same = msgspec.structs.replace(
        ROW, action=act(call("get_weather", '{ "city": "Zürich"}', "other")), provenance=Provenance(), weight=1.0
    )
    assert row_content(same) == row_content(ROW)
    others = [
        msgspec.structs.replace(ROW, hint=None),
        msgspec.structs.replace(ROW, tools=()),
        msgspec.structs.replace(ROW, rejected=None),
        msgspec.structs.replace(ROW, rejected=None, messages=(*ROW.messages, ROW.action), action=ROW.rejected or act()),
        msgspec.structs.replace(ROW, action=act(call("get_weather", {"city": "Bern"}))),
    ]
    assert len({row_content(row) for row in (ROW, *others)}) == 6


def changed(tmp_path: Path, change: Any) -> Path:
    """A file with one row, its plain data changed."""
    data = json.loads(json.dumps(msgspec.to_builtins(ROW)))
    change(data)
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(data))
    return path


UNKNOWN = {
    "hints": lambda row: row.update(hints=row.pop("hint")),
    "id": lambda row: row.update(id="7"),
    "messages.0.content": lambda row: row["messages"][0].update(content="a"),
    "messages.0.blocks.0.txt": lambda row: row["messages"][0]["blocks"][0].update(txt="a"),
    "action.blocks.0.argument": lambda row: row["action"]["blocks"][0].update(argument={}),
    "rejected.name": lambda row: row["rejected"].update(name="a"),
    "tools.0.paramters": lambda row: row["tools"][0].update(paramters={}),
    "provenance.teacher": lambda row: row["provenance"].update(teacher="a"),
}


@pytest.mark.parametrize("key", UNKNOWN)
def test_a_key_that_nothing_reads_is_refused_wherever_it_stands(tmp_path: Path, key: str) -> None:
    with pytest.raises(DataError, match=rf"line 1 is no Record: unknown key '{re.escape(key)}'"):
        list(read_records(changed(tmp_path, UNKNOWN[key])))


def test_a_misspelt_key_is_told_with_what_was_meant(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="unknown key 'hints'; did you mean 'hint'"):
        list(read_records(changed(tmp_path, UNKNOWN["hints"])))


def test_what_is_free_in_a_row_may_hold_any_key(tmp_path: Path) -> None:
    """Arguments and schemas are the user's, down to keys called like ours; so is an opaque block."""

    def free(row: Any) -> None:
        row["tools"][0]["parameters"] = {"type": "object", "properties": {"hint": {"any": 1}}}
        row["action"]["blocks"][0]["arguments"] = {"hints": {"a": 1}}
        row["messages"][0]["blocks"].append({"type": "opaque", "block_type": "x", "raw": {"new": 1}})

    assert len(list(read_records(changed(tmp_path, free)))) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda row: row["action"].update(role="user"), "its action is of role 'user', expected 'assistant'"),
        (lambda row: row["rejected"].update(role="tool"), "its rejected is of role 'tool', expected 'assistant'"),
        (lambda row: row.update(hint=" \n"), "its hint is empty"),
        (lambda row: row["action"]["blocks"].append(row["action"]["blocks"][0]), "its action has two .* id 'c0'"),
        (lambda row: row["rejected"].update(blocks=2 * row["rejected"]["blocks"]), "its rejected has two .* id"),
        (lambda row: row["messages"].append(row["action"] | {"blocks": 2 * row["action"]["blocks"]}), "its messages.1"),
    ],
)
def test_a_row_that_means_nothing_is_refused(tmp_path: Path, change: Any, told: str) -> None:
    with pytest.raises(DataError, match=f"row 1: {told}"):
        list(read_records(changed(tmp_path, change)))


def test_an_id_may_come_again_in_another_message(tmp_path: Path) -> None:
    """The context's call, the action's and the rejected one's each answer for themselves."""
    path = changed(tmp_path, lambda row: row["messages"].append(row["action"]))
    assert len(list(read_records(path))) == 1


def test_a_trace_whose_provider_repeats_an_id_still_makes_a_row(tmp_path: Path) -> None:
    """Two calls with one id in one message of a real log: the trace has ids of its own, so its row is whole."""
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": c})}}
        for c in ("Bonn", "Köln")
    ]
    answer = {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": calls}}]}
    request = {"model": "m", "messages": [{"role": "user", "content": "Bonn and Köln?"}]}
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"request": request, "response": answer}))
    (trace,) = read(log).traces
    (step,) = trace.steps
    assert len({made.id for made in step.action.tool_calls}) == 2
    path = tmp_path / "records.jsonl"
    write_records(path, [Record(trace.context(step), step.action)])
    assert len(list(read_records(path))) == 1


def test_a_row_is_written_with_all_of_its_provenance(tmp_path: Path) -> None:
    """Why, who, agreement, cost and fidelity are there for whoever counts or filters rows, measured or null."""
    trace = TraceBuilder().step(act(call("get_weather", {"city": "Bonn"})), [("sun", False)]).build()
    where = provenance(trace, trace.steps[0], Source("recovery/1", ""))
    path = tmp_path / "records.jsonl"
    write_records(path, [msgspec.structs.replace(ROW, provenance=where)])
    told = json.loads(path.read_text())["provenance"]
    assert told == {
        "trace": trace.id,
        "step": 0,
        "rule": "recovery/1",
        "teachers": ["trace"],
        "agreement": None,
        "why": "no reason was given",
        "cost": 0.0,
        "fidelity": trace.steps[0].request.fidelity,
    }
