"""Rows on disk: what is written is read back, and a bad line is named."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest

from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.core.record import Provenance, Record
from postgrad.signals.records import read_records, row_content, write_records
from unit.signals.traces_by_hand import WEATHER, act, call

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
