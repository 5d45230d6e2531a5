"""Bytes to rows: where lines end, what becomes of broken ones, and that the table covers the file."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from postgrad.core.errors import DataError
from postgrad.core.trace import Source, Trace
from postgrad.traces.packing import spool
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.jsonl import JsonLines, decode


def read(path: Path) -> tuple[list[tuple[int, object]], ReadResult]:
    """Every row of `path`, used as "x", and the closed books."""
    lines = JsonLines(path)
    rows = []
    for row in lines.rows():
        lines.use(row.number, "x", "object")
        rows.append((row.number, row.value))
    return rows, lines.result(Source(str(path), "test", lines.sha256), [])


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file.jsonl"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, character: str) -> None:
    """str.splitlines would give 3 rows for each of these."""
    text = json.dumps({"a": "one" + character + "two"}, ensure_ascii=False) + "\n" + '{"b": 2}\n'
    rows, result = read(written(tmp_path, text.encode()))
    assert [number for number, _ in rows] == [1, 2]
    assert result.uses == {"x": 2}


def test_raw_control_characters_end_no_line(tmp_path: Path) -> None:
    rows, result = read(written(tmp_path, b'{"a": "x\x0cy"}\n{"b": 2}\n'))
    assert rows == [(1, {"a": "x\x0cy"}), (2, {"b": 2})]
    assert result.diagnostics == ()


def test_truncated_last_line_keeps_the_rest_and_is_told_with_line_and_offset(tmp_path: Path) -> None:
    """Line 1 is 8 bytes + line feed = 9, line 2 the same: the torn line 3 starts at byte 18."""
    path = written(tmp_path, b'{"a": 1}\n{"a": 2}\n{"a": "thr')
    rows, result = read(path)
    assert [value for _, value in rows] == [{"a": 1}, {"a": 2}]
    assert [record.status for record in result.records] == ["ok", "ok", "truncated"]
    (told,) = result.diagnostics
    assert (told.file, told.line, told.offset) == (str(path), 3, 18)
    assert "truncated" in told.what


def test_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    _, result = read(written(tmp_path, b'{"a": 1}'))
    assert [record.status for record in result.records] == ["ok"]
    assert result.diagnostics == ()


@pytest.mark.parametrize(
    ("line", "objects"),
    [
        (b'{"a": 1}{"b": 2}', [{"a": 1}, {"b": 2}]),
        (b'{"a": 1} \x00{"b": 2}', [{"a": 1}]),
        (b'\x00\x00{"b": 2}', [{"b": 2}]),
        (b'{"a": "torn by a cr{"b": {"c": 2}}', [{"b": {"c": 2}}]),
        (b'{"a": 1}{"b": 2', [{"a": 1}]),
    ],
)
def test_objects_on_a_glued_line_are_recovered(line: bytes, objects: list[object]) -> None:
    assert decode(line) == (objects, "glued")


@pytest.mark.parametrize(
    "line", [b'{"a": {"b": 1}', b'{"a": [{"b": 1}', b'{"a": [1, {"b": 1}', b"[1]", b"null", b"text"]
)
def test_an_inner_object_of_a_torn_one_is_no_record(line: bytes) -> None:
    assert decode(line) == ([], "bad_json")


def test_broken_line_in_the_middle_does_not_end_the_reading(tmp_path: Path) -> None:
    rows, result = read(written(tmp_path, b'{"a": 1}\nnot json\n\n{"a": 2}\r\n'))
    assert [number for number, _ in rows] == [1, 4]
    assert [record.status for record in result.records] == ["ok", "bad_json", "blank", "ok"]
    assert result.uses == {"x": 2, "unreadable": 1}, "a blank line is no record"


def test_byte_order_mark_lone_surrogate_bad_utf8_and_big_numbers_pass(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"a": "\\ud83d"}\n{"a": "\xff"}\n{"a": NaN, "n": 123456789012345678901234567890}\n'
    rows, result = read(written(tmp_path, data))
    values = [value for _, value in rows]
    assert values[0] == {"a": "\ud83d"}
    assert values[1] == {"a": "\udcff"}
    assert values[2]["n"] == 123456789012345678901234567890  # type: ignore[index]
    assert result.diagnostics == ()


def test_deep_nesting_is_a_broken_line(tmp_path: Path) -> None:
    rows, _ = read(written(tmp_path, b'{"a": ' + b"[" * 200_000 + b'\n{"b": 2}\n'))
    assert rows == [(2, {"b": 2})]


def test_the_record_table_is_the_file(tmp_path: Path) -> None:
    """Offsets and lengths tile the file, hashes are those of the slices."""
    data = b'\xef\xbb\xbf{"a": 1}\r\n\n\x00bad\n{"a": 1}{"b": 2}\n{"torn'
    _, result = read(written(tmp_path, data))
    slices = [data[record.offset : record.offset + record.length] for record in result.records]
    assert b"".join(slices) == data
    assert [hashlib.sha256(part).hexdigest() for part in slices] == [record.sha256 for record in result.records]
    assert result.size == len(data)
    assert result.source.sha256 == hashlib.sha256(data).hexdigest()
    assert sum(result.uses.values()) == 4


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_compressed_files_read_as_their_content(tmp_path: Path, pack: object) -> None:
    data = b'{"a": 1}\n{"a": 2}\n'
    rows, result = read(written(tmp_path, pack(data)))  # type: ignore[operator]
    assert [number for number, _ in rows] == [1, 2]
    assert result.source.sha256 == hashlib.sha256(data).hexdigest()


def test_broken_gzip_gives_the_lines_before_the_break(tmp_path: Path) -> None:
    data = b"".join(b'{"a": "%d"}\n' % (number * 7919) for number in range(20_000))
    packed = gzip.compress(data)
    rows, result = read(written(tmp_path, packed[: len(packed) // 2]))
    assert 0 < len(rows) < 20_000
    assert any("compressed" in told.what for told in result.diagnostics)


def test_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read the file"):
        list(JsonLines(tmp_path / "none").rows())


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\t", "\x1b"])
def test_a_raw_control_character_in_a_string_is_read(character: str) -> None:
    """No JSON, but some writers do it; nothing is lost by reading it."""
    assert decode(f'{{"a": "x{character}y"}}'.encode()) == ([{"a": f"x{character}y"}], "ok")


def test_a_record_behind_a_torn_one_full_of_braces_is_recovered() -> None:
    torn = '{"text": "' + "f(){a} " * 300
    assert decode((torn + '{"b": {"c": 1}}').encode()) == ([{"b": {"c": 1}}], "glued")


@pytest.mark.parametrize(("levels", "status"), [(99, "ok"), (900, "bad_json"), (100_000, "bad_json")])
def test_what_is_nested_too_deeply_for_anyone_after_the_reader_is_no_record(levels: int, status: str) -> None:
    assert decode(b'{"a": ' + b"[" * levels + b"]" * levels + b"}")[1] == status


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.decimals(allow_nan=False, allow_infinity=False).map(float),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), st.booleans(), st.booleans())
def test_the_fast_decoder_gives_what_json_gives(value: dict[str, Any], ascii: bool, spaced: bool) -> None:
    """Whatever is on the line: NaN, lone surrogates, integers of any size, numbers at the edges of a double."""
    text = json.dumps(value, ensure_ascii=ascii, indent=None, separators=(", ", ": ") if spaced else (",", ":"))
    line = text.encode("utf-8", "surrogatepass") + b"\n"
    expected = json.loads(line.decode("utf-8", "surrogateescape"))
    objects, status = decode(line)
    assert status == "ok"
    assert repr(objects) == repr([expected]), "repr tells 1 from 1.0, -0.0 from 0.0, and NaN from nothing"


@settings(deadline=None)
@given(st.from_regex(rb'\{"a": ?-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?\}', fullmatch=True))
def test_numbers_are_exact_however_they_are_written(line: bytes) -> None:
    ((value,), status) = decode(line)
    assert (status, repr(value)) == ("ok", repr(json.loads(line)))


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_no_line_ends_the_reading(line: bytes) -> None:
    objects, status = decode(line)
    assert bool(objects) == (status in ("ok", "glued"))


def test_traces_stream_through_while_the_file_is_read(tmp_path: Path) -> None:
    """A reader that makes a trace of every line; source and record table are those of the whole file."""
    path = written(tmp_path, b"".join(b'{"n": %d}\n' % number for number in range(1000)))
    lines = JsonLines(path)

    def traces() -> Iterator[Trace]:
        for row in lines.rows():
            lines.use(row.number, "trace", "object")
            yield Trace(f"t{row.value['n']}", Source("?", "?"), {}, (), index=row.value["n"])

    result = lines.stream(traces(), lambda: Source(str(path), "test", lines.sha256))
    assert len(result.traces) == len(result.records) == 1000
    assert [trace.id for trace in result.traces[2:4]] == ["t2", "t3"]
    assert result.traces[-1] == Trace("t999", result.source, {}, (), index=999)
    assert list(result.traces) == list(result.traces), "as often as needed"
    assert result.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_books_of_a_large_file_take_little_memory(tmp_path: Path) -> None:
    """20,000 lines: under 100 bytes each, beside two buffers of 1 MB; as objects they would take 10 MB."""
    path = written(tmp_path, b'{"a":1}\n' * 20_000)
    lines = JsonLines(path)
    tracemalloc.start()
    try:
        for row in lines.rows():
            lines.use(row.number, "x", "object")
        result = lines.result(Source(str(path), "test", lines.sha256), [])
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used < 20_000 * 100 + (2 << 20)
    assert result.uses == {"x": 20_000}
    assert lines.entries[20_000].offset == 8 * 19_999


def test_parsed_objects_are_a_list_in_memory_or_a_tape_on_disk(tmp_path: Path) -> None:
    """Six lines of which one is blank and one glued: six objects by number of line. 2 MB of a line fill a piece."""
    data = b'{"n": 1}\n\n{"n": 2}{"n": 3}\n{"n": 4, "fill": "%s"}\n{"n": 5}\n{"n": 6}\n'
    expected = [(1, 1), (3, 2), (3, 3), (4, 4), (5, 5), (6, 6)]
    for fill, kind in ((b"", list), (b"x" * (2 << 20), spool.Tape)):
        found = JsonLines(written(tmp_path, data % fill)).parsed(lambda number, value: (number, value["n"]))
        assert type(found) is kind
        assert list(found) == expected
        assert list(found[2:]) == expected[2:]


def test_parsed_objects_keep_odd_values(tmp_path: Path) -> None:
    """A lone surrogate and an integer beyond 64 bits, on disk: each line is heavier than a piece."""
    line = b'{"text": "\\ud83d", "big": 123456789012345678901234567890, "fill": "%s"}\n' % (b"x" * (2 << 20))
    found = JsonLines(written(tmp_path, line * 2)).parsed(lambda number, value: value)
    assert isinstance(found, spool.Tape)
    assert [(one["text"], one["big"]) for one in found] == [("\ud83d", 123456789012345678901234567890)] * 2
