"""ShareGPT rows: ``{"conversations": [{"from", "value"}], "system", "tools"}``, as JSON, JSON lines or Parquet.

A step is every turn of the model: "gpt" (and its other names) and "function_call", which is a whole turn of its own.
Tool calls stand in function_call turns as JSON, or in texts in one of many syntaxes (`call_text`); results stand in
observation turns or in <tool_response> tags. Tools stand in `tools` (a list, or its JSON text) or in the system
prompt's <tools> tags. There are no error flags, no ids, no times. Training texts that are one string with ChatML or
Llama 3 marks (``{"text": "<|im_start|>user..."}``) are read in the same way.

"The same conversation" means: the same messages, and the same tools on offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.message import Opaque, Role, Text, Tool, ToolCall
from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.datasets.call_forms import json_calls
from postgrad.traces.formats.datasets.call_text import observed, read_text, result_texts, tools_in
from postgrad.traces.formats.datasets.rows import Row, Rows, row_heads
from postgrad.traces.formats.datasets.telling import Telling, setting
from postgrad.traces.formats.shapes.plain import mappings, opened, string, text, written
from postgrad.traces.formats.shapes.said import RawResult
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_KEYS = ("conversations", "conversation", "items")
_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("human", "user", "prompter"), "user"),
    **dict.fromkeys(
        ("gpt", "assistant", "chatgpt", "model", "bot", "bing", "bard", "ai", "function_call"), "assistant"
    ),
    **dict.fromkeys(("tool_call", "tool_calls"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function", "function_response", "tool_response", "ipython"), "tool"),
}
_CALL_TURNS = frozenset({"function_call", "tool_call", "tool_calls"})
_CHATML = re.compile(r"<\|im_start\|>\s*(\w+)\n?(.*?)(?:<\|im_end\|>|(?=<\|im_start\|>)|\Z)", re.DOTALL)
_LLAMA = re.compile(
    r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n*(.*?)(?:<\|eot_id\|>|<\|eom_id\|>|(?=<\|start_header_id\|>)|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class ShareGPT:
    """Reader of ShareGPT conversations."""

    format: str = "sharegpt"

    def recognises(self, head: Head) -> bool:
        """Rows with a list of turns, each of a known speaker with a value, or with one text that is all turns."""
        rows = row_heads(head, *_KEYS)
        return bool(rows) and any(_turns(row) for row in rows) and all(_is_row(row) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read a file of conversations.

        Raises:
            DataError: it cannot be opened, or holds neither JSON nor a table.
        """
        rows = Rows(path, *_KEYS)
        source = Source(str(path), self.format)
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        index = 0
        for row in rows:
            found = _turns(row.value)
            trace = _trace(row, found, source, index) if found else None
            if trace is None:
                row.refuse("a row without an answer" if found else "the row is no conversation")
                continue
            index += 1
            yield trace


@dataclass(frozen=True)
class _Turn:
    """Who speaks, and what; `place` is its place among the row's turns."""

    speaker: str
    value: Any
    place: int
    raw: object


def _turns(row: Mapping[str, Any]) -> list[_Turn]:
    """The turns of a row, empty if it is no conversation."""
    listed = next((opened(row[key]) for key in _KEYS if isinstance(opened(row.get(key)), list)), None)
    if listed is not None:
        found = [_turn(item, place) for place, item in enumerate(listed)]
        known = [turn for turn in found if turn.speaker in _ROLES]
        return found if known else []
    marked = row.get("text")
    for pattern in (_CHATML, _LLAMA):
        if isinstance(marked, str) and (matches := pattern.findall(marked)):
            return [_Turn(who.lower(), said.strip("\n"), 0, said) for who, said in matches]
    return []


def _turn(item: object, place: int) -> _Turn:
    if not isinstance(item, dict):
        return _Turn("", None, place, item)
    value = next((item[key] for key in ("value", "content", "text") if key in item), None)
    return _Turn(string(item.get("from") or item.get("role")).lower(), value, place, item)


def _is_row(row: Mapping[str, Any]) -> bool:
    """Whether nothing in a row speaks against it: a torn row is still a row, one of another application is not."""
    listed = next((row[key] for key in _KEYS if key in row), None)
    if listed is None:
        return isinstance(row.get("text"), str) and bool(_turns(row))
    items = mappings(opened(listed))
    spoken = [item for item in items if "from" in item and "value" in item]
    return not items or bool(spoken) or all(item.keys() <= {"role", "content", "weight", "name"} for item in items)


def _trace(row: Row, turns: list[_Turn], source: Source, index: int) -> Trace | None:
    system = text(row.value.get("system"))
    said = "\n".join(string(turn.value) for turn in turns if _ROLES.get(turn.speaker) == "system") + (system or "")
    offered = tools(row.value.get("tools") or row.value.get("functions")) or tools_in(said)
    calls = any(turn.speaker in _CALL_TURNS or _calls(turn, offered) for turn in turns)
    telling = Telling(
        row, setting(tools=offered, system=bool(said), calls=calls, purpose=text(row.value.get("purpose")))
    )
    if system:
        telling.say(0, "system", [Text(system)])
    for turn in turns:
        _tell(telling, turn, offered)
    same = (*telling.talk.pool.messages, *(tool.name for tool in offered))
    return telling.trace(source, *same, index=index, task=text(row.value.get("id")))


def _calls(turn: _Turn, offered: tuple[Tool, ...]) -> bool:
    spoken = _ROLES.get(turn.speaker) == "assistant" and isinstance(turn.value, str)
    return spoken and any(isinstance(block, ToolCall) for block in read_text(turn.value, offered))


def _tell(telling: Telling, turn: _Turn, offered: tuple[Tool, ...]) -> None:
    role = _ROLES.get(turn.speaker)
    if role is None:
        telling.say(turn.place, "user", [Opaque(f"from {turn.speaker or '?'}", turn.raw)])
        return
    said = written(turn.value)
    if role == "assistant":
        in_call_turn = turn.speaker in _CALL_TURNS and "<tool_call>" not in said
        blocks = json_calls(said) if in_call_turn else read_text(said, offered)
        telling.act(turn.place, blocks, is_step=not isinstance(turn.raw, dict) or turn.raw.get("weight") != 0)
    elif role == "system":
        telling.say(turn.place, role, [Text(said)] if said else [])
    else:
        _hear(telling, turn.place, role, said)


def _hear(telling: Telling, place: int, role: Role, said: str) -> None:
    """What the model is told: results, and words."""
    results, rest = result_texts(said)
    if role == "tool" and not results:
        results, rest = [said], ""
    elif role == "user" and not results and telling.talk.pending and (told_back := observed(said)) is not None:
        telling.answer(place, RawResult("", *told_back))
        return
    for result in results:
        telling.answer(place, RawResult("", "", result))
    if rest:
        telling.say(place, "user", [Text(rest)])
    elif not results:
        telling.say(place, role, [])
