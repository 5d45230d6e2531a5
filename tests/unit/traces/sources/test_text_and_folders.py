"""Ledgers for plain text and for folders that are one source."""

from __future__ import annotations

import hashlib
from pathlib import Path

from postgrad.traces.sources.folder import Folder
from postgrad.traces.sources.raw import open_raw
from postgrad.traces.sources.text_lines import TextLines
from unit.traces.formats.agent_files import write_json


def test_sections_cover_every_byte(tmp_path: Path) -> None:
    """W1, W5: only b"\\n" ends a line; bytes that are no UTF-8 survive. Sections begin at bytes 0, 4 and 14."""
    path = tmp_path / "t.md"
    data = b"a\r\nb\n# x\xe2\x80\xa8y\n\xff\n# z"
    path.write_bytes(data)
    text = TextLines(path)
    sections = list(text.sections(lambda number: text.lines[number - 1].startswith("#")))
    assert [section.number for section in sections] == [1, 3, 5]
    assert sections[0].lines == ("a", "b")
    assert sections[1].lines == ("# x\u2028y", "\udcff")
    entries = list(text.entries.values())
    assert [(e.offset, e.length) for e in entries] == [(0, 5), (5, 10), (15, 3)]
    assert b"".join(data[e.offset : e.offset + e.length] for e in entries) == data
    assert text.sha256 == hashlib.sha256(data).hexdigest()


def test_an_empty_text_has_no_section(tmp_path: Path) -> None:
    path = tmp_path / "t.md"
    path.write_bytes(b"")
    assert list(TextLines(path).sections(lambda _: True)) == []


def test_a_folders_records_are_at_their_place_in_the_joined_bytes(tmp_path: Path) -> None:
    write_json(tmp_path / "b.json", [10, {"x": 2}])
    write_json(tmp_path / "a.json", {"one": 1})
    (tmp_path / "c.json").write_text("{broken")
    folder = Folder(tmp_path)
    joined = open_raw(tmp_path).read()
    assert (folder.size, folder.sha256) == (len(joined), hashlib.sha256(joined).hexdigest())
    first, second, third = folder.files
    assert folder.value(first, 0) == {"one": 1}
    document = folder.document(second, "", first=1)
    assert document is not None
    assert [item.value for item in document.rows("")] == [10, {"x": 2}]
    assert folder.value(third, 3) is None
    places = {number: joined[e.offset : e.offset + e.length] for number, e in folder.entries.items()}
    assert places == {0: b'{"one": 1}', 1: b"10", 2: b'{"x": 2}', 3: b"{broken"}
    assert [d.line for d in folder.diagnostics] == [3]
