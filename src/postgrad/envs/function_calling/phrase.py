"""Request phrasings: a small template language that turns argument values into natural English.

    ``{name}``            the value's words            ``{name:style}``   in a style of its kind
    ``{name?yes|no}``     words for true and false     ``{name=value}``   no words; the text around it implies value
    ``[ ... ]``           said or left out as a whole; what is left out keeps its default

A phrasing says exactly which arguments a call must give, so every right answer follows from the request.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postgrad.envs.function_calling.values import Kind

_TOKEN = re.compile(r"(\[|\])|\{(\w+)(?:([:?=])([^}]*))?\}|([^\[\]{}]+)")


@dataclass(frozen=True)
class Slot:
    """A place that an argument fills: shown in a `style`, or `implied` by the words around it."""

    name: str
    style: str = ""
    implied: str | None = None


@dataclass(frozen=True)
class Phrase:
    """Literal text, slots and optional phrases, in order."""

    parts: tuple[str | Slot | Phrase, ...]

    def names(self, *, certain: bool) -> set[str]:
        """The arguments mentioned; with `certain` only those outside optional parts."""
        found: set[str] = set()
        for part in self.parts:
            if isinstance(part, Slot):
                found.add(part.name)
            elif isinstance(part, Phrase) and not certain:
                found |= part.names(certain=False)
        return found

    def say(
        self, kinds: Mapping[str, Kind], values: Mapping[str, Any], rng: random.Random
    ) -> tuple[str, dict[str, Any]]:
        """The text of a request, and the arguments that it states; optional parts are said half of the time."""
        text, given = "", {}
        for part in self.parts:
            if isinstance(part, str):
                text += part
            elif isinstance(part, Slot):
                kind = kinds[part.name]
                given[part.name] = values[part.name] if part.implied is None else kind.read(part.implied)
                if part.implied is None:
                    text += kind.show(values[part.name], part.style)
            elif rng.random() < 0.5:
                inner, stated = part.say(kinds, values, rng)
                text += inner
                given |= stated
        return text, given


def parse_phrase(text: str) -> Phrase:
    """Read a template; brackets nest at most one deep."""
    outer: list[str | Slot | Phrase] = []
    inner: list[str | Slot | Phrase] | None = None
    end = 0
    for match in _TOKEN.finditer(text):
        assert match.start() == end, f"stray bracket or brace at {end} in: {text}"
        end = match.end()
        bracket, name, mark, rest, literal = match.groups()
        here = outer if inner is None else inner
        if bracket == "[":
            assert inner is None, f"nested optional part in: {text}"
            inner = []
        elif bracket == "]":
            assert inner is not None, f"unopened optional part in: {text}"
            outer.append(Phrase(tuple(inner)))
            inner = None
        elif name:
            here.append(Slot(name, implied=rest) if mark == "=" else Slot(name, style=rest or ""))
        else:
            here.append(literal)
    assert end == len(text), f"stray bracket or brace at {end} in: {text}"
    assert inner is None, f"unclosed optional part in: {text}"
    return Phrase(tuple(outer))
