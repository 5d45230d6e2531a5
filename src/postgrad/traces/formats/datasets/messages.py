"""Rows of chat messages: ``{"messages": [{"role", "content", "tool_calls", ...}], "tools": [...]}`` and its relatives.

The form of fine-tuning files and of most research sets (SWE-Gym, nebius, SWE-smith, Toucan), as JSON lines, JSON or
Parquet; the list can be the JSON text of itself, and so can the tools. A step is an assistant's message, its context
the messages before it. Calls stand in `tool_calls`, or in the text in one of many syntaxes (`call_text`). A file that
is one list of messages is one conversation; one with a list a line has as many. Not covered: requests with a response
beside them (`openai_chat`).

"The same conversation" means: the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Text, Tool
from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.datasets.call_text import observed, read_text, result_texts, tools_in
from postgrad.traces.formats.datasets.rows import Row, Rows, row_heads
from postgrad.traces.formats.datasets.telling import Telling, setting
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, number, opened, string, text
from postgrad.traces.formats.shapes.said import RawResult, Said
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import message
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_KEYS = ("messages", "trajectory", "traj", "conversation", "conversations", "prompt_messages")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython"})
# What a message of this form can hold. Anything more is another application's session, which has a reader of its own.
_FIELDS = frozenset(
    {
        *("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations"),
        *("reasoning_content", "reasoning", "reasoning_details", "thinking", "weight", "loss", "train", "trainable"),
        *("prefix", "cache_control", "tools", "metadata"),
    }
)
_PARTS = frozenset({"text", "image_url", "image", "input_audio", "file", "input_text", "output_text", "video_url"})
_OTHERS = frozenset(
    {
        *("request", "response", "kwargs", "body", "choices", "trajectory_format", "info", "history", "replay_config"),
        *("sessionId", "session_id", "system_prompt", "projectHash", "agent", "schema_version", "events", "spans"),
    }
)
_REWARDS = ("reward", "score", "resolved", "success", "rating")


@dataclass(frozen=True)
class ChatMessages:
    """Reader of rows of chat messages."""

    format: str = "messages"

    def recognises(self, head: Head) -> bool:
        """Rows with a list of chat messages and without what other applications write beside them."""
        rows = row_heads(head, *_KEYS)
        listed = head.document if isinstance(head.document, list) else rows if head.document is None else []
        if rows == listed[:40] and _is_bare(listed):
            return True
        found = [_listed(row) for row in rows]
        return any(found) and all(
            not (_OTHERS & row.keys()) and (not listed or _are_messages(listed))
            for row, listed in zip(rows, found, strict=True)
        )

    def read(self, path: Path) -> ReadResult:
        """Read a file of rows.

        Raises:
            DataError: it cannot be opened, or holds neither JSON nor a table.
        """
        rows = Rows(path, *_KEYS)
        source = Source(str(path), self.format)
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        bare: list[Row] = []
        index = 0
        for row in rows:
            if "role" in row.value and not _listed(row.value):
                bare.append(row)
                continue
            trace = told(row, _listed(row.value), source, index=index)
            if trace is None:
                row.refuse("a row without an answer" if _listed(row.value) else "the row has no messages")
                continue
            index += 1
            yield trace
        if bare:
            yield from self._bare(rows, bare, source)

    def _bare(self, rows: Rows, bare: list[Row], source: Source) -> Iterator[Trace]:
        """A file that is one conversation: its rows are the messages."""
        whole = Row({"messages": [row.value for row in bare]}, tuple(row.records[0] for row in bare), rows)
        trace = told(whole, whole.value["messages"], source, index=0)
        rows.settle()
        if trace is not None:
            yield trace


def told(row: Row, listed: list[Any], source: Source, *, index: int) -> Trace | None:
    """One row as a trace, None if no assistant speaks in it."""
    said = [_said(item) for item in listed]
    system = "\n".join(_text(one) for one in said if one is not None and one.role in ("system", "developer"))
    offered = tools(first(row.value, "tools", "functions", "available_tools")) or tools_in(system)
    read = [None if one is None else _with_calls(one, offered) for one in said]
    calls = any(one is not None and one.calls for one in read)
    telling = Telling(row, setting(tools=offered, system=bool(system), calls=calls, purpose=_purpose(row.value)))
    for turn, one in enumerate(read):
        if one is None:
            row.odd(turn, "no chat message")
        else:
            heard = _heard(one) if telling.talk.pending else one
            telling.said(turn, heard, is_step=listed[turn].get("weight") != 0)
    for name in _REWARDS:
        if isinstance(value := row.value.get(name), int | float):
            telling.judge(name, number(float(value)), source="dataset")
    task = first(row.value, "instance_id", "task_id", "id", "uuid")
    return telling.trace(source, index=index, task=None if task is None else str(task))


def _purpose(row: Mapping[str, Any]) -> str | None:
    """What a row says that it is for; postgrad's export marks transcripts of evaluations."""
    return text(mapping(row.get("metadata")).get("purpose"))


def _listed(row: Mapping[str, Any]) -> list[Any]:
    """A row's messages, empty if it has none. SWE-Gym and others keep them as the JSON text of the list."""
    for key in _KEYS:
        value = opened(row.get(key))
        if isinstance(value, list) and any("role" in item for item in mappings(value)):
            return value
    return []


def _are_messages(listed: list[Any]) -> bool:
    return all(_is_message(item) for item in mappings(listed)) and bool(mappings(listed))


def _is_message(item: Mapping[str, Any]) -> bool:
    content = item.get("content")
    parts = mappings(content) if isinstance(content, list) else []
    plain = content is None or isinstance(content, str | list)
    return (
        string(item.get("role")) in _ROLES
        and item.keys() <= _FIELDS
        and plain
        and all(string(part.get("type")) in _PARTS for part in parts)
        and not any("toolName" in call or "input" in call for call in mappings(opened(item.get("tool_calls"))))
    )


def _is_bare(document: list[Any]) -> bool:
    """A list of messages: an assistant answers in words or calls; lists of parts are what agents' histories hold."""
    spoken = mappings(document)
    plain = all(_is_message(item) and not isinstance(item.get("content"), list) for item in spoken)
    roles = {string(item.get("role")) for item in spoken}
    return bool(spoken) and len(spoken) == len(document) and plain and {"user", "assistant"} <= roles


def _said(item: object) -> Said | None:
    if not isinstance(item, dict) or not isinstance(item.get("role"), str):
        return None
    if item["role"] == "ipython":
        item = {**item, "role": "tool"}
    found = message(item)
    return found[0] if found else None


def _text(said: Said) -> str:
    return "".join(part.text for part in said.parts if isinstance(part, Text))


def _with_calls(said: Said, offered: tuple[Tool, ...]) -> Said:
    """The message with calls and results taken out of its text, where it has none beside it."""
    if said.role == "assistant" and not said.calls:
        read: list[Block | RawResult] = []
        for part in said.parts:
            read += read_text(part.text, offered) if isinstance(part, Text) else [part]
        return replace(said, parts=read)
    if said.role == "assistant":
        return said
    parts: list[Block | RawResult] = []
    for part in said.parts:
        found, rest = result_texts(part.text) if isinstance(part, Text) and said.role == "user" else ([], "")
        parts += [RawResult("", "", body) for body in found]
        parts += ([Text(rest)] if rest else []) if found else [part]
    return replace(said, parts=parts)


def _heard(said: Said) -> Said:
    """A user's message after a call: the words in which agents without a tool role tell its result are that result."""
    if said.role != "user" or not said.parts or not isinstance(opening := said.parts[0], Text):
        return said
    told_back = observed(opening.text)
    if told_back is None:
        return said
    name, result = told_back
    return replace(said, parts=[RawResult("", name, result), *said.parts[1:]])
