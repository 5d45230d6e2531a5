"""`Journal`: what left this machine, when and where to, and what it cost, a line before a call and a line after it.

The line before says that a request is on its way, with what is set aside for it; the line after, what became of it. A
process that is killed between the two leaves a call of unknown end: it is found again here, and counts as paid up to
what was set aside, unless its answer is in the cache. So a budget holds over all runs of a folder. What was set aside
is a worst case; once the same request is answered and billed, the try that broke off counts as what that bill was. A
user who has seen the provider's own bill can `release` the rest. Lines hold hashes, counts and hosts, never text of a
trace and never a key. Not covered: bytes on the wire below HTTP.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from postgrad.core.errors import OutsideFailure
from postgrad.core.files import append_line
from postgrad.teachers.providers.failures import MAYBE_BILLED

_LOST = MAYBE_BILLED | {"interrupted"}  # ends of a try that the provider may charge for, though nobody got an answer


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. `event` is "sent", "settled" or "released"; those of one try share `call`.

    `dearest` is what the answer would have cost with nothing of it in the provider's prompt cache; `surprise` how many
    times the most that its call might cost that was, where it was more.
    """

    event: str
    call: str
    teacher: str
    time: float = 0.0
    host: str = ""
    model: str = ""
    request: str = ""
    bytes: int = 0
    key: str = ""
    trace: str = ""
    reserved: float = 0.0
    outcome: str = ""
    status: int | None = None
    cost: float = 0.0
    uncertain: float = 0.0
    tokens: tuple[int, int, int] = (0, 0, 0)
    dearest: float = 0.0
    surprise: float = 0.0


class Journal:
    """Lines of `path`; None keeps them in memory only.

    Raises:
        OutsideFailure: the file cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.lines: list[Line] = [] if path is None else list(_read(path))
        self.earlier = len(self.lines)
        self._sent = {line.call: line for line in self.lines if line.event == "sent"}
        self._left: dict[_Where, list[float]] = {}
        self._broken = {line.key for line in self.lines if line.uncertain and line.key}
        self._surprises: dict[str, float] = {}
        for line in self.lines:
            self._note_surprise(line)
        self._names = f"{os.getpid()}-{time.time_ns():x}"
        self._count = 0

    def name(self) -> str:
        """A name for a try that no other has, in this run or another."""
        self._count += 1
        return f"{self._names}-{self._count}"

    def write(self, line: Line) -> None:
        """Add a line; it is with the system when this returns, so that killing the process cannot lose it."""
        line = msgspec.structs.replace(line, time=round(time.time(), 3))
        self.lines.append(line)
        self._note_surprise(line)
        self._note_loss(line)
        if line.uncertain and line.key:
            self._broken.add(line.key)
        if self.path is not None:
            append_line(self.path, msgspec.json.encode(line))

    def _note_surprise(self, line: Line) -> None:
        if line.surprise:
            self._surprises[line.teacher] = max(self._surprises.get(line.teacher, 0.0), line.dearest)

    def _note_loss(self, line: Line) -> None:
        """What a lost try holds pays for asking again, until there is an answer."""
        if line.event == "sent":
            self._sent[line.call] = line
        elif line.event == "settled" and (request := self._sent.get(line.call)) is not None:
            if line.outcome in _LOST:
                self._left.setdefault(_where(request), []).append(line.uncertain)
            elif line.outcome == "answered":
                self._left.pop(_where(request), None)

    def surprise(self, teacher: str) -> float:
        """US dollars of the dearest bill of `teacher` that was more than its call might cost; 0 without one."""
        return self._surprises.get(teacher, 0.0)

    def reconcile(self, cost_of: Callable[[str], float | None]) -> None:
        """Settle what a killed process left open: at the cost in the cache, else as money that may be gone.

        Args:
            cost_of: cache key -> US dollars of the answer, None where there is no answer.
        """
        settled = {line.call for line in self.lines if line.event == "settled"}
        for line in [line for line in self.lines if line.event == "sent" and line.call not in settled]:
            cost = cost_of(line.key)
            end = Line("settled", line.call, line.teacher, key=line.key, trace=line.trace, outcome="interrupted")
            if cost is None:
                self.write(msgspec.structs.replace(end, uncertain=line.reserved))
            else:
                self.write(msgspec.structs.replace(end, outcome="answered", cost=cost))
        self.earlier = len(self.lines)
        self._left = self._unanswered()

    def _unanswered(self) -> dict[_Where, list[float]]:
        """What each lost try holds, by request, where no answer has come."""
        answered = {_where(request) for request, line in self._tries() if line.outcome == "answered"}
        left: dict[_Where, list[float]] = {}
        for request, line in self._tries():
            if line.outcome in _LOST and _where(request) not in answered:
                left.setdefault(_where(request), []).append(line.uncertain)
        return left

    def _tries(self) -> Iterator[tuple[Line, Line]]:
        """How each try began and ended, without those that were released; one that never left has no beginning."""
        released = {line.call for line in self.lines if line.event == "released"}
        for line in self.lines:
            if line.event == "settled" and line.call in self._sent and line.call not in released:
                yield self._sent[line.call], line

    @property
    def paid(self) -> float:
        """US dollars of everything settled."""
        return sum(line.cost for line in self.lines)

    @property
    def uncertain(self) -> float:
        """US dollars that may have been billed for calls without an answer, or with one that names no bill."""
        return math.fsum(self.uncertain_of().values())

    def uncertain_of(self) -> dict[str, float]:
        """That by teacher.

        A lost try whose request the same endpoint has answered since counts as that bill, also where nothing was set
        aside for it because an earlier one had been lost.
        """
        tries = list(self._tries())
        bills: dict[_Where, float] = {}
        for request, line in tries:
            if line.outcome == "answered" and not line.uncertain:
                bills[_where(request)] = max(line.cost, line.dearest)
        found: dict[str, float] = {}
        for request, line in tries:
            bill = bills.get(_where(request), math.inf)
            lost = line.outcome in _LOST and bill < math.inf
            found[line.teacher] = found.get(line.teacher, 0.0) + (bill if lost else min(line.uncertain, bill))
        return found

    def release(self) -> float:
        """Count nothing of this any more, and say how much it was."""
        amount = self.uncertain
        for line in [line for _, line in self._tries() if line.uncertain or line.outcome in _LOST]:
            self.write(Line("released", line.call, line.teacher, key=line.key, trace=line.trace))
        self.earlier = len(self.lines)
        self._left = {}
        return amount

    def set_aside(self, request: Line, most: float) -> float | None:
        """US dollars of what lost tries of this request hold that one more try, which may cost `most`, can use.

        None where none was lost. Without that a budget that was nearly used up when the process died, or when an
        endpoint broke off some answers, could never be gone on with. Two tries together cost less than the worst case
        of one, unless an answer is more than half as dear as it could be; so the worst case of one is held for every
        two that were lost, however often that happens.
        """
        left = self._left.get(_where(request))
        return None if left is None else max(0.0, math.fsum(left) - most * (len(left) // 2))

    def may_be_lower(self, key: str) -> bool:
        """Whether a try of this request broke off, so that its bill says what that may have cost."""
        return key in self._broken

    def this_run(self) -> list[Line]:
        """Lines written since this object was made."""
        return self.lines[self.earlier :]


_Where = tuple[str, str, str]


def _where(request: Line) -> _Where:
    """What was asked, and where: another endpoint may bill the same request otherwise."""
    return request.key, request.host, request.model


def _read(path: Path) -> Iterator[Line]:
    """Whole lines; what a killed process left torn is cut off, so that the next line stands by itself."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    for line in data[:whole].splitlines():
        try:
            yield msgspec.convert(json.loads(line), Line)
        except ValueError as error:  # a foreign line would let a budget forget money
            raise OutsideFailure(f"{path} holds a broken line ({error}); remove it to go on") from None
