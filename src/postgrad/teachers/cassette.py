"""Answers recorded on a tape, for tests and for reruns without a network.

A tape is a JSON-lines file: ``{"ask": ..., "sampling": ..., "answer": ..., "key": ...}``. Any teacher can be recorded;
a `Cassette` plays a tape back. What was asked is known by its content (`AskDigest`), which is the `key`; the ask itself
stands there redacted, for people to read, and gives the key where a line has none. An ask that is not on the tape is an
error, never an abstention: a rerun that silently lost answers would look like a run. Playing costs nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.canonical import canonical_json
from postgrad.core.errors import DataError
from postgrad.core.files import append_line
from postgrad.teachers.cache import AskDigest


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a tape."""

    ask: Ask
    answer: Answer
    sampling: Sampling = Sampling()
    key: str = ""


class Cassette:
    """An `Actor` that plays `tape`.

    Raises:
        DataError: the tape is missing, or a line is broken.
    """

    kind = "recorded answers"

    def __init__(self, name: str, tape: Path) -> None:
        self.name = name
        self.tape = tape
        self._digest = AskDigest()
        self._answers = {line.key or self._digest(line.ask, line.sampling): line.answer for line in _read(tape)}

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order, as it was given then.

        Raises:
            DataError: an ask is not on the tape.
        """
        return [self._play(ask, sampling) for ask in asks]

    def _play(self, ask: Ask, sampling: Sampling) -> Answer:
        found = self._answers.get(self._digest(ask, sampling))
        if found is None:
            words = ask.messages[-1].text[:80] if ask.messages else ""
            raise DataError(
                f"teacher {self.name}: the tape {self.tape} holds no answer to this request "
                f"({len(ask.messages)} messages, the last: {words!r})",
                expected=f"one of its {len(self._answers)} requests, sampled as then ({_said(sampling)})",
                do=f"record it: give the teacher that is to answer `tape: {self.tape}`",
            )
        return msgspec.structs.replace(found, cost=0.0)


class Recorder:
    """Adds answers to a tape, each request once; `redact` is applied to what is written.

    Raises:
        DataError: there is a tape already, and it is broken.
    """

    def __init__(self, tape: Path, redact: Callable[[Ask], Ask]) -> None:
        self.tape = tape
        self._redact = redact
        self._digest = AskDigest()
        lines = _read(tape) if tape.exists() else []
        self._known = {line.key or self._digest(line.ask, line.sampling) for line in lines}
        _end_whole(tape)

    def add(self, ask: Ask, sampling: Sampling, answer: Answer) -> None:
        """Record an answer; one that is no answer (an error) is not recorded.

        Raises:
            OutsideFailure: the tape cannot be written.
        """
        key = self._digest(ask, sampling)
        if key in self._known or answer.error is not None:
            return
        self._known.add(key)
        line = canonical_json(msgspec.to_builtins(Recorded(self._redact(ask), answer, sampling, key)))
        append_line(self.tape, line.encode())


def _read(tape: Path) -> list[Recorded]:
    try:
        lines = tape.read_bytes().split(b"\n")
    except OSError as error:
        told = f"no tape here: {error.strerror}"
        raise DataError(told, got=str(tape), expected="recorded answers, one a line") from None
    read = []
    for number, line in enumerate(lines, 1):
        try:
            read += [msgspec.convert(json.loads(line), Recorded)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            if number == len(lines):  # torn by a kill: it has no end of line
                break
            raise DataError(f"{tape} line {number} is no recorded answer: {error}", do="remove the line") from None
    return read


def _end_whole(tape: Path) -> None:
    """Make the tape end with a line's end, so that the next line stands by itself: a torn line is cut off."""
    data = tape.read_bytes() if tape.exists() else b""
    whole = data.rfind(b"\n") + 1
    if whole == len(data):
        return
    try:
        json.loads(data[whole:])
    except ValueError:
        os.truncate(tape, whole)
    else:
        with tape.open("ab") as stream:
            stream.write(b"\n")


def _said(sampling: Sampling) -> str:
    return ", ".join(f"{name} {value}" for name, value in msgspec.to_builtins(sampling).items()) or "defaults"
