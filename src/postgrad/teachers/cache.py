"""Answers on disk, by the content of what was asked: an answer is paid for once.

The key is who answers (kind, name, model, parameters; not the address, which may change between runs), the ask and the
sampling. One file per answer, written in one step: two processes that answer the same ask write the same file, and a
reader sees a whole answer or none. An answer is here before it counts as paid. Failures and abstentions are not kept,
for the reason may go away. That two processes do not ask the same at once is for `claims` to see to. Not covered:
removing old answers (the folder may be deleted at any time).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.canonical import content_id
from postgrad.core.files import write_json
from postgrad.core.message import Message, Tool
from postgrad.teachers.once import PerObject
from postgrad.teachers.relay import Relay

_LENGTH = 40  # hexadecimal digits


class AskDigest:
    """The content of asks as a hash. Where a message was read from does not count."""

    def __init__(self) -> None:
        self._message = PerObject[Message, str](
            lambda message: content_id([message.role, msgspec.to_builtins(message.blocks)], length=_LENGTH)
        )
        self._tools = PerObject[Sequence[Tool], str](
            lambda tools: content_id(msgspec.to_builtins(tuple(tools)), length=_LENGTH), equal=True
        )

    def __call__(self, ask: Ask, sampling: Sampling) -> str:
        """Hash of the ask and how it is to be sampled."""
        content = [*map(self._message, ask.messages)], self._tools(ask.tools), ask.task_id, ask.hint
        return content_id([content, msgspec.to_builtins(sampling)], length=_LENGTH)


class AnswerCache:
    """A folder of answers, made on first use.

    Args:
        folder: of the cache.
        who: whatever decides the answers beside the ask; plain JSON data.
    """

    def __init__(self, folder: Path, who: object) -> None:
        self.folder = folder
        self._who = content_id(who, length=_LENGTH)
        self._digest = AskDigest()

    def known(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer | None]:
        """What is kept for each ask, None where there is nothing."""
        if not self.folder.is_dir():  # nothing to look up, so nothing to hash
            return [None] * len(asks)
        return [self.get(self.key(ask, sampling)) for ask in asks]

    def key(self, ask: Ask, sampling: Sampling) -> str:
        """Under which an answer is kept."""
        return content_id([self._who, self._digest(ask, sampling)], length=_LENGTH)

    def get(self, key: str) -> Answer | None:
        """What is kept, None where there is nothing. A broken file counts as nothing."""
        try:
            return msgspec.convert(json.loads(self._path(key).read_bytes()), Answer)
        except (FileNotFoundError, ValueError):  # msgspec's errors are ValueErrors
            return None

    def kept_at(self, ask: Ask, sampling: Sampling) -> float:
        """Unix time at which an answer that is known was kept; now where it has gone meanwhile."""
        try:
            return self._path(self.key(ask, sampling)).stat().st_mtime
        except FileNotFoundError:
            return time.time()

    def cost(self, key: str) -> float | None:
        """US dollars of the answer that is kept, 0 where its price is not known; None where there is none."""
        answer = self.get(key)
        return None if answer is None else answer.cost or 0.0

    def put(self, key: str, answer: Answer) -> None:
        """Keep `answer`, if it says something."""
        if answer.message is not None:
            write_json(self._path(key), msgspec.to_builtins(answer))

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


class CachedActor(Relay):
    """`actor` with its answers kept in `folder`; `identity` is what decides them beside its name (weights)."""

    def __init__(self, actor: Actor, folder: Path, *, identity: object = None) -> None:
        self.actor = actor
        self._cache = AnswerCache(folder, [actor.kind, actor.name, identity])

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order; equal asks of one batch are answered once.

        Raises:
            OutsideFailure: the actor cannot be reached.
        """
        keys = [self._cache.key(ask, sampling) for ask in asks]
        answers = {key: self._cache.get(key) for key in keys}
        missing = {key: ask for key, ask in zip(keys, asks, strict=True) if answers[key] is None}
        new = self.actor.answer(list(missing.values()), sampling) if missing else []
        for key, answer in zip(missing, new, strict=True):
            self._cache.put(key, answer)
            answers[key] = answer
        found = [answers[key] for key in keys]
        return [answer for answer in found if answer is not None]

    def known(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer | None]:
        """What the cache holds, None where it holds nothing."""
        return self._cache.known(asks, sampling)
