"""Kinds of argument values: how a value is drawn, how a request shows it, and what its JSON schema says.

The value of an argument and its words in the request may differ ("5%" is 0.05, "March 4, 2025" is 2025-03-04), but
one always follows from the other and the parameter's description. Not covered: objects, and constraints between
the arguments of one call.
"""

from __future__ import annotations

import datetime
import random
import re
from dataclasses import dataclass
from typing import Any, Protocol

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Kind(Protocol):
    """One kind of value."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the parameter, without its description."""
        ...

    def draw(self, rng: random.Random) -> Any:
        """A random value."""
        ...

    def show(self, value: Any, style: str) -> str:
        """The words for `value` in a request; `style` is the part after the colon in ``{name:style}``."""
        ...

    def read(self, text: str) -> Any:
        """The value that a table writes as `text` (a default, a value that words imply)."""
        ...


def tidy(value: float) -> int | float:
    """Round off binary dust and write whole numbers without a point: 0.1 * 3 -> 0.3, 4.0 -> 4."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


@dataclass(frozen=True)
class _Range:
    """A number from `low` to `high` in steps of `step`; with `percent` the request shows 5% and the value is 0.05."""

    low: float
    high: float
    step: float
    whole: bool
    percent: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "integer" if self.whole else "number"}

    def draw(self, rng: random.Random) -> Any:
        value = self.low + self.step * rng.randint(0, round((self.high - self.low) / self.step))
        return tidy(value / 100 if self.percent else value)

    def show(self, value: Any, style: str) -> str:
        if self.percent:
            return f"{tidy(value * 100)}%"
        if style == "words" and isinstance(value, int) and 0 <= value < len(WORDS):
            return WORDS[value]
        return f"{value:,}" if style == "," else str(value)

    def read(self, text: str) -> Any:
        return tidy(float(text))


@dataclass(frozen=True)
class _Flag:
    """True or false; requests word it as ``{name?words if true|words if false}``."""

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def draw(self, rng: random.Random) -> Any:
        return rng.random() < 0.5

    def show(self, value: Any, style: str) -> str:
        yes, _, no = style.partition("|")
        return yes if value else no

    def read(self, text: str) -> Any:
        assert text in ("true", "false"), f"a boolean is true or false, not {text}"
        return text == "true"


@dataclass(frozen=True)
class _Choice:
    """One of some strings; `closed` ones are an enum in the schema. `words` maps a value to its words."""

    words: dict[str, str]
    closed: bool

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)} if self.closed else {"type": "string"}

    def draw(self, rng: random.Random) -> Any:
        return rng.choice(list(self.words))

    def show(self, value: Any, style: str) -> str:
        return self.words[value]

    def read(self, text: str) -> Any:
        assert not self.closed or text in self.words, f"{text} is not one of {list(self.words)}"
        return text


@dataclass(frozen=True)
class _Day:
    """A date, written YYYY-MM-DD and shown as "March 4, 2025" (style ``iso``: as written)."""

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def draw(self, rng: random.Random) -> Any:
        return (datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randrange(3 * 365))).isoformat()

    def show(self, value: Any, style: str) -> str:
        day = datetime.date.fromisoformat(value)
        return value if style == "iso" else f"{day:%B} {day.day}, {day.year}"

    def read(self, text: str) -> Any:
        return text


@dataclass(frozen=True)
class _Clock:
    """A time of day in quarters of an hour, written and shown HH:MM."""

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def draw(self, rng: random.Random) -> Any:
        return f"{rng.randint(6, 21):02d}:{rng.choice((0, 15, 30, 45)):02d}"

    def show(self, value: Any, style: str) -> str:
        return str(value)

    def read(self, text: str) -> Any:
        return text


@dataclass(frozen=True)
class _ListOf:
    """`low` to `high` different values of one kind, shown "a, b and c" (style ``list``: "[a, b, c]").

    Lists of numbers hold no whole numbers among fractions: BFCL's checker takes 4 for 4.0 in a plain argument but
    not inside a list, so such a value would be graded by how it is written.
    """

    item: Kind
    low: int
    high: int

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.schema}

    def draw(self, rng: random.Random) -> Any:
        count = rng.randint(self.low, self.high)
        values: list[Any] = []
        while len(values) < count:
            value = self.item.draw(rng)
            mixed = isinstance(value, int) and self.item.schema["type"] == "number"
            if value not in values and not mixed:
                values.append(value)
        return values

    def show(self, value: Any, style: str) -> str:
        shown = [self.item.show(item, "") for item in value]
        if style == "list":
            return f"[{', '.join(shown)}]"
        return ", ".join(shown[:-1]) + f" and {shown[-1]}" if len(shown) > 1 else shown[0]

    def read(self, text: str) -> Any:
        return [self.item.read(part) for part in text.split(", ")]


def parse_kind(text: str, pools: dict[str, str]) -> Kind:
    """Read a kind of value as a table writes it.

    ``int 2..40/2``, ``num``, ``pct``, ``bool``, ``date``, ``time``, ``one of a, b``, ``word a, b``, ``@pool``, and with
    ``2-4`` before it a list of 2 to 4 such values. In a list of words, ``words=value`` gives a value its words.
    """
    many = re.fullmatch(r"(\d)-(\d) (.+)", text)
    if many:
        return _ListOf(parse_kind(many[3], pools), int(many[1]), int(many[2]))
    span = re.fullmatch(r"(int|num|pct) (-?[\d.]+?)\.\.(-?[\d.]+?)(?:/([\d.]+))?", text)
    if span:
        step = float(span[4]) if span[4] else 1.0
        return _Range(float(span[2]), float(span[3]), step, span[1] == "int", span[1] == "pct")
    simple: dict[str, Kind] = {"bool": _Flag(), "date": _Day(), "time": _Clock()}
    if text in simple:
        return simple[text]
    if text.startswith("@"):
        return _choice(pools[text[1:]], closed=False)
    if text.startswith("one of "):
        return _choice(text.removeprefix("one of "), closed=True)
    assert text.startswith("word "), f"unknown kind of value: {text}"
    return _choice(text.removeprefix("word "), closed=False)


def _choice(text: str, *, closed: bool) -> _Choice:
    words = {}
    for part in text.split(", "):
        shown, _, value = part.partition("=")
        # an enum's `dew_point` reads "dew point" in a request; a file name keeps its underscores
        words[value or shown] = shown.replace("_", " ") if closed and not value else shown
    return _Choice(words, closed)
