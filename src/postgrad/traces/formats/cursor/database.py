"""Cursor's editor database (`state.vscdb`): conversations ("composers") and their messages ("bubbles") by key.

    composerData:<id>            a conversation: the order of its bubbles, or the bubbles themselves
    bubbleId:<id>:<bubble>       a message: type 1 is the user's, 2 the model's (text, thinking, or one tool call)

The database does not say which bubbles were one response of the model. Here they are one: thoughts, text and the call
behind them, and further calls if they name the same `modelCallId` (versions without it made one call at a time). A
call's arguments are the model's own string (`rawArgs`); its status is the flag, the user's decision is kept as a
judgement. Accepted and rejected diffs judge the step of their bubble. System prompt and schemas are not there: partial.

Records are the rows of the table, in the order of the keys; those of other things are screen data. "The same session"
means: the same composer id.

Not covered: files and selections attached to a message; checkpoints; the workspace databases (they hold lists only).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.core.trace import Source, Trace
from postgrad.traces.formats.cursor.composer import Bubble, Composer
from postgrad.traces.formats.shapes.plain import mapping, mappings, opened, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.database import Database
from postgrad.traces.sources.head import Head

_TABLE = "cursorDiskKV"
_QUERY = f"select key, value from {_TABLE} order by key"
_HAS = f"select 1 from {_TABLE} where key like 'composerData:%' and value is not null limit 1"


@dataclass(frozen=True)
class CursorDatabase:
    """Reader of Cursor's editor database."""

    format: str = "cursor"

    def recognises(self, head: Head) -> bool:
        """Cursor's table with a conversation in it; VS Code's databases have neither."""
        if _TABLE not in head.tables:
            return False
        try:
            with Database(head.path) as database:
                return bool(database.select(_HAS))
        except DataError:
            return False

    def read(self, path: Path) -> ReadResult:
        """Read all conversations.

        Raises:
            DataError: it cannot be opened.
        """
        with Database(path) as database:
            source = Source(str(path), self.format, database.sha256, "cursor")
            rows = _Rows()
            for item in database.rows(_QUERY):
                kind = rows.add(item.number, item.key, opened(_decoded(item.value.get("value"))))
                if kind == "unknown":
                    database.note(f"the value of {item.key} is no object", done="kept raw, not used", line=item.number)
            traces: list[Trace] = []
            parents = {child: name for name, (_, value) in rows.composers.items() for child in _children(value)}
            for name, (number, value) in rows.composers.items():
                composer = Composer(value, number, rows.ordered(name, value))
                rows.uses |= composer.uses
                parent = parents.get(name) or text(mapping(value.get("subagentInfo")).get("parentComposerId"))
                above = content_id([self.format, parent]) if parent else None
                trace = composer.talk.trace(source, name, index=len(traces), parent=above)
                traces += [trace] if trace else []
            for number, (use, kind) in rows.uses.items():
                database.use(number, use, kind)
            return database.result(source, traces)


@dataclass
class _Rows:
    """The table's rows by what they are; `uses` says it of every one."""

    composers: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    bubbles: dict[str, dict[str, Bubble]] = field(default_factory=dict)
    uses: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, number: int, key: str, value: object) -> str:
        """Enter a row, and say what it is."""
        kind, _, rest = key.partition(":")
        use = "ui"
        if kind in ("composerData", "bubbleId"):
            use = "metadata" if isinstance(value, dict) else "blank_value" if value is None else "unknown"
        if use == "metadata" and kind == "composerData":
            self.composers[rest] = number, mapping(value)
        elif use == "metadata":
            composer, _, name = rest.partition(":")
            self.bubbles.setdefault(composer, {})[name] = Bubble(number, name, mapping(value))
            use = "unlisted"
        self.uses[number] = use, kind
        return use

    def ordered(self, name: str, value: Mapping[str, Any]) -> Sequence[Bubble]:
        """A conversation's bubbles in its own order; inline ones have the conversation's record."""
        number = self.composers[name][0]
        own = self.bubbles.get(name, {})
        headers = mappings(value.get("fullConversationHeadersOnly"))
        if headers:
            listed = [text(header.get("bubbleId")) or "" for header in headers]
            inline = mapping(value.get("conversationMap"))
            return [found for key in listed if (found := own.get(key) or _inline(number, key, inline.get(key)))]
        whole = mappings(value.get("conversation"))
        return [Bubble(number, text(bubble.get("bubbleId")) or "", bubble) for bubble in whole]


def _inline(number: int, name: str, value: object) -> Bubble | None:
    return Bubble(number, name, value) if isinstance(value, dict) else None


def _children(value: Mapping[str, Any]) -> Iterable[str]:
    listed = value.get("subComposerIds")
    return (child for child in listed if isinstance(child, str)) if isinstance(listed, list) else ()


def _decoded(value: object) -> object:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
