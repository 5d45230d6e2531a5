"""Which form a template has that spells arguments one by one: read off calls with arguments that can be found again.

A call without arguments, with one and with two, and two calls are rendered; the texts before, between and after names,
keys and values are the form (`Parameters`). Where a number stands without texts that a text has around it, these are
quotes, and the arguments are an object in a notation of its own (`Notation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from postgrad.models.call_forms import CallForm, Given, wire_id
from postgrad.models.notation_calls import Notation
from postgrad.models.parameter_calls import Parameters, Tags
from postgrad.models.template_probe import IDS, KEYS, NAMES, SAID, VALUES, Render, answer_in

_NUMBER = 7.25


@dataclass(frozen=True)
class Asking:
    """How to ask a template for calls, and what of its text is not theirs: see `call_probe.call_form`."""

    render: Render
    user: Mapping[str, Any]
    given: Given
    opened: str
    answer: str
    turn_end: str

    def rest(self, *calls: Mapping[str, Any], words: str | None = None) -> str | None:
        """What follows the generation prompt in an answer with calls of these arguments; None where there is none."""
        wire = [
            {"id": wire_id(IDS[k]), "type": "function", "function": {"name": NAMES[k], "arguments": dict(own)}}
            for k, own in enumerate(calls)
        ]
        turn = {"role": "assistant", "content": self.given.beside if words is None else words, "tool_calls": wire}
        try:
            text = self.render([dict(self.user), turn])
        except (jinja2.TemplateError, TypeError):
            return None
        return answer_in(text, self.opened)

    def pieces(self, calls: Sequence[Mapping[str, Any]], found: Sequence[str]) -> list[str] | None:
        """The texts around what is to be found again, one more than that; None where something is missing."""
        rest = self.rest(*calls)
        return None if rest is None else _split(rest, found)


def spelled_form(ask: Asking) -> CallForm | None:
    """The form; None where the template spells no arguments."""
    name, key, value = NAMES[0], KEYS[0], VALUES[0]
    one = ask.pieces([{key: value}], [name, key, value])
    none = ask.pieces([{}], [name])
    two = ask.pieces([{key: value, KEYS[1]: VALUES[1]}], [name, key, value, KEYS[1], VALUES[1]])
    if one is None or none is None or two is None or [*two[:3], two[-1]] != one:
        return None
    first, opening, to_value, rest = one
    if not first.strip() or ("{" in opening and opening.rstrip().endswith(('"', "'"))):  # JSON, or a printed dictionary
        return None
    shared = _Shared.of(ask, first, rest)
    number = ask.pieces([{key: _NUMBER}], [name, key, str(_NUMBER)])
    quote = to_value.removeprefix(number[2]) if number is not None else ""
    if number is not None and quote:
        fits = len(quote) > 1 and shared.closing.startswith(quote) and opening.endswith("{") and two[3] == f"{quote},"
        closing = shared.closing.removeprefix(quote)
        if not fits or not closing.startswith("}"):
            return None
        nothing = _Shown.of(ask, None, number[2], shared.closing.removeprefix(quote))
        return Notation(**shared.texts, opening=opening, closing=closing, quote=quote, nothing=nothing or "None")
    if not ("<" in two[3] and "<" in shared.closing and to_value.strip()):  # nothing shows where a value ends
        return None
    empty = none[1].removesuffix(ask.turn_end).removesuffix(shared.tail)
    truth = _Shown.of(ask, True, to_value, shared.closing)
    nested = _Shown.of(ask, [True], to_value, shared.closing)
    tags = Tags(opening, to_value, two[3], shared.closing, empty, truth == "True", nested == "[True]")
    return Parameters(**shared.texts, tags=tags)


class _Shown:
    """How a value comes out."""

    @staticmethod
    def of(ask: Asking, value: object, before: str, after: str) -> str:
        """The text between what stands before and after a value."""
        parts = ask.pieces([{KEYS[0]: value}], [NAMES[0], KEYS[0]])
        return parts[2].removeprefix(before).partition(after)[0] if parts and after else ""


@dataclass(frozen=True)
class _Shared:
    """What all forms behind a mark have: `texts` are their fields, `closing` ends a call, `tail` follows the last."""

    texts: dict[str, Any]
    closing: str
    tail: str

    @classmethod
    def of(cls, ask: Asking, first: str, rest: str) -> _Shared:
        """From the texts before the first name and after the last value of one call."""
        ends_as_words = rest.endswith(ask.turn_end) if ask.turn_end else True
        rest = rest.removesuffix(ask.turn_end)
        own = first.removeprefix(ask.answer) if ask.answer else first
        names = [NAMES[0], KEYS[0], VALUES[0], NAMES[1], KEYS[1], VALUES[1]]
        several = ask.pieces([{KEYS[0]: VALUES[0]}, {KEYS[1]: VALUES[1]}], names)
        middle = several[3] if several is not None else f"{rest}\n{own}"
        closing = _whole_tags(_common(rest, middle))
        tail = rest.removeprefix(closing)
        beside = _split(ask.rest({KEYS[0]: VALUES[0]}, words=SAID) or "", [SAID, NAMES[0]])
        joint = beside[1].removesuffix(own) if beside is not None and beside[1].endswith(own) else "\n"
        texts = {
            "first": own,
            "between": middle.removeprefix(closing),
            "last": tail if ends_as_words else "",
            "beside": joint,
            "given": ask.given,
            "plain": own != first,
            "end": "" if ends_as_words else tail,
        }
        return cls(texts, closing, tail)


def _common(one: str, other: str) -> str:
    """What both texts begin with."""
    pairs = zip(one, other, strict=False)
    return one[: next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))]


def _whole_tags(text: str) -> str:
    """`text` without the beginning of a tag at its end."""
    before, found, tag = text.rpartition("<")
    return before if found and ">" not in tag else text


def _split(text: str, found: Sequence[str]) -> list[str] | None:
    pieces = []
    for part in found:
        before, there, text = text.partition(part)
        if not there:
            return None
        pieces.append(before)
    return [*pieces, text]
