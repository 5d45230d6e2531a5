"""The context of a step from a list of raw messages, with the run's own answers and results in it recognised.

Every step repeats the messages of the step before and adds a few, so only what is new is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from postgrad.core.message import Message, Opaque, Role, ToolResult
from postgrad.traces.conversation import Conversation, provider_key
from postgrad.traces.formats.content import read_content, shown
from postgrad.traces.formats.shapes.plain import mapping, string

_ROLES = ("system", "developer", "user", "assistant", "tool")


def is_message(value: object) -> bool:
    """Whether it has a role and a content."""
    return isinstance(value, dict) and value.get("role") in _ROLES and "content" in value


class Contexts:
    """Contexts of one run. `first` is the record number of the first message of the history."""

    def __init__(self, talk: Conversation, first: int) -> None:
        self._talk, self._first = talk, first
        self._seen: list[tuple[object, str, int | None]] = []
        self._steps: list[tuple[str, Message]] = []

    def acted(self, step: int, response: str, said: Mapping[str, Any]) -> None:
        """Remember a step's answer, so that later contexts hold the very same message."""
        key = shown(read_content(said.get("content")).blocks) if said else response
        self._steps.append((key, self._talk.message(step)))

    def ids(self, messages: Sequence[object]) -> list[str]:
        """The messages as ids of the pool."""
        same = 0
        while same < min(len(messages), len(self._seen)) and self._seen[same][0] == messages[same]:
            same += 1
        del self._seen[same:]
        for raw in messages[same:]:
            answered = next((step for _, _, step in reversed(self._seen) if step is not None), -1)
            last = self._seen[-1][2] if self._seen else None
            message, step = self._read(mapping(raw), raw, after=answered, asked=last)
            self._seen.append((raw, self._talk.pool.add(message), step))
        return [key for _, key, _ in self._seen]

    def _read(
        self, value: Mapping[str, Any], raw: object, *, after: int, asked: int | None
    ) -> tuple[Message, int | None]:
        """A raw message, and the step whose answer it is; `after` is the last step before, `asked` the one just so."""
        role = value.get("role")
        if role not in _ROLES:
            return Message("user", (Opaque("value", raw),)), None
        blocks = read_content(value.get("content")).blocks
        if role == "assistant" and not value.get("is_demo"):
            said = shown(blocks)
            for step in range(after + 1, len(self._steps)):
                if self._steps[step][0] == said:
                    return self._steps[step][1], step
        calls = self._steps[asked][1].tool_calls if asked is not None else ()
        if calls and role in ("user", "tool"):
            ids = value.get("tool_call_ids")
            named = [call for call in calls if isinstance(ids, list) and provider_key(call) in ids]
            result = ToolResult((named or list(calls))[0].id, shown(blocks), provider_id=None)
            return Message("tool", (result,)), None
        return Message(cast(Role, role if role != "tool" else "user"), blocks or _nothing(value)), None


def _nothing(value: Mapping[str, Any]) -> tuple[Opaque, ...]:
    return (Opaque("content", value.get("content")),) if not string(value.get("content")) else ()
