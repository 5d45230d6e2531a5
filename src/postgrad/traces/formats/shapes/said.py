"""`Said`: a message of a foreign log before calls and results know each other, and `settle`, which makes them.

Providers' ids are not unique, some shapes have no ids at all, and one foreign message can hold a result beside a
text. `settle` takes a whole context: it gives every call an id that is unique in it, always in the same way, so that
equal beginnings give equal messages; it finds the call that each result answers (by id, else by the tool's name, else
by order); and it writes results as messages of the role "tool", where they stood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from postgrad.core.message import Block, Message, Role, ToolCall, ToolResult
from postgrad.traces.pool import CallIds


@dataclass(frozen=True)
class RawResult:
    """A tool's result as written: the provider's call id and the tool's name where they are said."""

    id: str
    name: str
    text: str
    is_error: bool | None = None
    media: tuple[Block, ...] = ()


@dataclass
class Said:
    """One foreign message: its role as ours, its parts in order, and why it ended, where it is an answer."""

    role: Role
    parts: list[Block | RawResult] = field(default_factory=list)
    finish: str | None = None
    agent: str | None = None

    @property
    def calls(self) -> list[ToolCall]:
        """The calls, with the provider's ids."""
        return [part for part in self.parts if isinstance(part, ToolCall)]


def settle(messages: Iterable[Said], *, record: int) -> list[Message]:
    """The messages of one context, in order, with unique call ids; one that holds results gives several."""
    ids = _Ids()
    settled: list[Message] = []
    for place, said in enumerate(messages):
        for is_result, group in groupby(said.parts, lambda part: isinstance(part, RawResult)):
            blocks: list[Block] = []
            for part in group:
                blocks += ids.answer(part, place) if isinstance(part, RawResult) else [ids.place(part, place)]
            settled.append(Message("tool" if is_result else said.role, tuple(blocks), (record,)))
        if not said.parts:
            settled.append(Message(said.role, (), (record,)))
    return settled


class _Ids:
    """Unique call ids, and for every result its call."""

    def __init__(self) -> None:
        self._ids = CallIds()
        self._open: list[tuple[str, str, str]] = []

    def place(self, part: Block, place: int) -> Block:
        if not isinstance(part, ToolCall):
            return part
        call = self._ids.unique(part, place=place)
        self._open.append((part.id, part.name, call.id))
        return call

    def answer(self, result: RawResult, place: int) -> list[Block]:
        known = [key for key, _, _ in self._open if key == result.id]
        named = [key for key, name, _ in self._open if name == result.name] if not result.id or not known else []
        waiting = [key for key, _, _ in self._open] if not (result.id or result.name) else []
        provider_id = next(iter(known or named or waiting), result.id)
        call = self._ids.answered(provider_id, place=place) if known or named or waiting else None
        self._open = [entry for entry in self._open if entry[2] != call]
        key = call or result.id or result.name
        return [
            msgspec.structs.replace(
                ToolResult(key, result.text, result.is_error, "error" if result.is_error else "ok"),
                provider_id=result.id if result.id and result.id != key else None,
            ),
            *result.media,
        ]
