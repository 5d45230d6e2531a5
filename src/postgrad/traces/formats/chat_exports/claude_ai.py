"""Claude.ai's data export: `conversations.json`, conversations with `chat_messages`.

    message   {"uuid", "sender": "human" | "assistant", "text", "content": [blocks], "parent_message_uuid"}

Messages name their parents in newer exports, where an answer generated anew hangs beside the first; older ones are a
list. One message of the assistant holds a whole turn: it is cut behind every result in it, for there the model was
asked again. Text of attached files is part of what the user said. Models, usage, system prompt and tools are not
exported. A record is a conversation; in a file of one conversation, a message.

"The same conversation" means: the same conversation uuid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgrad.core.canonical import content_id
from postgrad.core.message import Block, Opaque, Text, ToolResult
from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.chat_exports.tree import Named, Node, Tree
from postgrad.traces.formats.content import Answered, read_content
from postgrad.traces.formats.datasets.rows import Row, Rows, row_heads
from postgrad.traces.formats.shapes.plain import first, mappings, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_MISSING = ("system prompt", "tool schemas", "exact requests")


@dataclass(frozen=True)
class ClaudeAIExport:
    """Reader of Claude.ai's conversations."""

    format: str = "claude_ai"

    def recognises(self, head: Head) -> bool:
        """Conversations with a list of messages that have a sender."""
        rows = row_heads(head, "chat_messages")
        return bool(rows) and all("chat_messages" in row for row in rows) and any(_spoken(row) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened or is no JSON.
        """
        rows = Rows(path, "chat_messages")
        source = Source(str(path), self.format, "", "claude.ai")
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        index = 0
        for row in rows:
            nodes, ends = _nodes(row)
            task = text(row.value.get("uuid"))
            name = content_id([source.format, task or [node.id for node in nodes[:3]]])
            current = ends.get(string(row.value.get("current_leaf_message_uuid")), nodes[-1].id if nodes else None)
            missing = (*_MISSING, "wording of attachments") if _attached(row.value) else _MISSING
            trace = Tree(nodes, current).trace(Named(name, source, index, missing, task))
            if trace is None:
                row.refuse("a conversation without an answer")
                continue
            index += 1
            row.settle("message")
            yield trace


def _spoken(row: Mapping[str, Any]) -> bool:
    return any(item.get("sender") in ("human", "assistant") for item in mappings(row.get("chat_messages")))


def _attached(row: Mapping[str, Any]) -> bool:
    return any(item.get("attachments") or item.get("files") for item in mappings(row.get("chat_messages")))


def _nodes(row: Row) -> tuple[list[Node], dict[str, str]]:
    """The nodes of a conversation, and for every message the last of its nodes."""
    nodes: list[Node] = []
    ends: dict[str, str] = {}
    listed = row.value.get("chat_messages")
    before: str | None = None
    for place, item in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(item, dict) or item.get("sender") not in ("human", "assistant"):
            row.odd(place, "no message of a conversation")
            continue
        key = text(item.get("uuid")) or f"message {place}"
        above = text(item.get("parent_message_uuid"))
        parent = ends.get(above) if above is not None else before
        nodes += _message(row, place, item, key, parent)
        before = ends[key] = nodes[-1].id
        row.use(place, "step" if item["sender"] == "assistant" else "context", string(item["sender"]))
    return nodes, ends


@dataclass
class _Cut:
    """A part of an assistant's message: what the model said, and the results that it then got."""

    blocks: list[Block] = field(default_factory=list)
    results: list[Answered] = field(default_factory=list)


def _message(row: Row, place: int, item: Mapping[str, Any], key: str, parent: str | None) -> list[Node]:
    record, time = row.record(place), text(first(item, "created_at", "updated_at"))
    if item["sender"] == "human":
        return [Node(key, parent, "user", tuple(_said(item)), record, time)]
    nodes: list[Node] = []
    for cut in _cuts(item):
        above = nodes[-1].id if nodes else parent
        said = Node(
            f"{key} {len(nodes)}",
            above,
            "assistant",
            tuple(cut.blocks),
            record,
            time,
            stop_reason=text(item.get("stop_reason")),
        )
        nodes.append(said)
        for answered in cut.results:
            node = Node(f"{key} {len(nodes)}", nodes[-1].id, "tool", tuple(answered.media), record, time)
            node.result = answered.result
            nodes.append(node)
    nodes[-1].ends = True
    return nodes


def _cuts(item: Mapping[str, Any]) -> list[_Cut]:
    """An assistant's message, cut where the model was asked again: behind the results in it."""
    cuts = [_Cut()]
    content = item.get("content")
    for part in content if isinstance(content, list) and content else [item.get("text")]:
        read = read_content(part)
        if read.blocks and cuts[-1].results:
            cuts.append(_Cut())
        cuts[-1].blocks += read.blocks
        cuts[-1].results += [_unnamed(answered) for answered in read.results]
    return cuts


def _unnamed(answered: Answered) -> Answered:
    """Exports leave out ids: a result then answers the oldest open call."""
    result = answered.result
    return Answered(ToolResult(result.call_id or "", result.text, result.is_error, result.status), answered.media)


def _said(item: Mapping[str, Any]) -> list[Block]:
    """What the user said, with the text of what was attached."""
    blocks = list(read_content(item.get("content")).blocks)
    said = text(item.get("text"))
    if said and not any(isinstance(block, Text) for block in blocks):
        blocks.insert(0, Text(said))
    for attachment in mappings(item.get("attachments")):
        content = text(attachment.get("extracted_content"))
        blocks.append(Text(content) if content else Opaque("attachment", attachment))
    return blocks + [Opaque("file", file) for file in mappings(item.get("files"))]
