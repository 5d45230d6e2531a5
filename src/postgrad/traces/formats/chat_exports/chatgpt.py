"""ChatGPT's data export: `conversations.json`, conversations whose messages are the nodes of a tree (`mapping`).

    node      {"id", "message", "parent", "children"}; `current_node` ends the path that the user sees
    message   {"author": {"role", "name"}, "content": {"content_type", ...}, "recipient", "end_turn", "metadata"}

An assistant's message to another recipient than "all" is a call of that tool; the tool's message is its result. Several
messages of the assistant in a row (thoughts, a text, a call) are one turn. System prompt and tools are not in the
export, nor is what memory and custom instructions made of the prompt, beyond the hidden messages that are. Thumbs stand
in `message_feedback.json` beside the file. A record is a conversation; in a file of one conversation, a node.

"The same conversation" means: the same conversation id.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.core.message import Block, Media, Opaque, Reasoning, Role, Text, ToolCall, ToolResult
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.formats.chat_exports.tree import Named, Node, Tree
from postgrad.traces.formats.datasets.rows import Row, Rows, row_heads
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, moment, string, text, written
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.raw import open_raw

_MISSING = ("system prompt", "tool schemas", "exact requests")
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_FEEDBACK = "message_feedback.json"


@dataclass(frozen=True)
class ChatGPTExport:
    """Reader of ChatGPT's conversations."""

    format: str = "chatgpt"

    def recognises(self, head: Head) -> bool:
        """Conversations with a mapping whose nodes have a message with an author, and children."""
        rows = row_heads(head, "mapping")
        return all("mapping" in row for row in rows) and any(_is_mapping(row.get("mapping")) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened or is no JSON.
        """
        rows = Rows(path, "mapping")
        source = Source(str(path), self.format, "", "chatgpt")
        return rows.result(source, self._traces(rows, source, _feedback(path)))

    def _traces(self, rows: Rows, source: Source, thumbs: Mapping[str, list[Feedback]]) -> Iterator[Trace]:
        index = 0
        for row in rows:
            value = row.value
            nodes = [node for place, raw in enumerate(_nodes(value)) if (node := _node(row, place, raw, thumbs))]
            task = text(first(value, "conversation_id", "id"))
            name = content_id([source.format, task or [node.id for node in nodes[:3]]])
            trace = Tree(nodes, text(value.get("current_node"))).trace(Named(name, source, index, _MISSING, task))
            if trace is None:
                row.refuse("a conversation without an answer")
                continue
            index += 1
            row.settle("node")
            yield trace


def _is_mapping(value: object) -> bool:
    nodes = list(value.values()) if isinstance(value, dict) else value
    found = [node for node in mappings(nodes) if "message" in node and {"parent", "children"} & node.keys()]
    return bool(found) and any(isinstance(mapping(node["message"]).get("author"), dict) for node in found)


def _nodes(value: Mapping[str, Any]) -> list[Any]:
    """The nodes of a conversation: of an object their members, of a file of one conversation a list already."""
    nodes = value.get("mapping")
    if isinstance(nodes, dict):
        return [{"id": key, **node} if isinstance(node, dict) else node for key, node in nodes.items()]
    return nodes if isinstance(nodes, list) else []


def _node(row: Row, place: int, raw: object, thumbs: Mapping[str, list[Feedback]]) -> Node | None:
    node = mapping(raw)
    key = text(node.get("id"))
    if key is None:
        row.odd(place, "no node of a conversation")
        return None
    said = mapping(node.get("message"))
    metadata, role = mapping(said.get("metadata")), string(mapping(said.get("author")).get("role"))
    known = cast(Role, role if role in _ROLES else "system")
    blocks = _content(mapping(said.get("content"))) if said else []
    result = _result(said, metadata) if known == "tool" else None
    recipient = string(said.get("recipient"))
    if known == "assistant" and recipient not in ("", "all", "assistant"):
        blocks = [_call(key, recipient, blocks)]
    row.use(place, {"assistant": "step", "tool": "result"}.get(known, "context") if said else "metadata", known)
    return Node(
        key,
        text(node.get("parent")),
        known,
        tuple(block for block in blocks if result is None or not isinstance(block, Text)),
        row.record(place),
        time=moment(said.get("create_time")),
        model=text(metadata.get("model_slug")),
        stop_reason=text(mapping(metadata.get("finish_details")).get("type")) or _status(said),
        ends=said.get("end_turn") is True,
        hidden=metadata.get("is_visually_hidden_from_conversation") is True,
        feedback=tuple(thumbs.get(string(said.get("id")) or key, ())),
        result=result,
    )


def _status(said: Mapping[str, Any]) -> str | None:
    """An answer that was cut off says so in its status."""
    status = text(said.get("status"))
    return status if status not in ("finished_successfully", None) else None


def _content(content: Mapping[str, Any]) -> list[Block]:
    kind = string(content.get("content_type"))
    if kind == "thoughts":
        thoughts = [
            string(item.get("content")) or string(item.get("summary")) for item in mappings(content.get("thoughts"))
        ]
        return [Reasoning("\n\n".join(thoughts))] if any(thoughts) else []
    if kind == "reasoning_recap":
        return []  # "Thought for 5 seconds": the screen's words, not the model's
    if kind == "user_editable_context":
        said = [string(content.get(key)) for key in ("user_profile", "user_instructions")]
        return [Text("\n\n".join(part for part in said if part))] if any(said) else []
    parts = content.get("parts")
    if isinstance(parts, list):
        return [block for part in parts for block in _part(part)]
    said = first(content, "text", "result", "content", "name")
    if isinstance(said, str):
        return [Text(said)] if said else []
    return [Opaque(kind or "?", dict(content))] if content else []


def _part(part: object) -> list[Block]:
    if isinstance(part, str):
        return [Text(part)] if part else []
    value = mapping(part)
    if isinstance(value.get("text"), str):
        return [Text(value["text"])]
    pointer = text(value.get("asset_pointer"))
    if pointer:
        kind = "audio/*" if "audio" in string(value.get("content_type")) else "image/*"
        return [Media(kind, "", pointer)]
    return [Opaque(string(value.get("content_type")) or "?", part)]


def _call(key: str, name: str, blocks: list[Block]) -> ToolCall:
    """A call. Most tools are sent JSON, some code or words, which are then the one argument."""
    said = "".join(block.text for block in blocks if isinstance(block, Text))
    call = ToolCall.from_raw(id=key, name=name, raw=said)
    if call.arguments is not None and said.strip():
        return call
    return ToolCall.from_raw(id=key, name=name, raw=written({"code" if name == "python" else "input": said}))


def _result(said: Mapping[str, Any], metadata: Mapping[str, Any]) -> ToolResult:
    """A tool's message. An error is told by its content type, or by how the code ended."""
    content = mapping(said.get("content"))
    blocks = _content(content)
    shown = "\n".join(block.text if isinstance(block, Text) else f"[{block.mime} {block.uri}]"
                      for block in blocks if isinstance(block, Text | Media))  # fmt: skip
    ended = string(mapping(metadata.get("aggregate_result")).get("status"))
    flag = True if content.get("content_type") == "system_error" or ended.startswith("failed") else None
    flag = False if ended == "success" else flag
    return ToolResult("", shown, flag, "error" if flag else "ok")


def _feedback(path: Path) -> dict[str, list[Feedback]]:
    """Thumbs by message id, from the file beside the conversations; an export without that file has none."""
    found: dict[str, list[Feedback]] = defaultdict(list)
    try:
        with open_raw(path.with_name(_FEEDBACK)) as stream:
            rows = json.loads(stream.read().decode("utf-8", "replace"))
    except (DataError, ValueError, RecursionError):
        return found
    for row in mappings(rows):
        value = {"thumbs_up": 1.0, "thumbs_down": 0.0}.get(string(row.get("rating")))
        said = row.get("content")
        words = string(mapping(said).get("text")) or (said if isinstance(said, str) and said != "{}" else "")
        found[string(first(row, "message_id", "id"))].append(Feedback("rating", value, words, "user"))
    return found
