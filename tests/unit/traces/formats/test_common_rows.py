"""What is decoded straight from a line is what `parse_row` makes of its object, or is left to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.canonical import DEEPEST
from postgrad.core.message import ToolCall
from postgrad.traces.formats.claude_code.common_rows import common_row
from postgrad.traces.formats.claude_code.content import arguments_json
from postgrad.traces.formats.claude_code.reader import ClaudeCode
from postgrad.traces.formats.claude_code.rows import Row, parse_row
from postgrad.traces.formats.content import call as read_call
from unit.traces.formats.claude_file import ClaudeFile, call, text

SAID = {"stop_reason": None, "usage": {"input_tokens": 3, "cache_creation": {"ephemeral_1h_input_tokens": 1}}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def common() -> list[dict[str, Any]]:
    """A row of every kind that is read straight."""
    file = ClaudeFile()
    file.user("go")
    file.user([text("go"), text("")], permissionMode="plan", isMeta=True)
    file.assistant("m", text("Sure."), **SAID)
    file.assistant("m", THOUGHT, call("t", command="ls", todo=[{"content": "é\n"}]), **SAID)
    file.result("t", "done", is_error=True)
    file.result("t", [text("a"), text("b")])
    file.rows[-1]["toolUseResult"] = {"agentId": "a1", "content": "a"}
    file.rows[-1] |= {"isSidechain": True, "agentId": "a0"}
    file.row("progress", data={"output": "x"}, toolUseID="t")
    return file.rows


ODD: list[Any] = [
    *(None, 0, True, "", "word", [], {}, ["word"], {"type": "text"}, "\ud800", 10**30, "<synthetic>", [None, ["x"]]),
    *([{"type": "image", "source": {"data": "aGk="}}], [{"type": "text", "text": None}], [{"text": "x"}]),
    *([{"type": "tool_use", "name": 3, "input": {}}], [{"type": "tool_use", "name": "B", "input": "{}"}]),
    [{"type": "tool_result", "content": [THOUGHT, {"text": "no type"}]}],
]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a row."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*above, key)
        yield from places(part, (*above, key))


def changed(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The row with every part of it, and every field that a row may have, once in every odd form."""
    other = ("subtype", "attachment", "error", "mode", "content", "logicalParentUuid", "toolUseResult", "hookErrors")
    for *above, last in [*places(row), *((name,) for name in other)]:
        for odd in ODD:
            new = copy.deepcopy(row)
            part: Any = new
            for key in above:
                part = part[key]
            part[last] = odd
            yield new


def both(row: dict[str, Any]) -> tuple[Row | None, Row]:
    line = json.dumps(row).encode() + b"\n"
    return common_row(7, line, {}), parse_row(7, json.loads(line))


@pytest.mark.parametrize("row", common(), ids=lambda row: f"{row['type']}-{row['uuid']}")
def test_a_common_row_is_read_straight_and_as_otherwise(row: dict[str, Any]) -> None:
    straight, otherwise = both(row)
    assert straight == otherwise


@pytest.mark.parametrize("row", common(), ids=lambda row: f"{row['type']}-{row['uuid']}")
def test_an_odd_row_is_read_as_otherwise_or_left(row: dict[str, Any]) -> None:
    for odd in changed(row):
        straight, otherwise = both(odd)
        assert straight is None or straight == otherwise, odd


def test_the_name_of_a_row_is_kept_once() -> None:
    name = "-".join(["u", "1"])
    line = b'{"type": "progress", "uuid": "u-2", "parentUuid": "u-1"}'
    row = common_row(1, line, {name: name})
    assert row is not None
    assert row.parent is name


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_only_what_is_read_may_not_be_nested_too_deeply(tmp_path: Path) -> None:
    """Of the screen's copy nothing is read, so that a call's result is not lost for its sake; arguments are read."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m", call("t", command="ls"))
    file.result("t")
    file.rows[-1]["toolUseResult"] = nested(2 * DEEPEST)
    file.assistant("n", call("deep", value=nested(2 * DEEPEST)))
    result = ClaudeCode().read(file.write(tmp_path / "session.jsonl"))
    assert [record.status for record in result.records] == ["ok", "ok", "ok", "bad_json"]
    (trace,) = result.traces
    assert [len(step.results) for step in trace.steps] == [1]


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.lists(st.text(), max_size=2)), max_size=4))
def test_arguments_are_written_as_json_writes_them(value: dict[str, Any]) -> None:
    assert arguments_json(value) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    "raw",
    [
        *('{"a": 1}', ' {"a": 1}', "{}", "", '{"a": NaN}', '{"a": 1', "[1]", '{"a": "\\ud800"}', '{"a": 1, "a": 2}'),
        *('{"a": 1e999}', '{"a":' * 150 + "1" + "}" * 150, '{"a": "\ud800"}', '{"a": "b\nc"}', "{" + "9" * 20),
    ],
)
def test_arguments_are_parsed_as_a_call_parses_them(raw: str) -> None:
    assert repr(read_call("tool", raw, id="c")) == repr(ToolCall.from_raw(id="c", name="tool", raw=raw))
