"""VS Code chat sessions: `workspaceStorage/<hash>/chatSessions/<id>.json`, newer `.jsonl` (a log of changes).

A session is a list of requests; `requests` says what is in one. Contexts are rebuilt from what the user typed (or the
rendered message, where it is kept) and the answers before; the system prompt and the tool schemas are not stored.

Records of a document are its requests, by index; of a log its lines, and a request's record is the line that last wrote
to it. "The same session" means: the same session id.

Not covered: requests that were taken back (the file forgets them); which files the editor added to the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Conversation
from postgrad.traces.formats.shapes.plain import mapping, mappings, text
from postgrad.traces.formats.vscode_chat.changes import WHOLE, is_change, replay
from postgrad.traces.formats.vscode_chat.requests import tell
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.jsonl import JsonLines

_NAMES = frozenset({"requesterUsername", "responderUsername", "initialLocation", "creationDate", "lastMessageDate"})


@dataclass(frozen=True)
class VSCodeChat:
    """Reader of VS Code chat sessions."""

    format: str = "vscode_chat"

    def recognises(self, head: Head) -> bool:
        """A list of requests in a document with VS Code's own keys, or a log whose first line sets one."""
        if head.rows and is_change(head.rows[0]):
            first = head.rows[0]
            return first["kind"] == WHOLE and _is_session(first["v"])
        return isinstance(head.document, dict) and _is_session(head.document)

    def read(self, path: Path) -> ReadResult:
        """Read a session.

        Raises:
            DataError: it cannot be opened.
        """
        rows = Head(path).rows
        if rows and is_change(rows[0]):
            lines = JsonLines(path)
            session, places = replay(lines)
            source = Source(str(path), self.format, lines.sha256, "copilot-chat", _version(session))
            talk = _talk()
            for place, request in enumerate(mappings(session.get("requests"))):
                tell(talk, places.get(place, 1), request)
            return lines.result(source, _traces(talk, source, session))
        document = JsonDocument(path, "requests")
        session = mapping(document.envelope)
        source = Source(str(path), self.format, document.sha256, "copilot-chat", _version(session))
        talk = _talk()
        for item in document.rows("requests"):
            use = tell(talk, item.number, item.value) if isinstance(item.value, dict) else "unknown"
            document.use(item.number, use, "request")
        if ENVELOPE in document.entries:
            document.use(ENVELOPE, "metadata", "session")
        return document.result(source, _traces(talk, source, session))


def _is_session(value: Mapping[str, Any]) -> bool:
    requests = value.get("requests")
    if not isinstance(requests, list) or not (_NAMES & value.keys()):
        return False
    listed = mappings(requests)
    return len(listed) == len(requests) and all("message" in item or "response" in item for item in listed)


def _version(session: Mapping[str, Any]) -> str | None:
    """The participant's version, as the first request names it."""
    agents = (mapping(request.get("agent")) for request in mappings(session.get("requests")))
    return next((text(agent.get("extensionVersion")) for agent in agents), None)


def _talk() -> Conversation:
    return Conversation(fidelity="partial", missing=("system prompt", "tool schemas", "context that the editor added"))


def _traces(talk: Conversation, source: Source, session: Mapping[str, Any]) -> list[Trace]:
    trace = talk.trace(source, text(session.get("sessionId")))
    return [trace] if trace else []
