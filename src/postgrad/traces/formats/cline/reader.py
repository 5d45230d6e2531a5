"""Cline, Roo Code and Kilo Code tasks: a task folder, one of its files, or a session of Cline's SDK.

- the folder of a task (`api_conversation_history.json`, `ui_messages.json`, metadata) is read as one source. Records
  are the messages of the history by index, then those of the screen, then the other files;
- `api_conversation_history.json` alone; the `ui_messages.json` beside it, where there is one, gives events;
- `ui_messages.json` alone: steps are rebuilt from it only if no history lies beside it;
- `*.messages.json` of the SDK and the command line: `{agent, sessionId, messages, system_prompt}`.

"The same session" means: the session id, else the same time of the first message, first context and first action.

Not covered: Kilo's SQLite store (opencode's schema); the list of files in context; shadow git checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Conversation
from postgrad.traces.formats.cline import screen
from postgrad.traces.formats.cline.task import Task
from postgrad.traces.formats.content import read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, mappings, moment, string, text
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, Item, JsonDocument
from postgrad.traces.sources.folder import Folder, entries_of
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.ledger import Ledger

HISTORY, SCREEN = "api_conversation_history.json", "ui_messages.json"
_OLD_NAMES = {"claude_messages.json": SCREEN}
_MARKS = ("<task>", "<environment_details>", "<user_message>", "[TASK RESUMPTION]")
_MISSING = ("system prompt", "tool schemas")


@dataclass(frozen=True)
class Cline:
    """Reader of tasks of Cline and its kin."""

    format: str = "cline"

    def recognises(self, head: Head) -> bool:
        """A task folder; a history with Cline's marks; messages of its screen; a session of its SDK."""
        if head.path.is_dir():
            inside = entries_of(head.path)
            names = {file.name for file in inside}
            flat = not any(file.is_dir() for file in inside)
            files = [head.path / name for name in (HISTORY, SCREEN) if name in names]
            return flat and any(self.recognises(Head(file)) or not file.stat().st_size for file in files)
        document = head.document
        if isinstance(document, dict):
            return _is_session(document)
        if not isinstance(document, list) or not document:
            return False
        return all(screen.is_row(row) for row in document[:50]) or _is_history(document, head.path.name)

    def read(self, path: Path) -> ReadResult:
        """Read a task.

        Raises:
            DataError: it cannot be opened.
        """
        if path.is_dir():
            return self._folder(path)
        document = JsonDocument(path, "")
        if isinstance(document.envelope, dict):
            return self._session(path)
        items = list(document.rows(""))
        source = Source(str(path), self.format, document.sha256, _app(path))
        if any(screen.is_row(item.value) for item in items[:50]):
            rows = screen.read_rows([(item.number, item.value) for item in items])
            alone = not _has_history(path.parent / HISTORY)
            return document.result(source, _from_screen(document, source, rows, alone=alone))
        rows = screen.read_rows(_beside(document, path.parent / SCREEN, first=len(items)))
        trace = _from_history(document, source, items, rows)
        return document.result(source, [trace] if trace else [])

    def _folder(self, path: Path) -> ReadResult:
        folder = Folder(path)
        source = Source(str(path), self.format, folder.sha256, _app(path))
        named = {_OLD_NAMES.get(file.name, file.name): file for file in folder.files}
        lists: dict[str, list[Item]] = {HISTORY: [], SCREEN: []}
        for name in lists:
            if name in named:
                document = folder.document(named[name], "", first=_free(folder))
                lists[name] = list(document.rows("")) if document else []
        item: dict[str, Any] = {}
        for file in folder.files:
            if _OLD_NAMES.get(file.name, file.name) not in lists:
                number = _free(folder)
                if file.name == "history_item.json":
                    item = mapping(folder.value(file, number))
                else:
                    folder.entry(file, number)
                if folder.entries[number].status == "ok":
                    folder.use(number, "metadata", "file")
        rows = screen.read_rows([(entry.number, entry.value) for entry in lists[SCREEN]])
        if not lists[HISTORY]:
            return folder.result(source, _from_screen(folder, source, rows, alone=True))
        parent = text(item.get("parentTaskId"))
        trace = _from_history(folder, source, lists[HISTORY], rows, parent=f"cline-task:{parent}" if parent else None)
        for entry in lists[SCREEN]:
            known = screen.is_row(entry.value)
            folder.use(entry.number, "ui" if known else "unknown", "screen")
        return folder.result(source, [trace] if trace else [])

    def _session(self, path: Path) -> ReadResult:
        document = JsonDocument(path, "messages")
        head = document.envelope
        source = Source(str(path), self.format, document.sha256, "cline")
        talk = Conversation(fidelity="partial", missing=_MISSING, agent=text(head.get("agent")))
        prompt = read_content(head.get("system_prompt")).blocks
        if prompt:
            talk.tell(Message("system", prompt, (ENVELOPE,)))
            talk.change(fidelity="reconstructed", missing=("tool schemas",))
        task = Task(talk)
        for item in document.rows("messages"):
            _use(document, item, task)
        if ENVELOPE in document.entries:
            document.use(ENVELOPE, "context" if prompt else "metadata", "session")
        trace = talk.trace(source, text(head.get("sessionId")), text(head.get("agent")))
        return document.result(source, [trace] if trace else [])


def _is_history(document: list[Any], name: str) -> bool:
    """Messages of the two roles, with the times of this application, or the words that it puts around the user's."""
    shaped = [item for item in mappings(document) if "content" in item or item.get("type") == "reasoning"]
    roles = {string(item.get("role")) for item in shaped if item.get("type") != "reasoning"}
    if len(shaped) < len(document) or not roles <= {"user", "assistant"} or "user" not in roles:
        return False
    first = shown(read_content(shaped[0].get("content")).blocks)
    named = name in (HISTORY, *_OLD_NAMES)
    timed = all(isinstance(item.get("ts"), int | float) for item in shaped)
    marked = any(mark in first for mark in _MARKS)
    return marked or ((named or timed) and any(isinstance(item.get("content"), list) for item in shaped))


def _is_session(document: dict[str, Any]) -> bool:
    messages = document.get("messages")
    known = {"agent", "sessionId", "version"} <= document.keys()
    return known and isinstance(messages, list) and all(item.get("role") for item in mappings(messages))


def _app(path: Path) -> str:
    """Which of the three it was; only the folder of the extension says so."""
    where = str(path).lower()
    return "kilo-code" if "kilo" in where else "roo-code" if "roo" in where else "cline"


def _free(folder: Folder) -> int:
    return max([*folder.entries, -1]) + 1


def _has_history(path: Path) -> bool:
    """Whether a history that can be read lies there."""
    try:
        return path.is_file() and any(True for _ in JsonDocument(path, "").rows(""))
    except DataError:
        return False


def _beside(ledger: Ledger, path: Path, *, first: int) -> list[tuple[int, object]]:
    """The screen's messages that lie beside a history; their records are not of this source."""
    if not path.is_file():
        return []
    try:
        document = JsonDocument(path, "", first=first)
    except DataError as error:
        ledger.note(f"the screen's messages beside it cannot be read: {error}", done="read the history alone")
        return []
    if document.truncated:
        ledger.note("the screen's messages beside it stop in the middle", done="used as far as they go")
    return [(item.number, item.value) for item in document.rows("")]


def _from_screen(ledger: Ledger, source: Source, rows: list[screen.Row], *, alone: bool) -> list[Trace]:
    talk = Conversation(fidelity="none", missing=(*_MISSING, "the messages as they were sent"))
    uses = screen.tell(talk, rows) if alone else {row.number: "ui" for row in rows}
    kinds = {row.number: row.kind for row in rows}
    for number, entry in ledger.entries.items():
        if entry.status == "ok" and not entry.used_as:
            ledger.use(number, uses.get(number, "unknown"), kinds.get(number, "?"))
    begun = moment(rows[0].value.get("ts")) if rows else None
    trace = talk.trace(source, begun, "screen", *(talk.beginning if talk.steps else ()))
    return [trace] if trace else []


def _from_history(
    ledger: Ledger, source: Source, items: list[Item], rows: list[screen.Row], *, parent: str | None = None
) -> Trace | None:
    talk = Conversation(fidelity="partial", missing=_MISSING)
    answers = sum(mapping(item.value).get("role") == "assistant" for item in items)
    logged = screen.usage(rows)
    task = Task(talk, usage=logged if len(logged) == answers else ())
    task.learn_names([item.value for item in items])
    cuts = screen.ranges(rows)
    for item in items:
        _use(ledger, item, task)
        if item.number in cuts:
            task.leave_out(*cuts[item.number])
    screen.add_events(talk, rows, task.places)
    if not talk.steps:
        return None
    begun = next((moment(mapping(item.value).get("ts")) for item in items), None)
    return talk.trace(source, begun, *talk.beginning, parent=parent)


def _use(ledger: Ledger, item: Item, task: Task) -> None:
    value = mapping(item.value)
    use = task.tell(item.number, value)
    ledger.use(item.number, use, string(value.get("role")) or string(value.get("type")) or "?")
    if use == "unknown":
        ledger.note("the record is no message", done="kept raw, not used", line=item.number)
