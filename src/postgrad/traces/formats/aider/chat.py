"""Aider's `.aider.chat.history.md`: a chat from every ``# aider chat started at``, each a trace.

Lines with ``####`` are the user's, lines with ``>`` the tool's, all others the model's. Inside a closed fence no line
is a marker. Text of the model counts as an answer once something was sent to it; the output of a command (``/run``,
``/test``) looks the same, so behind one only a text counts whose tokens the tool then reports. An edit that did not
apply goes back to the model at once, without a line of the user.

Contexts are the turns of the chat and nothing else (no instructions, no files): partial. The tool's lines give the
events and judgements: applied edits, commits, stops, API errors, edits that broke the format, findings of the linter,
what commands of the user wrote, and ``/undo``, which judges the step whose commit it took back. Records are runs of
lines of one kind, by their first line.

"The same session" means: the same start, first context and first action.

Not covered: which files were in the chat; the model of a step after ``/model``; times other than the start's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from postgrad.core.message import Message, Text
from postgrad.core.trace import Feedback, Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.aider.lines import Kind, Lines
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head
from postgrad.traces.sources.text_lines import Section, TextLines

START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_MARKER = re.compile(r"^(####|>)", re.MULTILINE)
_MODEL = re.compile(r"^> (?:Models?|Main model): (\S+) with ", re.MULTILINE)
_VERSION = re.compile(r"^> Aider v(\S+)", re.MULTILINE)
_TOKENS = re.compile(r"^> Tokens: ([\d.,]+[kM]?) sent, (?:.*?, )?([\d.,]+[kM]?) received", re.MULTILINE)
_COMMIT = re.compile(r"^> Commit ([0-9a-f]{7,}) ", re.MULTILINE)
_REMOVED = re.compile(r"^> (?:Removed: |Commit |The last commit )([0-9a-f]{7,})", re.MULTILINE)
_ASKS = re.compile(r"\A/(ask|code|architect|help|context|ok)\b")
_RUNS = re.compile(r"\A/(test|run|lint|web|commit|editor|edit)\b|\A!")
_BROKEN = re.compile(r"did not conform to the edit format|SearchReplaceNoExactMatch|block(s)? failed to match")
_LINTED = re.compile(r"^> (?:## See relevant lines? below|Attempt to fix lint errors\?)", re.MULTILINE)
_FINDINGS = re.compile(r"^> (?!#+ |Attempt |Tokens: |Applied |Commit|You can use |Add )(.+)$", re.MULTILINE)
_API_ERROR = re.compile(r"^> .*(litellm\.\w*Error|API provider|Retrying in [\d.]+ seconds)", re.MULTILINE)


@dataclass(frozen=True)
class AiderChat:
    """Reader of Aider's Markdown chat histories."""

    format: str = "aider"

    def recognises(self, head: Head) -> bool:
        """A line that starts a chat, and lines of the user or the tool."""
        return START.search(head.text) is not None and _MARKER.search(head.text) is not None

    def read(self, path: Path) -> ReadResult:
        """Read a history.

        Raises:
            DataError: it cannot be opened.
        """
        text = TextLines(path)
        lines = Lines(text.lines)
        chat, chats = _Chat(""), []
        sections = list(text.sections(lines.starts))
        for section, following in zip_longest(sections, sections[1:]):
            kind = lines.kind(section.number)
            started = START.match(section.lines[0]) if kind == "start" else None
            if started:
                chats.append(chat)
                chat = _Chat(started[1])
            if text.entries[section.number].status != "blank":
                billed = following is not None and _TOKENS.search("\n".join(following.lines)) is not None
                text.use(section.number, chat.tell(kind, section, billed=billed), kind)
        chats.append(chat)
        version = next((chat.version for chat in chats if chat.version), None)
        source = Source(str(path), self.format, text.sha256, "aider", version)
        found = [chat for chat in chats if chat.talk.steps]
        traces = [
            trace
            for index, chat in enumerate(found)
            if (trace := chat.talk.trace(source, chat.begun, *chat.talk.beginning, index=index))
        ]
        return text.result(source, traces)


class _Chat:
    """One chat, told section by section."""

    def __init__(self, begun: str) -> None:
        self.begun = begun
        self.version: str | None = None
        self.talk = Conversation(
            fidelity="partial", missing=("system prompt", "files in the chat", "repository map", "tool outputs")
        )
        self._model: str | None = None
        self._sent = self._running = False
        self._command = ""
        self._commits: dict[str, int] = {}

    def tell(self, kind: Kind, section: Section, *, billed: bool) -> str:
        """One section, and what it was used as; `billed`: tokens are reported right behind it."""
        said = "\n".join(section.lines)
        if kind == "start":
            self.talk.event("session_start", section.number, self.begun)
            return "event"
        if kind == "user":
            return self._user(section)
        if kind == "tool":
            return self._tool(section.number, said)
        said = said.strip()
        if not said or not (self._sent or (self._running and billed)):
            return "ui"
        self._sent = True
        self.talk.act(Action((Text(said),), (section.number,), self._model))
        return "step"

    def _user(self, section: Section) -> str:
        said = "\n".join(line[4:].removeprefix(" ").removesuffix("  ") for line in section.lines if line.strip())
        command = said.startswith(("/", "!"))
        self._sent = (not command and bool(said.strip())) or bool(_ASKS.match(said))
        self._running = bool(_RUNS.match(said))
        self._command = said if self._running else ""
        self.talk.event("command" if command else "user_text", section.number, said)
        if self._sent:
            self.talk.tell(Message("user", (Text(said),), (section.number,)))
            return "context"
        return "event"

    def _tool(self, number: int, said: str) -> str:
        model, version, tokens = _MODEL.search(said), _VERSION.search(said), _TOKENS.search(said)
        self._model = model[1] if model else self._model
        self.version = version[1] if version and not self.version else self.version
        if tokens:
            self.talk.log(usage={"input_tokens": _count(tokens[1]), "output_tokens": _count(tokens[2])})
        if "^C" in said and not tokens and self._sent:
            self.talk.event("interrupt", number, _plain(said))
        if _API_ERROR.search(said):
            self.talk.event("api_error", number, _plain(said))
        if _BROKEN.search(said):
            self.talk.judge(Feedback("malformed_call", text=_plain(said), source="aider"))
            self.talk.event("malformed_call", number, _plain(said))
            self.talk.tell(Message("user", (Text(_plain(said)),), (number,)))
        for applied in re.findall(r"^> Applied edit to (.+?) *$", said, re.MULTILINE):
            self.talk.event("edit_applied", number, applied)
        if _LINTED.search(said):
            self.talk.event("check_failed", number, "\n".join(_FINDINGS.findall(said)))
        if self._command and not tokens:
            self.talk.event("command_output", number, _plain(said), command=self._command)
            self._command = ""
        for commit in _COMMIT.findall(said):
            self._commits.setdefault(commit, self.talk.steps - 1)
        for commit in _REMOVED.findall(said) if "> Removed" in said or "was reset" in said else ():
            step = self._commits.get(commit, self.talk.steps - 1)
            if 0 <= step < self.talk.steps:
                self.talk.judge(Feedback("user_undo", text=f"/undo {commit}", source="user"), step=step)
        return "event"


def _plain(said: str) -> str:
    return "\n".join(line.removeprefix(">").strip() for line in said.split("\n")).strip()


def _count(written: str) -> int:
    """5,244 or 12k or 1.2M as a number."""
    scale = {"k": 1_000, "M": 1_000_000}.get(written[-1], 1)
    try:
        return round(float(written.rstrip("kM").replace(",", "")) * scale)
    except ValueError:
        return 0
