"""Zed's agent threads (`threads.db`): a thread a row, its document packed with zstd (older rows: plain JSON).

Messages are ``{"User": {...}}`` and ``{"Agent": {...}}`` (version 0.3), an agent's message is one answer of the model;
its `tool_results` answer its calls and flag errors. Older documents (0.1, 0.2) hold `role` and `segments`, with
`tool_uses` and `tool_results` beside them. System prompt and schemas are not stored, nor times of messages.

Records are the rows. "The same session" means: the same thread id. A thread with a `parent_id` is a subagent's.

Not covered: terminals and diffs that the editor keeps beside a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import zstandard

from postgrad.core.canonical import content_id
from postgrad.core.message import Block, Media, Message, Opaque, Reasoning, Role, Text
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import answered, call, shown
from postgrad.traces.formats.shapes.plain import mapping, mappings, opened, string, text, written
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.database import Database
from postgrad.traces.sources.head import Head

_LARGEST = 1 << 30  # bytes of one thread, unpacked


@dataclass(frozen=True)
class Zed:
    """Reader of Zed's agent threads."""

    format: str = "zed"

    def recognises(self, head: Head) -> bool:
        """A table of threads with their documents."""
        if "threads" not in head.tables:
            return False
        with Database(head.path) as database:
            columns = {row[1] for row in database.select("pragma table_info(threads)")}
        return {"id", "summary", "data_type", "data"} <= columns

    def read(self, path: Path) -> ReadResult:
        """Read all threads.

        Raises:
            DataError: it cannot be opened.
        """
        with Database(path) as database:
            source = Source(str(path), self.format, database.sha256, "zed")
            traces: list[Trace] = []
            for item in database.rows("select * from threads order by id"):
                thread = _document(item.value)
                if thread is None:
                    database.use(item.number, "unreadable", "thread")
                    done = "kept raw, not used"
                    database.note(f"the document of thread {item.value.get('id')} cannot be read", done=done)
                    continue
                parent = text(item.value.get("parent_id"))
                talk = _tell(item.number, thread, inner=parent is not None)
                database.use(item.number, "trace" if talk.steps else "event", "thread")
                above = content_id([self.format, parent]) if parent else None
                trace = talk.trace(source, string(item.value.get("id")), index=len(traces), parent=above)
                traces += [trace] if trace else []
            return database.result(source, traces)


def _document(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A row's thread, None for one that cannot be unpacked or is none."""
    data = row.get("data")
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    if not isinstance(raw, bytes):
        return None
    if row.get("data_type") == "zstd":
        try:
            with zstandard.ZstdDecompressor().stream_reader(raw) as stream:
                raw = stream.read(_LARGEST)
        except zstandard.ZstdError:
            return None
    thread = opened(raw.decode("utf-8", "surrogateescape"))
    return thread if isinstance(thread, dict) and isinstance(thread.get("messages"), list) else None


def _tell(number: int, thread: Mapping[str, Any], *, inner: bool) -> Conversation:
    talk = Conversation(
        fidelity="partial", missing=("system prompt", "tool schemas"), kind="subagent" if inner else "main"
    )
    model = text(mapping(thread.get("model")).get("model"))
    usage = mapping(thread.get("request_token_usage"))
    asked = ""
    for message in thread["messages"]:
        value = mapping(message)
        if isinstance(user := value.get("User"), dict):
            asked = string(user.get("id"))
            _say(talk, number, "user", _blocks(user.get("content")))
        elif isinstance(agent := value.get("Agent"), dict):
            _act(talk, number, _blocks(agent.get("content")), agent.get("tool_results"), model)
            talk.log(usage=mapping(usage.get(asked)))
        elif value.get("role") in ("user", "system"):
            _say(talk, number, value["role"], _segments(value))
        elif value.get("role") == "assistant":
            _act(talk, number, [*_segments(value), *_old_calls(value)], value.get("tool_results"), model)
        elif message == "Resume" or "Resume" in value:
            talk.event("resume", number)
        else:
            talk.event("unknown_message", number, written(message)[:200])
    return talk


def _say(talk: Conversation, number: int, role: str, blocks: list[Block]) -> None:
    talk.tell(Message(cast(Role, role), tuple(blocks), (number,)))
    if role == "user":
        talk.event("user_text", number, shown(blocks))


def _act(talk: Conversation, number: int, blocks: list[Block], results: object, model: str | None) -> None:
    if not blocks:
        return
    talk.act(Action(blocks, (number,), model))
    listed = list(results.values()) if isinstance(results, dict) else mappings(results)
    for item in mappings(listed):
        content = item.get("content")
        said = mapping(content).get("Text", content)
        flag = item.get("is_error")
        found = answered(item.get("tool_use_id"), said, is_error=flag if isinstance(flag, bool) else None)
        talk.answer(found.result, record=number, media=found.media)


def _blocks(content: object) -> list[Block]:
    """Parts in the form ``{"Text": "..."}``."""
    blocks: list[Block] = []
    for part in content if isinstance(content, list) else []:
        kind, inner = next(iter(mapping(part).items()), ("?", part))
        value = mapping(inner)
        if kind == "Text" and isinstance(inner, str):
            blocks.append(Text(inner))
        elif kind == "Mention" and isinstance(value.get("content"), str):
            blocks.append(Text(value["content"]))
        elif kind == "Thinking" and isinstance(value.get("text"), str):
            blocks.append(Reasoning(value["text"], text(value.get("signature"))))
        elif kind == "RedactedThinking" and isinstance(inner, str):
            blocks.append(Reasoning(encrypted=inner))
        elif kind == "ToolUse" and isinstance(value.get("name"), str):
            raw = text(value.get("raw_input"))
            blocks.append(call(value["name"], raw or value.get("input"), id=value.get("id")))
        elif kind == "Image" and isinstance(value.get("source"), str):
            blocks.append(Media("image/png", content_id(value["source"], length=64)))
        else:
            blocks.append(Opaque(kind, part))
    return blocks


def _segments(message: Mapping[str, Any]) -> list[Block]:
    """Parts of the older documents; oldest of all is a bare text."""
    blocks: list[Block] = []
    if isinstance(message.get("context"), str) and message["context"]:
        blocks.append(Text(message["context"]))
    for part in mappings(message.get("segments")):
        said = string(part.get("text"))
        if part.get("type") == "thinking":
            blocks.append(Reasoning(said, text(part.get("signature"))))
        elif said:
            blocks.append(Text(said))
    return blocks or ([Text(message["text"])] if text(message.get("text")) else [])


def _old_calls(message: Mapping[str, Any]) -> list[Block]:
    uses = mappings(message.get("tool_uses"))
    return [call(string(use.get("name")), use.get("input"), id=use.get("id")) for use in uses]
