"""What each teacher did in a replay: answers, abstentions, invalid actions, cost, latency, cache hits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from postgrad.teachers.replay import ReplayedStep, Teacher, TeacherAnswer
from postgrad.teachers.validity import invalid_reason


def report(replayed: Sequence[ReplayedStep], teachers: Iterable[Teacher]) -> dict[str, dict[str, Any]]:
    """Per teacher, plain JSON.

    `cost` is what the answers cost whenever they were bought, `paid` what this run paid: US dollars, or "unknown" where
    a metered teacher gave no price. Latency is in seconds per call, over answers from the wire and the cache alike.
    """
    return {teacher.name: _one(replayed, teacher) for teacher in teachers}


def _one(replayed: Sequence[ReplayedStep], teacher: Teacher) -> dict[str, Any]:
    given = [(step, step.answers[teacher.name]) for step in replayed if teacher.name in step.answers]
    answers = [answer for _, answer in given]
    invalid = Counter(
        reason
        for step, said in given
        if said.answer.message is not None and (reason := invalid_reason(said.answer.message, step.ask.tools))
    )
    seconds = sorted(said.answer.seconds for said in answers)
    return {
        "kind": teacher.kind,
        "models": sorted({said.answer.model for said in answers}),
        "answers": sum(said.answer.message is not None for said in answers),
        "abstentions": sum(said.answer.message is None for said in answers),
        "refusals": dict(Counter(_reason(said) for said in answers if said.answer.message is None)),
        "invalid": sum(invalid.values()),
        "invalid_reasons": dict(invalid),
        "hinted": sum(said.hint is not None for said in answers),
        "cost": total_cost(answers, metered=teacher.metered),
        "paid": total_cost([said for said in answers if not said.cached], metered=teacher.metered),
        "seconds_p50": percentile(seconds, 0.5),
        "seconds_p95": percentile(seconds, 0.95),
        "cache_hits": sum(said.cached for said in answers),
    }


def _reason(said: TeacherAnswer) -> str:
    return said.answer.stop_reason if said.answer.stop_reason.startswith("refused") else "nothing to say"


def total_cost(answers: Sequence[TeacherAnswer], *, metered: bool) -> float | str:
    """US dollars of `answers`; a refused call counts as free, as providers bill none."""
    costs = [said.answer.cost for said in answers if said.answer.message is not None]
    known = [cost for cost in costs if cost is not None]
    if metered and len(known) < len(costs):
        return "unknown"
    return round(math.fsum(known), 9)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value with at least `share` of `ordered` at or below it (nearest rank); None of nothing."""
    if not ordered:
        return None
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 6)
