"""What `codex exec --json` puts out: a thread, its turns, and items that start, change and complete.

The stream tells neither the prompt nor where an answer of the model ends. A step is a run of items that begin before
the result of one of them is there; so parallel commands are one step, as in a rollout. Token counts are a turn's.

Not covered: the older event stream (`{"id", "msg": {"type": ...}}`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Media, Reasoning, ResultStatus, Text, ToolResult
from postgrad.core.trace import Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, string, text, written
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines

_CALLS = {
    "command_execution": ("shell", ("command",)),
    "file_change": ("apply_patch", ("changes",)),
    "mcp_tool_call": ("", ("arguments",)),
    "web_search": ("web_search", ("query",)),
    "collab_tool_call": ("", ("prompt", "receiver_thread_ids")),
}
_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_ENDED = frozenset({"completed", "failed", "declined"})


@dataclass(frozen=True)
class CodexExec:
    """Reader of the output of `codex exec --json`."""

    format: str = "codex_exec"

    def recognises(self, head: Head) -> bool:
        """A thread that started, or items under the names of the stream."""
        started = any(row.get("type") == "thread.started" and text(row.get("thread_id")) for row in head.rows)
        items = [row for row in head.rows if row.get("type") in ("item.started", "item.completed")]
        known = [mapping(row.get("item")).get("type") in (*_CALLS, "agent_message", "reasoning") for row in items]
        return started or (bool(known) and all(known) and any(string(row.get("type")) in _TYPES for row in head.rows))

    def read(self, path: Path) -> ReadResult:
        """Read an output.

        Raises:
            DataError: it cannot be opened.
        """
        lines = JsonLines(path)
        thread = _Thread(lines)
        for row in lines.rows():
            thread.event(row.number, row.value)
        thread.close()
        source = Source(str(path), self.format, lines.sha256, "codex-cli")
        trace = thread.talk.trace(source, thread.id)
        return lines.result(source, [trace] if trace is not None else [])


@dataclass
class _Thread:
    """The conversation so far; `_open` are the blocks and records of the answer that is still going on."""

    lines: JsonLines
    id: str | None = None
    talk: Conversation = field(
        default_factory=lambda: Conversation(
            fidelity="partial", missing=("system prompt", "tool schemas", "user prompt")
        )
    )
    _open: list[tuple[int, Block]] = field(default_factory=list)
    _begun: set[str] = field(default_factory=set)
    _waiting: list[tuple[int, ToolResult, tuple[Media, ...]]] = field(default_factory=list)

    def event(self, number: int, value: Mapping[str, Any]) -> None:
        """Take in one row."""
        kind, item = string(value.get("type")), mapping(value.get("item"))
        use, row_kind = "metadata", f"{kind}:{item['type']}" if text(item.get("type")) else kind
        if kind == "thread.started":
            self.id = text(value.get("thread_id")) or self.id
        elif kind in ("turn.failed", "error"):
            self.close()
            said = string(mapping(value.get("error")).get("message")) or string(value.get("message"))
            self.talk.event("api_error", number, said)
            use = "event"
        elif kind == "turn.completed":
            self.close()
            self.talk.event("turn_usage", number, usage=mapping(value.get("usage")))
            use = "event"
        elif kind.startswith("item.") and item:
            use = self._item(number, kind, item)
        elif kind != "turn.started":
            use = "unknown"
        self.lines.use(number, use, row_kind)

    def _item(self, number: int, kind: str, item: Mapping[str, Any]) -> str:
        what = string(item.get("type"))
        if what in _CALLS:
            return self._call(number, kind, item)
        if kind != "item.completed":
            return "superseded"
        if what in ("agent_message", "reasoning"):
            said = string(item.get("text"))
            self._begin(number, Text(said) if what == "agent_message" else Reasoning(said))
            return "step"
        if what == "error":
            self.talk.event("api_error", number, string(item.get("message")))
            return "event"
        if what in ("todo_list", "plan"):
            self.talk.event("plan", number, written(item.get("items") or item.get("text")))
            return "event"
        self.lines.note(f"unknown item type '{what}'", done="kept raw, in no step", line=number)
        return "unknown"

    def _call(self, number: int, kind: str, item: Mapping[str, Any]) -> str:
        key = string(item.get("id"))
        use = "superseded"
        if key not in self._begun:
            name, keys = _CALLS[string(item.get("type"))]
            given = {key: item[key] for key in keys if key in item}
            given = mapping(given.get("arguments")) if "arguments" in given else given
            server = [string(item.get(key)) for key in ("server", "tool") if text(item.get(key))]
            self._begin(number, call(name or ".".join(server), given, id=key))
            self._begun.add(key)
            use = "step"
        if kind == "item.completed" or string(item.get("status")) in _ENDED:
            found = _result(item)
            content = read_content(mapping(item.get("result")).get("content")).blocks
            media = tuple(block for block in content if isinstance(block, Media))
            self._waiting.append((number, found, media))
            use = "result" if use == "superseded" else use
        return use

    def _begin(self, number: int, block: Block) -> None:
        """Something new of the model: after a result it begins another answer."""
        if self._waiting:
            self.close()
        self._open.append((number, block))

    def close(self) -> None:
        """The answer that is going on is whole, and so are the results that came."""
        if self._open:
            numbers = tuple(dict.fromkeys(number for number, _ in self._open))
            self.talk.act(Action([block for _, block in self._open], numbers))
            self._open = []
        for number, found, media in self._waiting:
            self.talk.answer(found, record=number, media=media)
        self._waiting = []


def _result(item: Mapping[str, Any]) -> ToolResult:
    status, code = item.get("status"), item.get("exit_code")
    failed = status in ("failed", "declined") or (isinstance(code, int) and code != 0)
    flag = True if failed else False if status == "completed" or code == 0 else None
    said = item.get("aggregated_output")
    if not isinstance(said, str):
        error = string(mapping(item.get("error")).get("message"))
        said = error or shown(read_content(mapping(item.get("result")).get("content")).blocks)
    kind: ResultStatus = "rejected" if status == "declined" else "error" if failed else "ok"
    return ToolResult(string(item.get("id")), said, flag, kind)
