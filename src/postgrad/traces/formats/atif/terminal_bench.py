"""A Terminal-Bench 1 trial, a folder: ``agent-logs/episode-N/{prompt.txt, response.txt, debug.json}``, results.json.

An episode is a step: `prompt.txt` is the text that the model was sent, `response.txt` its answer, word for word.
Nothing says how the prompt was split into messages, so it is one message of the user; a `debug.json` that holds the
request's messages says more, and is taken where it is there. Actions stand in the answer's text. Recordings of the
terminal are kept raw.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import too_deep
from postgrad.core.message import Message, Text
from postgrad.core.trace import Feedback, Source
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, string, text
from postgrad.traces.formats.shapes.said import settle
from postgrad.traces.formats.shapes.turns import turns
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.folder import File, Folder
from postgrad.traces.sources.head import Head

_EPISODE = re.compile(r"(?:.*/)?agent-logs/episode-(\d+)/(prompt\.txt|response\.txt|debug\.json)")
_PASSED = "PASSED", "passed"


@dataclass(frozen=True)
class TerminalBench1:
    """Reader of a Terminal-Bench 1 trial's folder."""

    format: str = "terminal_bench"

    def recognises(self, head: Head) -> bool:
        """A folder whose agent left episodes with prompts."""
        return head.path.is_dir() and any(head.path.glob("agent-logs/episode-*/prompt.txt"))

    def read(self, path: Path) -> ReadResult:
        """Read a trial.

        Raises:
            DataError: it cannot be opened.
        """
        folder = Folder(path)
        numbers = {file.name: number for number, file in enumerate(folder.files)}
        episodes: dict[int, dict[str, File]] = {}
        for file in folder.files:
            folder.entry(file, numbers[file.name])
            if match := _EPISODE.fullmatch(file.name):
                episodes.setdefault(int(match[1]), {})[match[2]] = file
        talk = Conversation(fidelity="exact-messages", missing=("tool schemas", "sampling parameters"))
        for _, files in sorted(episodes.items()):
            _episode(talk, folder, files, numbers)
        results = mapping(next((_json(file) for file in folder.files if file.name.endswith("results.json")), None))
        task = _judge(talk, results)
        for file in folder.files:
            folder.use(numbers[file.name], "event" if file.name.endswith("results.json") else "ui", file.name)
        source = Source(str(path), self.format, folder.sha256, "terminal-bench")
        trace = talk.trace(source, task, text(results.get("trial_name")), *(talk.beginning if talk.steps else ()))
        return folder.result(source, [msgspec.structs.replace(trace, task_id=task)] if trace else [])


def _episode(talk: Conversation, folder: Folder, files: Mapping[str, File], numbers: Mapping[str, int]) -> None:
    prompt, response = files.get("prompt.txt"), files.get("response.txt")
    debug = mapping(_json(files["debug.json"])) if "debug.json" in files else {}
    if prompt is None:
        return
    record = numbers[prompt.name]
    folder.use(record, "context", "prompt.txt")
    if response is None:
        folder.note("an episode without a response", done="no step", line=record)
        return
    used = numbers[response.name]
    folder.use(used, "step", "response.txt")
    said = Message("user", (Text(_text(prompt)),), (record,))
    messages = first(debug, "messages", "input")
    if isinstance(messages, list) and mappings(messages):
        folder.use(numbers[files["debug.json"].name], "context", "debug.json")
    context = settle(turns(messages), record=record) if isinstance(messages, list) and messages else [said]
    action = Action((Text(_text(response)),), (used,), model=text(debug.get("model")))
    talk.act(action, context=talk.pool.extend(context))


def _judge(talk: Conversation, results: Mapping[str, Any]) -> str | None:
    """Whether the trial solved its task, which is named."""
    solved = results.get("is_resolved")
    tests = mapping(results.get("parser_results"))
    failed = [f"failed: {name}" for name, word in tests.items() if word not in _PASSED]
    if isinstance(solved, bool):
        talk.judge(Feedback("resolved", float(solved), "; ".join(failed), "terminal-bench"))
    return text(results.get("task_id"))


def _json(file: File) -> Any:
    try:
        value = json.loads(file.data.decode("utf-8", "surrogateescape"), strict=False)
    except (ValueError, RecursionError):
        return None
    return None if too_deep(value) else value


def _text(file: File) -> str:
    return string(file.data.decode("utf-8", "surrogateescape"))
