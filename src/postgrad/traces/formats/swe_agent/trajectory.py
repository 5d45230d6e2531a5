"""SWE-agent trajectories (`.traj`): one entry a step, and the history of messages.

The context of a step, from the best that the file has:
`query` (from 1.1 on): the messages that this step was given;
`messages` (1.0.x): the messages after the step, so those of step k are what step k + 1 was given;
else the history up to the step's answer. Demonstrations in it were part of the context and stay there.

A response that calls functions has its calls in the history; one that writes its action into the text has a call
made from that piece of text (`text_actions`). The format flags no error: what its own tools say when they refuse
(an edit with a syntax error, no replacement), and a program's traceback, error line or "command not found", count as
flags, except in what merely shows a file.

Records are the entries of the trajectory, under their step index, then those of the history. A file with a history
alone (a demonstration) has a step an answer. "The same session" means: the same first context and action.

Not covered: tool schemas (the replay configuration names bundles, not schemas); attempts that a requery threw away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.message import Block, ResultStatus, ToolResult
from postgrad.core.trace import Source, Trace
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call, read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, mappings, opened, string, text
from postgrad.traces.formats.swe_agent.contexts import Contexts, is_message
from postgrad.traces.formats.swe_agent.text_actions import with_action
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.document import ENVELOPE, JsonDocument
from postgrad.traces.sources.head import Head

_REFUSED = re.compile(
    r"\A\s*(Your proposed edit has introduced new syntax error|No replacement was performed|Text not found"
    r"|Your edit was not applied|Operation '.*' is not supported|Interactive operation '.*' is not supported"
    r"|Usage: |Error: )"
)
_FAILED = re.compile(
    r"^(Traceback \(most recent call last\)|Error: |(\S+: )?(line \d+: )?\S+: command not found)", re.MULTILINE
)
_VIEWS = re.compile(r"\A\s*(open|goto|scroll_\w+|search_\w+|find_file|cat|head|tail|grep|str_replace_editor view)\b")


@dataclass(frozen=True)
class SWEAgent:
    """Reader of SWE-agent trajectories."""

    format: str = "swe_agent"

    def recognises(self, head: Head) -> bool:
        """A trajectory of actions with observations and responses, or a history of an agent's messages."""
        document = mapping(head.document)
        history, steps = document.get("history"), document.get("trajectory")
        if isinstance(steps, list) and steps:
            return all(_is_entry(entry) for entry in steps[:20])
        agents = [item for item in mappings(history) if is_message(item) and "agent" in item]
        return bool(agents) and len(agents) == len(history or ())

    def read(self, path: Path) -> ReadResult:
        """Read a trajectory.

        Raises:
            DataError: it cannot be opened.
        """
        document = JsonDocument(path, "trajectory", "history")
        entries = list(document.rows("trajectory"))
        _count_steps_first(document, len(entries))
        info = mapping(document.envelope.get("info")) if isinstance(document.envelope, dict) else {}
        source = Source(str(path), self.format, document.sha256, "swe-agent", text(info.get("swe_agent_version")))
        history = [item.value for item in document.rows("history")]
        run = _Run(history, first=len(entries), model=_model(document.envelope))
        for number, item in enumerate(entries):
            if _is_entry(item.value):
                run.step(number, item.value)
            document.use(number, "step" if _is_entry(item.value) else "unknown", "step")
        if not entries:
            run.history_alone()
        for place, message in enumerate(history):
            use = "context" if is_message(message) else "unknown"
            document.use(len(entries) + place, "step" if place in run.answers and not entries else use, "message")
        if ENVELOPE in document.entries:
            document.use(ENVELOPE, "metadata", "document")
        trace = run.trace(source, document.envelope)
        return document.result(source, [trace] if trace else [])


class _Run:
    """A run's steps while they are put together. `first` is the record number of the first message of the history."""

    def __init__(self, history: Sequence[object], *, first: int, model: str | None) -> None:
        self._history, self._first, self._model = history, first, model
        self.talk = Conversation()
        self._contexts = Contexts(self.talk, first)
        self._before: list[Any] | None = None
        self._at = 0
        self.answers: set[int] = set()

    def step(self, number: int, entry: Mapping[str, Any]) -> None:
        """One entry of the trajectory."""
        answer = self._answer_of(entry)
        context = self._context(entry, answer)
        said = mapping(self._history[answer]) if answer is not None else {}
        blocks = _blocks(number, entry, said)
        index = self.talk.act(Action(blocks, (number,), self._model), context=self._contexts.ids(context))
        self._contexts.acted(index, string(entry.get("response")), said)
        observation = entry.get("observation")
        if self.talk.pending and observation is not None:
            seen = shown(read_content(observation).blocks)
            flagged = _is_flagged(string(entry.get("action")), seen)
            for waiting in self.talk.pending:
                status: ResultStatus = "error" if flagged else "ok"
                self.talk.settle(waiting, ToolResult("", seen, flagged or None, status), record=number)
        elif text(observation):
            self.talk.event("observation", number, str(observation))
        self._before = entry["messages"] if isinstance(entry.get("messages"), list) else None

    def history_alone(self) -> None:
        """A step an answer of the history, its results the messages that follow."""
        self.talk.change(fidelity="reconstructed", missing=("tool schemas",))
        for place, message in enumerate(self._history):
            if not is_message(message):
                continue
            message = mapping(message)
            number = self._first + place
            if message["role"] == "assistant" and not message.get("is_demo"):
                self.answers.add(place)
                said = shown(read_content(message.get("content")).blocks)
                entry = {"response": said, "action": message.get("action")}
                context = self._contexts.ids(self._history[:place])
                index = self.talk.act(Action(_blocks(number, entry, message), (number,)), context=context)
                self._contexts.acted(index, said, message)
            elif self.talk.pending and message["role"] in ("tool", "user"):
                seen = shown(read_content(message.get("content")).blocks)
                for waiting in self.talk.pending:
                    self.talk.settle(waiting, ToolResult("", seen), record=number)

    def trace(self, source: Source, envelope: object) -> Trace | None:
        """The finished trace, with how the run ended."""
        outside = mapping(envelope)
        status = mapping(outside.get("info")).get("exit_status")
        if text(status):
            self.talk.event("exit", ENVELOPE, str(status))
        for place, message in enumerate(self._history):
            if mapping(message).get("is_demo") is True:
                self.talk.event("demonstration", self._first + place)
        trace = self.talk.trace(source)
        problem = mapping(mapping(opened(outside.get("replay_config"))).get("problem_statement"))
        return trace and msgspec.structs.replace(trace, task_id=text(problem.get("id")))

    def _answer_of(self, entry: Mapping[str, Any]) -> int | None:
        """The place in the history of this entry's answer; a history may lack the last ones."""
        wanted = entry.get("response"), entry.get("action")
        for place in range(self._at, len(self._history)):
            message = mapping(self._history[place])
            if message.get("role") != "assistant" or message.get("is_demo"):
                continue
            said = shown(read_content(message.get("content")).blocks)
            if said == wanted[0] or (message.get("action") == wanted[1] and wanted[1]):
                self._at = place + 1
                self.answers.add(place)
                return place
        return None

    def _context(self, entry: Mapping[str, Any], answer: int | None) -> list[Any]:
        missing = ("tool schemas",)
        if isinstance(entry.get("query"), list):
            self.talk.change(fidelity="exact-messages", missing=missing)
            return list(entry["query"])
        if self._before is not None:
            self.talk.change(fidelity="exact-messages", missing=missing)
            return self._before
        if isinstance(entry.get("messages"), list) and self.talk.steps == 0:
            self.talk.change(fidelity="exact-messages", missing=missing)
            return _before_last_answer(entry["messages"])
        whole = answer is not None
        self.talk.change(
            fidelity="reconstructed" if whole else "partial",
            missing=(*missing, "what the history processors changed", *(() if whole else ("earlier messages",))),
        )
        return list(self._history[:answer] if whole else self._history)


def _is_entry(value: object) -> bool:
    keys = mapping(value).keys()
    return {"action", "observation"} <= keys and bool({"response", "thought"} & keys)


def _count_steps_first(document: JsonDocument, steps: int) -> None:
    """Entries of the trajectory are counted from 0 wherever the list stands in the file."""
    first = next((item.number for item in document.rows("trajectory")), 0)
    moved = {first + place: place for place in range(steps)}
    moved |= {item.number: steps + place for place, item in enumerate(document.rows("history"))}
    entries = [*document.entries.values()]
    document.entries.clear()
    for entry in entries:
        entry.number = moved.get(entry.number, entry.number)
        document.enter(entry)


def _before_last_answer(messages: Sequence[object]) -> list[object]:
    last = max((place for place, m in enumerate(messages) if mapping(m).get("role") == "assistant"), default=0)
    return list(messages[:last])


def _blocks(number: int, entry: Mapping[str, Any], said: Mapping[str, Any]) -> list[Block]:
    """The answer: with its own calls where it has them, else with the call that its text stands for."""
    thoughts = list(read_content(said.get("thinking_blocks")).blocks)
    calls = [item for item in mappings(said.get("tool_calls")) if isinstance(item.get("function"), dict)]
    response = string(entry.get("response")) or string(entry.get("thought"))
    if calls:
        given = [call(string(c["function"].get("name")), c["function"].get("arguments"), id=c.get("id")) for c in calls]
        return [*thoughts, *read_content(said.get("content") or response).blocks, *given]
    if not string(entry.get("action")).strip():
        return [*thoughts, *read_content(response).blocks]
    return [*thoughts, *with_action(response, entry["action"], id=f"step-{number}")]


def _is_flagged(action: str, seen: str) -> bool:
    return bool(_REFUSED.match(seen)) or (not _VIEWS.match(action) and bool(_FAILED.search(seen)))


def _model(envelope: object) -> str | None:
    """The model of the replay configuration, which is JSON in a string in some versions."""
    agent = mapping(mapping(opened(mapping(envelope).get("replay_config"))).get("agent"))
    return text(mapping(agent.get("model")).get("name"))
