"""Ask teachers what they would have done at the steps of recorded traces.

Answers are kept in the run folder's cache as they arrive, so the same command after a crash pays for nothing twice.
With --plan nothing is asked: it says what a replay would cost. Writes replayed.jsonl (a step a line), calls.jsonl (what
left when, and what it cost), sent.json (what went where), and doubts/ (how unsure `voi.student` is at each step). After
Ctrl-C and SIGTERM, which let calls under way end first (`replay_signals`), the result is in interrupted.json.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.actor import Sampling
from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.files import write_json
from postgrad.core.trace import Step
from postgrad.core.words import counted
from postgrad.run.inputs import paths_in
from postgrad.run.progress import track
from postgrad.run.rundir import RunDir
from postgrad.teachers.boundary import AskRedactor
from postgrad.teachers.cassette import Recorder
from postgrad.teachers.gateway import Gateway
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.providers.failures import OUTSIDE
from postgrad.teachers.replay import ReplayedStep, Teacher, replay
from postgrad.teachers.report import what_was_sent
from postgrad.verbs import replay_notes
from postgrad.verbs.command import verb_command
from postgrad.verbs.replay_config import ReplayConfig
from postgrad.verbs.replay_signals import ending
from postgrad.verbs.replay_table import show
from postgrad.verbs.selection import Prospects, Steps, TemplateHints, fit_steps, worthy_steps
from postgrad.verbs.teachers import Setting, gateway_of, make_teachers

REPLAYED, SENT, DOUBTS = "replayed.jsonl", "sent.json", "doubts"
RESULT, INTERRUPTED = "result.json", "interrupted.json"  # only a complete run has the first
_FAILED, _MISTAKEN = 3, 2  # exit codes: a teacher that nobody could reach; one that will never answer as it is


CONFIG = ReplayConfig


def run(config: ReplayConfig, out: Path) -> dict[str, Any]:
    """Plan, and unless only that was asked for, replay the selected steps and write replayed.jsonl.

    Raises:
        ConfigError: a teacher cannot be made, its price is not known, or an endpoint refuses it.
        DataError: the store has no step to replay.
        OutsideFailure: Ctrl-C or SIGTERM ended it early; what is there is kept.
    """
    result = run_or_part(config, out)
    if result.get("interrupted"):
        of = f"{result['steps']} of {counted(result['selected'], 'step')}"
        raise OutsideFailure(f"{result['interrupted']} ended the replay after {of}, which are kept")
    return result


def run_or_part(config: ReplayConfig, out: Path) -> dict[str, Any]:
    """As `run`; a replay that was interrupted says so in its result, which is that of the steps that were answered."""
    from postgrad.teachers.money.prices import kept_seconds
    from postgrad.teachers.plan import Plan
    from postgrad.traces.storage.store import Store

    RunDir(out).record_inputs(paths_in(config.resolved(), outside=out))
    desk = _Desk.of(config, out)
    store = Store(config.store)
    steps = _selected(config, out, store, desk)
    if not steps:
        mistakes = ": --steps sites finds no mistake to learn from in it" if config.steps == "sites" else ""
        do = "`postgrad show STORE` lists its traces and mistakes; --steps all takes every step"
        raise DataError(f"the store has no step to replay{mistakes}", got=str(config.store), do=do)
    keeps = kept_seconds(config.calls.prices)
    plan = Plan(steps, desk.teachers, desk.sampling, logged=logged_tokens, keeps=keeps).add(store.traces()).told()
    replay_notes.tell_of_prompt_caches(plan)
    if config.plan:
        return _planned(config, steps, plan)
    (out / INTERRUPTED).unlink(missing_ok=True)
    with ending(desk.gateway, desk.teachers, desk.sampling) as heard:
        replayed = _replayed(config, out, desk, steps)
    result = _result(config, out, desk, steps, plan, replayed)
    return {**result, "interrupted": heard.name if len(replayed) < result["selected"] else None}


def logged_tokens(step: Step) -> tuple[int | None, int | None]:
    """Input and output tokens that the step's log says its own model counted, where it says so."""
    from postgrad.traces.contexts.size import logged_input, logged_output

    usage = next((candidate.usage for candidate in step.candidates if candidate.chosen), {})
    return logged_input(usage), logged_output(usage)


@dataclass(frozen=True)
class _Desk:
    """Everything that a replay works with."""

    gateway: Gateway
    teachers: list[Teacher]
    sampling: Sampling
    recorders: dict[str, Recorder]

    @classmethod
    def of(cls, config: ReplayConfig, out: Path) -> _Desk:
        from postgrad.traces.redaction.redactor import Redactor

        cache = config.calls.cache or out / "cache"
        calls = config.calls
        release = calls.release and not config.plan
        gateway = gateway_of(out, cache, budget=config.budget, concurrency=calls.concurrency, release=release)
        redact = AskRedactor(Redactor())
        setting = Setting(
            cache,
            gateway,
            redact,
            TemplateHints(),
            prices=config.calls.prices,
            concurrency=config.calls.concurrency,
            local_only=config.local_only,
            keys=not config.plan,
        )
        teachers = make_teachers(config.teachers, setting)
        tapes = {t.name: Recorder(t.tape, redact) for t in config.teachers if t.tape and t.kind != "cassette"}
        return cls(gateway, teachers, Sampling(**config.sampling.model_dump()), tapes)

    def record(self, step: ReplayedStep) -> None:
        """Put a step's answers on the tapes of those who are recorded."""
        for teacher in self.teachers:
            recorder, said = self.recorders.get(teacher.name), step.answers[teacher.name]
            if recorder is not None:
                ask = msgspec.structs.replace(step.ask, hint=said.hint)
                recorder.add(ask, teacher.sampling(self.sampling), said.answer)


def _selected(config: ReplayConfig, out: Path, store: Any, desk: _Desk) -> Steps:
    from postgrad.verbs.student import Student

    if config.steps != "voi":
        return fit_steps(store.traces(), which=config.steps, limit=config.limit)
    budget = desk.gateway.budget
    free = budget.limit is None or all(teacher.price.free for teacher in desk.teachers)
    left = None if free else max(0.0, (budget.limit or 0.0) - budget.paid - budget.uncertain)
    student = Student(config.voi, out / DOUBTS) if config.voi.student else None
    prospects = list(track(Prospects(desk.teachers, desk.sampling, student).of(store), "steps"))
    return worthy_steps(prospects, config.voi, money=left, limit=config.limit)


def _replayed(config: ReplayConfig, out: Path, desk: _Desk, steps: Steps) -> list[ReplayedStep]:
    from postgrad.signals.rows.records import write_records
    from postgrad.traces.storage.store import Store

    local = any(not isinstance(teacher.actor, NetworkTeacher) for teacher in desk.teachers)
    group = config.calls.batch if local else max(config.calls.batch, 16 * config.calls.concurrency)
    replayed: list[ReplayedStep] = []
    stop, traces = desk.gateway.stop, Store(config.store).traces()
    asked = replay(traces, steps, desk.teachers, desk.sampling, batch=group, stop=stop)
    try:
        for step in track(asked, "replay", sum(map(len, steps.values()))):
            desk.record(step)
            replayed.append(step)
    finally:
        write_json(out / SENT, what_was_sent(desk.teachers, desk.gateway.journal))
    replay_notes.tell_of_left_out_steps(out / REPLAYED, replayed)
    write_records(out / REPLAYED, replayed)
    return replayed


def _planned(config: ReplayConfig, steps: Steps, plan: dict[str, dict[str, Any]]) -> dict[str, Any]:
    total = _total(plan, "cost")
    return {
        "plan": True,
        "steps": sum(map(len, steps.values())),
        "calls": sum(one["calls"] for one in plan.values()),
        "cached": sum(one["cached"] for one in plan.values()),
        "planned_cost": total,
        "planned_uncached": _total(plan, "cost_uncached"),
        "planned_most": _total(plan, "most"),
        "cost": 0.0,
        "stopped_by_budget": config.budget is not None and total > config.budget,
        "errors": {},
        "teachers": {name: {**one, "p50": None, "p95": None, "p99": None} for name, one in plan.items()},
    }


def _result(
    config: ReplayConfig,
    out: Path,
    desk: _Desk,
    steps: Steps,
    plan: dict[str, dict[str, Any]],
    replayed: Sequence[ReplayedStep],
) -> dict[str, Any]:
    from postgrad.teachers.report import errors_of, per_trace, report

    journal, budget = desk.gateway.journal, desk.gateway.budget
    teachers = report(replayed, desk.teachers, journal)
    replay_notes.tell_of_broken_calls(budget.uncertain)
    replay_notes.tell_of_an_overrun(budget)
    replay_notes.tell_of_the_bill(plan, teachers)
    return {
        "selected": sum(map(len, steps.values())),
        "steps": len(replayed),
        "calls": sum(one["calls"] for one in teachers.values()),
        "cached": sum(one["cached"] for one in teachers.values()),
        "planned_cost": _total(plan, "cost"),
        "planned_uncached": _total(plan, "cost_uncached"),
        "planned_most": _total(plan, "most"),
        "cost": _total(teachers, "cost"),
        "paid_in_all_runs": round(budget.paid, 9),
        "uncertain": round(budget.uncertain, 9),
        "stopped_by_budget": budget.stopped or budget.overrun > 0,
        "errors": errors_of(replayed),
        "teachers": {name: {**one, "planned_cost": plan[name]["cost"]} for name, one in teachers.items()},
        "traces": per_trace(replayed, journal.this_run()),
        "replayed": str(out / REPLAYED),
        "sent": str(out / SENT),
    }


def _total(parts: Mapping[str, Mapping[str, Any]], key: str) -> float:
    return round(math.fsum(one[key] for one in parts.values()), 9)


def exit_code(result: dict[str, Any]) -> int:
    """128 and the signal's number after an interrupted replay, which is not complete.

    3, and the error line, where a teacher could not be reached for a single answer: it may work later. 2, and the line,
    where one answered nothing for a reason that will stay: another model answers, or every request is refused.
    """
    if result.get("interrupted"):
        folder = Path(result["replayed"]).parent
        (folder / RESULT).replace(folder / INTERRUPTED)
        replay_notes.tell_of_the_interruption(result, folder)
        return 128 + int(signal.Signals[result["interrupted"]])
    silent = {name: one for name, one in result["teachers"].items() if one.get("errors") and not one.get("answers")}
    unreached = {name: one for name, one in silent.items() if set(one["errors"]) <= OUTSIDE}
    replay_notes.tell_of_the_useless({name: one for name, one in silent.items() if name not in unreached})
    if unreached:
        replay_notes.tell_of_the_unreached(unreached, Path(result["replayed"]).parent)
    return _FAILED if unreached else _MISTAKEN if silent else 0


command = verb_command(
    "replay",
    CONFIG,
    run_or_part,
    help=__doc__.splitlines()[0],
    show=show,
    positional="store",
    revisable=True,
    exit_code=exit_code,
)
