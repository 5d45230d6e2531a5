"""What each teacher did in a replay, and what each trace took: answers, errors, cost, tokens, latency, cache hits.

Answers, latency and tokens are of the replayed steps, wherever their answers were. Calls and cost are of this run, from
its journal, so they also hold what was paid for steps that the budget left unfinished.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from postgrad.teachers.journal import Journal, Line
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.replay import ReplayedStep, Teacher, TeacherAnswer
from postgrad.teachers.validity import CUT_OFF, invalid_reason

_DOLLARS = 9  # digits
TOO_LONG = "too_long"
"""Stop reason of a local model that was asked more than its context holds (`models.actor`)."""


def report(
    replayed: Sequence[ReplayedStep], teachers: Iterable[Teacher], journal: Journal | None = None
) -> dict[str, dict[str, Any]]:
    """Per teacher, plain JSON.

    Args:
        replayed: the steps with their answers.
        teachers: who was asked.
        journal: of the run folder.

    `cost` is what this run paid in US dollars, `value` what the answers cost whenever they were bought, `uncertain`
    what may have been billed for calls that broke off in any run of the folder. `price_as_of` is the day of the price
    table that its price is from, null for a price that the user gave. `truncated` answers hit their limit of tokens:
    nobody learns from them. `too_long` steps do not fit in a local model's context, so that it gave no answer. `errors`
    counts asks that nobody answered, by kind; `retries` tries that failed. p50, p95 and p99 are seconds per answer.
    """
    journal = journal or Journal()
    uncertain = journal.uncertain_of()
    return {
        teacher.name: _one(replayed, teacher, journal.this_run(), uncertain.get(teacher.name, 0.0))
        for teacher in teachers
    }


def per_trace(replayed: Sequence[ReplayedStep], lines: Sequence[Line] = ()) -> dict[str, dict[str, Any]]:
    """Per trace: steps replayed, calls and US dollars of this run, cache hits, errors by kind, tokens, latency."""
    traces: dict[str, list[ReplayedStep]] = {}
    for step in replayed:
        traces.setdefault(step.trace, []).append(step)
    for line in lines:
        traces.setdefault(line.trace, [])
    return {trace: _trace(trace, steps, lines) for trace, steps in traces.items() if trace}


def errors_of(replayed: Sequence[ReplayedStep]) -> dict[str, int]:
    """Asks that nobody answered, by kind."""
    said = [answer for step in replayed for answer in step.answers.values()]
    return dict(sorted(Counter(one.answer.error for one in said if one.answer.error).items()))


def _trace(trace: str, steps: Sequence[ReplayedStep], lines: Sequence[Line]) -> dict[str, Any]:
    own = [line for line in lines if line.trace == trace]
    said = [answer for step in steps for answer in step.answers.values()]
    return {
        "steps": len(steps),
        "calls": sum(line.outcome == "answered" for line in own),
        "cached": sum(one.cached for one in said),
        "cost": dollars(line.cost for line in own),
        "errors": errors_of(steps),
        **_tokens(said),
        **_latency(said),
    }


def _one(replayed: Sequence[ReplayedStep], teacher: Teacher, lines: Sequence[Line], uncertain: float) -> dict[str, Any]:
    given = [(step, step.answers[teacher.name]) for step in replayed if teacher.name in step.answers]
    answers = [answer for _, answer in given]
    silent = [said for said in answers if said.answer.message is None]
    invalid = Counter(
        reason
        for step, said in given
        if said.answer.message is not None and (reason := invalid_reason(said.answer.message, step.ask.tools))
    )
    return {
        "kind": teacher.kind,
        "models": sorted({said.answer.model for said in answers}),
        "answers": len(answers) - len(silent),
        "abstentions": len(silent),
        "refusals": dict(Counter(_reason(said) for said in silent)),
        "truncated": sum(said.answer.message is not None and said.answer.stop_reason in CUT_OFF for said in answers),
        "too_long": sum(said.answer.stop_reason == TOO_LONG for said in silent),
        "invalid": sum(invalid.values()),
        "invalid_reasons": dict(invalid),
        "hinted": sum(said.hint is not None for said in answers),
        "errors": dict(sorted(Counter(said.answer.error for said in silent if said.answer.error).items())),
        "cached": sum(said.cached for said in answers),
        **_calls(answers, teacher, [line for line in lines if line.teacher == teacher.name]),
        "uncertain": dollars([uncertain]),
        "price_as_of": teacher.price.as_of,
        **_tokens(answers),
        **_latency(answers),
    }


def _calls(answers: Sequence[TeacherAnswer], teacher: Teacher, lines: Sequence[Line]) -> dict[str, Any]:
    network = isinstance(teacher.actor, NetworkTeacher)
    made = sum(line.outcome == "answered" for line in lines) if network else sum(not said.cached for said in answers)
    failed = Counter(line.outcome for line in lines if line.event == "settled" and line.outcome != "answered")
    return {
        "calls": made,
        "retries": dict(sorted(failed.items())),
        "cost": dollars(line.cost for line in lines),
        "value": dollars(said.answer.cost or 0.0 for said in answers),
    }


def _tokens(answers: Sequence[TeacherAnswer]) -> dict[str, Any]:
    return {
        "tokens_in": sum(said.answer.prompt_tokens for said in answers),
        "tokens_out": sum(said.answer.completion_tokens for said in answers),
        "tokens_cached": sum(said.answer.cached_tokens for said in answers),
    }


def _latency(answers: Sequence[TeacherAnswer]) -> dict[str, float | None]:
    seconds = sorted(said.answer.seconds for said in answers if said.answer.message is not None)
    return {f"p{share}": percentile(seconds, share / 100) for share in (50, 95, 99)}


def _reason(said: TeacherAnswer) -> str:
    return "nothing to say" if said.answer.stop_reason == "stop" else said.answer.stop_reason


def dollars(amounts: Iterable[float]) -> float:
    """A sum of US dollars, to a billionth."""
    return round(math.fsum(amounts), _DOLLARS)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value with at least `share` of `ordered` at or below it (nearest rank); None of nothing."""
    if not ordered:
        return None
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 6)


def what_was_sent(teachers: Iterable[Teacher], journal: Journal) -> dict[str, Any]:
    """Per teacher: where it is, and every request that left for it in any run: hash, host, bytes, what became of it."""
    ends = {line.call: line for line in journal.lines if line.event == "settled"}
    sent: dict[str, Any] = {}
    for teacher in teachers:
        if not isinstance(teacher.actor, NetworkTeacher):
            sent[teacher.name] = {"kind": teacher.kind, "where": "this machine", "requests": []}
            continue
        own = [line for line in journal.lines if line.event == "sent" and line.teacher == teacher.name]
        rows = [_row(line, ends.get(line.call)) for line in own]
        sent[teacher.name] = {
            "kind": teacher.kind,
            "where": sorted({line.host for line in own}),
            "model": teacher.actor.endpoints[0].provider.model,
            "bytes": sum(line.bytes for line in own),
            "tries": len(rows),
            "requests": rows,
        }
    return sent


def _row(line: Line, end: Line | None) -> dict[str, Any]:
    outcome = end.outcome if end is not None else "under way"
    known = {"time": line.time, "host": line.host, "trace": line.trace, "request": line.request, "bytes": line.bytes}
    return {**known, "outcome": outcome}
