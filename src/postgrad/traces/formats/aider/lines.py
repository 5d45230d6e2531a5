"""What each line of an Aider chat history is: start of a chat, the user's, the tool's, or the model's.

Aider ends every line of the user with two blanks; a heading of the fourth level in the model's text does not. Where an
editor took all such blanks away, every line with four ``#`` is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Kind = Literal["start", "user", "tool", "model"]
_START = re.compile(r"# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*\Z")
_FENCE = re.compile(r"(`{3,}|~{3,})([\w+#.-]*)\s*\Z")
_TOOL_SAYS = re.compile(r"> (Tokens: [\d.,]+[kM]? sent|Applied edit to |\^C|Commit [0-9a-f]{7} )")


class Lines:
    """The kinds of the lines of a text; numbers are 1-based."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        fenced = self._fenced()
        ended = any(line.startswith("#### ") and line.endswith("  ") for line in lines)
        self._kinds: list[Kind] = []
        for place, line in enumerate(lines):
            before = self._kinds[-1] if self._kinds else "tool"
            self._kinds.append("model" if place in fenced else _kind(line, before, ended=ended))

    def kind(self, number: int) -> Kind:
        """What a line is; a blank one goes with the line before."""
        return self._kinds[number - 1]

    def starts(self, number: int) -> bool:
        """Whether a line is of another kind than the one before."""
        kind = self.kind(number)
        return kind == "start" or kind != self.kind(number - 1)

    def _fenced(self) -> set[int]:
        """Lines inside a fence. One that is not closed before the tool speaks or a chat starts is none."""
        found: set[int] = set()
        at = 0
        while at < len(self._lines):
            opening = _FENCE.match(self._lines[at])
            stop = self._close(at, opening[1]) if opening else None
            if stop is not None:
                found |= set(range(at, stop + 1))
                at = stop
            at += 1
        return found

    def _close(self, at: int, mark: str) -> int | None:
        for place in range(at + 1, len(self._lines)):
            line = self._lines[place]
            if _START.match(line) or _TOOL_SAYS.match(line):
                return None
            closing = _FENCE.match(line)
            if closing and closing[1].startswith(mark) and not closing[2]:
                return place
        return None


def _kind(line: str, before: Kind, *, ended: bool) -> Kind:
    if _START.match(line):
        return "start"
    if line.startswith("####") and (len(line) == 4 or line[4] == " ") and (not ended or line.endswith("  ")):
        return "user"
    if line.startswith(">"):
        return "tool"
    if not line.strip():
        return "tool" if before == "start" else before
    return "model"
