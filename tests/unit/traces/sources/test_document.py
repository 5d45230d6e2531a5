"""JSON documents and databases as ledgers: true places, torn ends read to the last whole item."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from pathlib import Path

import pytest

from postgrad.core.errors import DataError
from postgrad.core.trace import Source
from postgrad.traces.sources.database import Database, tables
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.raw import members, open_raw

TEXT = (
    '{"info": {"n": 1, "steps": [7, 8]}, "history": [ {"a": "é"}, {"b": [1, "]"]},\n {"c": NaN} ], '
    '"map": {"x": {"d": 1}}}'
)


def written(folder: Path, text: str, name: str = "t.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def test_items_have_the_bytes_that_their_places_say(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + TEXT)
    document = JsonDocument(path, "history", "info.steps", "map")
    data = path.read_bytes()
    cut = {n: data[e.offset : e.offset + e.length].decode() for n, e in document.entries.items() if n != ENVELOPE}
    assert list(cut.values()) == ["7", "8", '{"a": "é"}', '{"b": [1, "]"]}', '{"c": NaN}', '{"d": 1}']
    assert [item.number for item in document.rows("history")] == [2, 3, 4]
    assert [(item.key, item.value) for item in document.rows("map")] == [("x", {"d": 1})]
    assert document.envelope == {"info": {"n": 1, "steps": []}, "history": [], "map": {}}
    assert not document.truncated
    assert not document.diagnostics


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_wherever_it_is_cut_the_whole_items_before_are_read(tmp_path: Path, cut: int) -> None:
    document = JsonDocument(written(tmp_path, TEXT[:cut]), "history")
    values = [item.value for item in document.rows("history")]
    whole = [{"a": "é"}, {"b": [1, "]"]}]
    ends = [
        TEXT.index(json.dumps(value, ensure_ascii=False)) + len(json.dumps(value, ensure_ascii=False))
        for value in whole
    ]
    assert values[:2] == [value for value, end in zip(whole, ends, strict=True) if end <= cut]
    assert document.truncated
    for number in list(document.entries):
        if document.entries[number].status == "ok":
            document.use(number, "step", "x")
    result = document.result(Source("t", "t"), [])
    assert sum(result.uses.values()) == len(document.entries)
    assert result.uses["unreadable"] == 1


def test_a_list_at_the_top(tmp_path: Path) -> None:
    assert [i.value for i in JsonDocument(written(tmp_path, '[1, {"a": 2}]'), "", first=1).rows()] == [1, {"a": 2}]
    torn = JsonDocument(written(tmp_path, '[1, {"a": 2}, {"a'), "")
    assert [item.value for item in torn.rows()] == [1, {"a": 2}]
    assert torn.truncated
    with pytest.raises(DataError, match="not a JSON document"):
        JsonDocument(written(tmp_path, "# words"), "")


def test_archives_databases_and_folders_are_sources(tmp_path: Path) -> None:
    inside = gzip.compress(b'{"a": 1}\n')
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("deep/t.jsonl.gz", inside)
    (member,) = members(tmp_path / "x.zip")
    assert open_raw(member).read() == b'{"a": 1}\n'
    assert Head(member).rows == [{"a": 1}]
    assert Head(tmp_path / "x.zip").members == ("deep/t.jsonl.gz",)
    with pytest.raises(DataError, match="cannot read"):
        open_raw(tmp_path / "x.zip" / "none")
    (tmp_path / "folder").mkdir()
    written(tmp_path / "folder", "2", "b")
    written(tmp_path / "folder", "1", "a")
    assert open_raw(tmp_path / "folder").read() == b"12"


def test_rows_of_a_database_with_an_open_log(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    writer = sqlite3.connect(path)
    writer.execute("pragma journal_mode = wal")
    writer.execute("create table m (id text, body text)")
    writer.executemany("insert into m values (?, ?)", [("a", "{}"), ("b", None)])
    writer.commit()
    assert tables(path) == {"m"}
    assert Head(path).tables == {"m"}
    with Database(path) as database:
        rows = list(database.rows("select * from m order by id"))
        assert [(row.number, row.key, row.value["body"]) for row in rows] == [(0, "a", "{}"), (1, "b", None)]
        assert database.entries[0].offset == -1
    writer.close()


def test_heads() -> None:
    head = Head.of([{"a": 1}], document={"b": 2})
    assert head.rows == [{"a": 1}]
    assert head.document == {"b": 2}
    assert head.text == ""
    assert not head.tables
