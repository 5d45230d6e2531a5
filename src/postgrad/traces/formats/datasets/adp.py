"""Agent Data Protocol (1.x): ``{"id", "content": [items], "details"}``; an item is an action or an observation.

    api_action{function, kwargs}, code_action{language, content}, message_action{content}: a thought in `description`
    text_observation{content, source}, web_observation{url, html, axtree}, image_observation

A step is an action; API and code actions that follow each other and have call ids were asked for at once and are one
step. A code action is a call of a tool that is named for its language. An observation answers the call of its id, else
the action right before it; what a user says is context. Arguments are stored parsed, errors and tool schemas not.

"The same trajectory" means: the same id and the same beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.message import Block, Reasoning, Text, ToolCall
from postgrad.core.trace import Feedback, Source, Trace
from postgrad.traces.conversation import Setting
from postgrad.traces.formats.datasets.rows import Row, Rows, row_heads
from postgrad.traces.formats.datasets.telling import Telling
from postgrad.traces.formats.shapes.plain import mappings, number, string, text, written
from postgrad.traces.formats.shapes.said import RawResult
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_MISSING = ("system prompt", "tool schemas", "sampling parameters")
_ACTIONS = frozenset({"api_action", "code_action", "message_action"})
_CALLS = frozenset({"api_action", "code_action"})
_OBSERVATIONS = frozenset({"text_observation", "web_observation", "image_observation", "json_observation"})


@dataclass(frozen=True)
class AgentDataProtocol:
    """Reader of ADP trajectories."""

    format: str = "adp"

    def recognises(self, head: Head) -> bool:
        """Rows whose content is a list of items with a known `class_`."""
        rows = row_heads(head, "content")
        known = any(_kinds(row) & (_ACTIONS | _OBSERVATIONS) for row in rows)
        return known and all(isinstance(row.get("content"), list) for row in rows)

    def read(self, path: Path) -> ReadResult:
        """Read a file of trajectories.

        Raises:
            DataError: it cannot be opened or is no JSON.
        """
        rows = Rows(path, "content")
        source = Source(str(path), self.format)
        return rows.result(source, self._traces(rows, source))

    def _traces(self, rows: Rows, source: Source) -> Iterator[Trace]:
        for index, row in enumerate(rows):
            telling = Telling(row, Setting("partial", _MISSING))
            _tell(telling, row)
            name = text(row.value.get("id"))
            steps = telling.talk.steps
            trace = telling.trace(source, name, *telling.talk.beginning, index=index, task=name) if steps else None
            if trace is None:
                row.refuse("a trajectory without an action")
            else:
                yield trace


def _kinds(row: Mapping[str, Any]) -> set[str]:
    return {_kind(item) for item in mappings(row.get("content")) if "class_" in item}


def _kind(item: Mapping[str, Any]) -> str:
    """The item's class in one spelling: ``ApiAction`` is ``api_action``."""
    name = string(item.get("class_"))
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _tell(telling: Telling, row: Row) -> None:
    content = row.value.get("content")
    items = content if isinstance(content, list) else []
    place = 0
    while place < len(items):
        item = items[place]
        kind = _kind(item) if isinstance(item, dict) else ""
        if kind in _ACTIONS:
            together = [item, *_parallel(items[place + 1 :])] if kind in _CALLS and item.get("tool_call_id") else [item]
            telling.act(place, [block for one in together for block in _blocks(one)])
            _reward(telling, together[-1])
            for other in range(place + 1, place + len(together)):
                row.use(other, "step", _kind(items[other]))
            place += len(together)
            continue
        if kind in _OBSERVATIONS:
            _observe(telling, place, item, kind)
        else:
            row.odd(place, f"unknown item '{kind}'")
        place += 1


def _parallel(items: list[Any]) -> Iterator[dict[str, Any]]:
    """The calls that follow without a word or an observation between."""
    for item in items:
        if not isinstance(item, dict) or _kind(item) not in _CALLS or not item.get("tool_call_id"):
            return
        yield item


def _blocks(item: Mapping[str, Any]) -> list[Block]:
    kind, key = _kind(item), string(item.get("tool_call_id"))
    thought, said = text(item.get("reasoning_content")), text(item.get("description"))
    blocks: list[Block] = [Reasoning(thought)] if thought else []
    if kind == "message_action":
        blocks += [Reasoning(said)] if said else []
        return [*blocks, Text(written(item.get("content")))]
    blocks += [Text(said)] if said else []
    if kind == "api_action":
        arguments = item.get("kwargs")
        return [*blocks, ToolCall.from_raw(id=key, name=string(item.get("function")), raw=written(arguments))]
    code = written({"code": written(item.get("content"))})
    return [*blocks, ToolCall.from_raw(id=key, name=string(item.get("language")) or "code", raw=code)]


def _observe(telling: Telling, place: int, item: Mapping[str, Any], kind: str) -> None:
    shown = {key: value for key, value in item.items() if value is not None and key not in ("class_", "tool_call_id")}
    said = written(item.get("content")) if kind == "text_observation" else written(shown)
    key, source = string(item.get("tool_call_id")), item.get("source")
    if key or (source != "user" and telling.talk.pending):
        telling.answer(place, RawResult(key, "", said))
    else:
        telling.say(place, "user", [Text(said)] if said else [])
    _reward(telling, item)


def _reward(telling: Telling, item: Mapping[str, Any]) -> None:
    if (value := number(item.get("reward"))) is not None:
        telling.talk.judge(Feedback("step_reward", value, "", "adp"))
