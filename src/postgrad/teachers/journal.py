"""`Journal`: what left this machine, when and where to, and what it cost, a line before a call and a line after it.

The line before says that a request is on its way, with what is set aside for it; the line after, what became of it. A
process that is killed between the two leaves a call of unknown end: it is found again here, and counts as paid up to
what was set aside, unless its answer is in the cache. So a budget holds over all runs of a folder. Lines hold hashes,
counts and hosts, never text of a trace and never a key. Not covered: bytes on the wire below HTTP.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from postgrad.core.errors import OutsideFailure
from postgrad.core.files import append_line


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line. `event` is "sent" or "settled"; the two of one try share `call`."""

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


class Journal:
    """Lines of `path`; None keeps them in memory only.

    Raises:
        OutsideFailure: the file cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.lines: list[Line] = [] if path is None else list(_read(path))
        self.earlier = len(self.lines)
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
        if self.path is not None:
            append_line(self.path, msgspec.json.encode(line))

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

    @property
    def paid(self) -> float:
        """US dollars of everything settled."""
        return sum(line.cost for line in self.lines)

    @property
    def uncertain(self) -> float:
        """US dollars that may have been billed for calls without an answer."""
        return sum(line.uncertain for line in self.lines)

    def this_run(self) -> list[Line]:
        """Lines written since this object was made."""
        return self.lines[self.earlier :]


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
