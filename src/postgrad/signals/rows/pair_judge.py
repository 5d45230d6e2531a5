"""Judges of pairs: is the chosen action really better than the student's? Optional, and never trusted blindly.

A judge sees a pair twice, with the places swapped. A verdict is one that is the same both times; a judge that says "the
first" both times has judged the place. Two judges of different families must both prefer the chosen action, for models
of one family like their own kind. A judge that contradicts itself on half of its pairs or more, or whose contradictions
lean to one place beyond chance, is refused with the numbers, from `LEAST` pairs on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.signals.rows.made import Made
from postgrad.signals.rows.shown import LONGEST, shown

LEAST = 4
"""Pairs from which on a judge's own consistency is judged."""
_CHANCE = 0.05
_ANSWER = 64  # tokens; a letter, and what some models say before it
_PROMPT = """Two possible next actions of an assistant are given. Which one serves the user better?
Judge what they do: right tool, right arguments, right facts. Do not mind length, politeness or which comes first.

The conversation so far:
{context}

Action A:
{one}

Action B:
{other}

Reply with one letter: A, B, or T if they are equally good."""

Verdict = Literal["chosen", "rejected", "tie", "first", "second", "silent"]
_DROPPED: dict[Verdict, str] = {
    "rejected": "judge_prefers_student",
    "tie": "judge_tie",
    "first": "judge_by_place",
    "second": "judge_by_place",
    "silent": "judge_silent",
}


@dataclass(frozen=True)
class PairJudge:
    """An actor that compares actions; `family` is the make of its model."""

    actor: Actor
    family: str

    def verdicts(self, pairs: Sequence[Record]) -> tuple[list[Verdict], list[float]]:
        """What it says of each pair, and what that cost in US dollars.

        Raises:
            DataError: it judges by place.
            OutsideFailure: it cannot be reached.
        """
        asks = [_ask(pair, swapped=swapped) for pair in pairs for swapped in (False, True)]
        said = self.actor.answer(asks, Sampling(max_new_tokens=_ANSWER)) if asks else []
        found = [_verdict(said[2 * k], said[2 * k + 1]) for k in range(len(pairs))]
        self._require_fair(found)
        costs = [(said[2 * k].cost or 0.0) + (said[2 * k + 1].cost or 0.0) for k in range(len(pairs))]
        return found, costs

    def _require_fair(self, found: Sequence[Verdict]) -> None:
        counts = Counter(found)
        spoken = len(found) - counts["silent"]
        first, second = counts["first"], counts["second"]
        if spoken < LEAST or (2 * (first + second) < spoken and _by_chance(first, second) >= _CHANCE):
            return
        raise DataError(
            f"judge {self.actor.name} judges by place",
            got=f"of {spoken} pairs {first} times the first and {second} times the second, however they stood",
            expected="the same verdict both ways round",
            do="take another judge, or none",
        )


def judged(made: Sequence[Made], judges: Sequence[PairJudge]) -> list[Made]:
    """The pairs that all judges confirm, and the reasons of those that they do not; other reasons stay.

    Raises:
        ConfigError: fewer than two judges, or all of one family.
        DataError: a judge judges by place.
    """
    families = {judge.family for judge in judges}
    if len(families) < 2:
        got = ", ".join(f"{judge.actor.name} ({judge.family})" for judge in judges) or "no judge"
        raise ConfigError("pairs need judges of two families", got=got, do="add a judge of another family")
    pairs = [one.record for one in made if one.record is not None]
    said = [judge.verdicts(pairs) for judge in judges]
    names = ", ".join(judge.actor.name for judge in judges)
    results = iter([_confirmed(pair, [(v[k], c[k]) for v, c in said], names) for k, pair in enumerate(pairs)])
    return [one if one.record is None else next(results) for one in made]


def family_of(model: str) -> str:
    """The make of a model by its name: the letters it begins with, `claude` of ``anthropic/claude-3-haiku``."""
    found = re.match(r"[a-z]+", model.rsplit("/", 1)[-1].lower())
    return {"o": "gpt", "chatgpt": "gpt"}.get(found[0], found[0]) if found else model


def _confirmed(pair: Record, said: Sequence[tuple[Verdict, float]], names: str) -> Made:
    verdicts = [verdict for verdict, _ in said]
    if all(verdict == "chosen" for verdict in verdicts):
        where = pair.provenance
        cost = math.fsum([where.cost or 0.0, *(cost for _, cost in said)])
        told = msgspec.structs.replace(where, why=f"{where.why}; judges {names} agree", cost=cost)
        return Made(msgspec.structs.replace(pair, provenance=told))
    if "chosen" in verdicts and set(verdicts) == {"chosen", "rejected"}:
        return Made(dropped="judges_disagree")
    return Made(dropped=next(_DROPPED[verdict] for verdict in verdicts if verdict != "chosen"))


def _ask(pair: Record, *, swapped: bool) -> Ask:
    assert pair.rejected is not None, "a pair has two actions"
    actions = [shown(pair.action), shown(pair.rejected)]
    one, other = reversed(actions) if swapped else actions
    context = "\n\n".join(f"[{message.role}]\n{shown(message)}" for message in pair.messages)[-LONGEST:]
    return Ask((Message.of("user", _PROMPT.format(context=context, one=one, other=other)),))


def _verdict(straight: Answer, swapped: Answer) -> Verdict:
    told = _letter(straight) + _letter(swapped)
    verdicts: dict[str, Verdict] = {"AB": "chosen", "BA": "rejected", "TT": "tie", "AA": "first", "BB": "second"}
    return verdicts.get(told, "tie" if "T" in told and len(told) == 2 else "silent")


_LETTER = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\W*([ABTabt])\W*$",
        r"[:=\n]\W*([ABT])\W*$",
        r"^\W*([ABT])\W*[.,:;)\n*-]",
    )
)
"""A verdict set off from other words: alone, at the end, at the beginning."""
_BETTER = re.compile(
    r"\b([AB])\s+(?:is|was|seems|looks)\s+(not\s+)?(?:\w+\s+)?(?:better|best|preferable|superior|stronger|correct|right)\b"
)
_NAMED = re.compile(r"\b(?:([BT])\b|(A)\b(?!\s+[a-z]))")  # "A careful look" names nothing


def _letter(answer: Answer) -> str:
    """The letter that an answer settles on; none where it names several and sets none of them off."""
    text = answer.message.text.strip() if answer.message is not None else ""
    for pattern in _LETTER:
        if found := pattern.search(text):
            return found[1].upper()
    if praised := set(_BETTER.findall(text)):
        [(letter, negated), *others] = praised
        return "" if negated or others else str(letter)
    named = {one or other for one, other in _NAMED.findall(text)}
    return named.pop() if len(named) == 1 else ""


def _by_chance(first: int, second: int) -> float:
    """Probability of contradictions at least as one-sided, if they fell by chance (two-sided sign test)."""
    total = first + second
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, k) for k in range(max(first, second), total + 1)) * 0.5**total
    return min(1.0, 2 * tail)
