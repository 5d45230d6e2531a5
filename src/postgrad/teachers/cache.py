"""`CachedActor`: an answer is paid for once. Content-addressed files, so a killed replay goes on where it was.

The key is the actor (name, model, configuration), the ask and the sampling. One file per answer, written in one step:
two processes that answer the same ask write the same file. Abstentions are not kept, for the reason may go away.
Not covered: removing old answers; the folder may be deleted at any time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.canonical import content_id
from postgrad.core.files import write_json


@runtime_checkable
class AnswersEach(Protocol):
    """An actor that hands over each answer as it arrives, so that none is lost when a later one fails."""

    def answer_each(self, asks: Sequence[Ask], sampling: Sampling, done: Callable[[int, Answer], None]) -> None:
        """Call ``done(place, answer)`` per ask."""
        ...


class CachedActor:
    """`actor` with its answers kept in `folder`.

    Args:
        actor: who answers what is not known yet.
        folder: of the cache; made on first use.
        identity: whatever else decides the answers (model id, address); plain JSON data.
    """

    def __init__(self, actor: Actor, folder: Path, *, identity: object = None) -> None:
        self.actor = actor
        self.folder = folder
        self.identity = identity

    @property
    def name(self) -> str:
        """The actor's name."""
        return self.actor.name

    @property
    def kind(self) -> str:
        """The actor's kind."""
        return self.actor.kind

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order; equal asks of one batch are answered once.

        Raises:
            OutsideFailure: the actor cannot be reached; answers that arrived are kept.
        """
        answers = self.known(asks, sampling)
        waiting: dict[str, list[int]] = {}
        for place, answer in enumerate(answers):
            if answer is None:
                waiting.setdefault(self._key(asks[place], sampling), []).append(place)
        groups = list(waiting.items())

        def done(number: int, answer: Answer) -> None:
            key, places = groups[number]
            if answer.message is not None:
                write_json(self._path(key), msgspec.to_builtins(answer))
            for place in places:
                answers[place] = answer

        self._answer_each([asks[places[0]] for _, places in groups], sampling, done)
        assert all(answer is not None for answer in answers), f"{self.name} left an ask without an answer"
        return [answer for answer in answers if answer is not None]

    def known(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer | None]:
        """What the cache holds, None where it holds nothing. A broken file counts as nothing."""
        return [self._read(self._path(self._key(ask, sampling))) for ask in asks]

    def _answer_each(self, asks: Sequence[Ask], sampling: Sampling, done: Callable[[int, Answer], None]) -> None:
        if not asks:
            return
        if isinstance(self.actor, AnswersEach):
            self.actor.answer_each(asks, sampling, done)
            return
        for number, answer in enumerate(self.actor.answer(asks, sampling)):
            done(number, answer)

    def _key(self, ask: Ask, sampling: Sampling) -> str:
        who = [self.actor.kind, self.actor.name, self.identity]
        return content_id([who, msgspec.to_builtins(ask), msgspec.to_builtins(sampling)], length=40)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    @staticmethod
    def _read(path: Path) -> Answer | None:
        try:
            return msgspec.convert(json.loads(path.read_bytes()), Answer)
        except (FileNotFoundError, ValueError):  # msgspec's errors are ValueErrors
            return None
