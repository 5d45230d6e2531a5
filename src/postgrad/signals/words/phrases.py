r"""`Phrases`: a long list of alternatives, searched for in long texts without trying each of them at every place.

Python tries the alternatives of ``a|b|c`` one after the other at each character, so a table of two hundred phrases
reads some two megabytes a second. Nearly every alternative holds plain characters that must occur for it to match
(``file \S+ not found`` holds " not found"), and to look for a plain string takes a few microseconds. So each
alternative is an expression of its own, which is only tried on texts with its plain characters in them. What
`search` finds is what the whole expression finds: the leftmost match, of several there the first alternative's.

Not covered: verbose expressions, references to groups, atomic groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_TOKEN = re.compile(
    r"(?P<escape>\\(?:x..|u.{4}|U.{8}|\d+|.))|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<repeat>[*+?]|\{\d*,?\d*\})"
    r"|(?P<open>\((?:\?(?:P<\w+>|[a-z]*:|[=!]|<[=!]))?)|(?P<close>\))|(?P<or>\|)|(?P<other>.)",
    re.DOTALL,
)
_OPTIONAL = re.compile(r"[*?]|\{0?,.*|\{0\}")
_WRITTEN = {"\\n": "\n", "\\t": "\t"}
# Letters that an expression without case takes for others (i, s, some Cyrillic) and that do not become them in small.
_FOLDED = re.compile("[\u0130\u0131\u017f\u1c80-\u1c88]")
_Needles = frozenset[str]
_EVERYWHERE = ("",)  # what every text holds


def one_of(*patterns: str) -> str:
    """One expression for any of `patterns`, to stand as a part of another."""
    return "(?:" + "|".join(patterns) + ")"


class Phrases:
    """The alternatives of an expression.

    Args:
        patterns: as for `re.compile`, each one alternative or several with bars between them.
        flags: of `re`; without `re.VERBOSE`.
    """

    def __init__(self, *patterns: str, flags: re.RegexFlag = re.IGNORECASE) -> None:
        assert not flags & re.VERBOSE
        self._pattern, self._flags = "|".join(patterns), flags
        self._compiled: dict[str, re.Pattern[str]] = {}

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in `text`, as `re.search` gives it."""
        found: re.Match[str] | None = None
        for one in self._possible(text):
            match = self._expression(one).search(text)
            if match is not None and (found is None or match.start() < found.start()):
                found = match
        return found

    def possible(self, text: str) -> bool:
        """Whether `text`, or a part of it, may match; never False where it does."""
        return next(self._possible(text), None) is not None

    @cached_property
    def _parts(self) -> list[tuple[tuple[str, ...], str]]:
        """The needles of each alternative, and the alternative."""
        found = [(needles(one), one) for one in alternatives(self._pattern)]
        return [(_EVERYWHERE if held is None else tuple(sorted(held)), one) for held, one in found]

    @cached_property
    def _ascii(self) -> list[tuple[tuple[str, ...], str]]:
        """The parts that can match in a text of ASCII, with their needles that can be there."""
        found = [(tuple(filter(str.isascii, held)), one) for held, one in self._parts]
        return [(held, one) for held, one in found if held]

    def _expression(self, one: str) -> re.Pattern[str]:
        """Compiled when it is first needed: most alternatives never are, and all of them take half a second."""
        if one not in self._compiled:
            self._compiled[one] = re.compile(one, self._flags)
        return self._compiled[one]

    def _possible(self, text: str) -> Iterator[str]:
        """The alternatives whose plain characters are there."""
        small = text.lower()
        plain = text.isascii()
        folded = not plain and _FOLDED.search(text) is not None
        for held, one in self._ascii if plain else self._parts:
            for needle in held:  # a loop and not `any`: this is where the time goes
                if needle in small or folded:
                    yield one
                    break


def alternatives(pattern: str) -> list[str]:
    """The expressions between the bars of `pattern` that stand in no bracket."""
    depth, start, found = 0, 0, []
    for token in _TOKEN.finditer(pattern):
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
        if token.lastgroup == "or" and not depth:
            found.append(pattern[start : token.start()])
            start = token.end()
    return [*found, pattern[start:]]


def needles(pattern: str) -> _Needles | None:
    """Plain strings, in small letters, of which every text that `pattern` matches holds one; None if there are none."""
    return _bracket(_TOKEN.finditer(pattern))


def _bracket(tokens: Iterator[re.Match[str]]) -> _Needles | None:
    """The needles of what stands up to the closing bracket, or the end."""
    found: list[_Needles | None] = []
    one = _Alternative()
    for token in tokens:
        kind, text = token.lastgroup, token[0]
        if kind == "close":
            break
        if kind == "or":
            found.append(one.needles())
            one = _Alternative()
        elif kind == "open":
            inside = _bracket(tokens)
            one.group(None if text.startswith(("(?=", "(?!", "(?<")) else inside)
        elif kind == "repeat":
            one.repeat(text)
        else:
            one.character(_plain(kind, text))
    found.append(one.needles())
    return None if None in found else frozenset().union(*(held for held in found if held is not None))


def _plain(kind: str | None, text: str) -> str | None:
    """The character that a token stands for, None if it is not one."""
    if kind == "escape":
        return _WRITTEN.get(text, None if text[1].isalnum() else text[1])
    return text.lower() if kind == "other" and text not in ".^$" and not _FOLDED.match(text) else None


@dataclass
class _Alternative:
    """The parts of one alternative, each with its needles; `_run` are the plain characters that stand last."""

    _parts: list[_Needles | None] = field(default_factory=list)
    _run: str = ""

    def character(self, plain: str | None) -> None:
        if plain is None:
            self.group(None)
        else:
            self._run += plain

    def group(self, held: _Needles | None) -> None:
        self._end_run()
        self._parts.append(held)

    def repeat(self, mark: str) -> None:
        """What may be left out need not occur; what is repeated ends the run, for it may stand there twice."""
        optional = _OPTIONAL.fullmatch(mark) is not None
        if self._run:
            self._run = self._run[:-1] if optional else self._run
            self._end_run()
            self._parts.append(None)
        elif optional and self._parts:
            self._parts[-1] = None

    def needles(self) -> _Needles | None:
        """Of the part whose shortest needle is the longest."""
        self._end_run()
        return max((part for part in self._parts if part), key=lambda held: min(map(len, held)), default=None)

    def _end_run(self) -> None:
        if self._run:
            self._parts.append(frozenset((self._run,)))
        self._run = ""
