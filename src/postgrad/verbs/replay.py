"""Ask teachers what they would have done at the steps of recorded traces.

By default only at error sites. Answers are kept in the run folder's cache as they arrive, so the same command after a
crash pays for nothing twice. Writes replayed.jsonl (a step a line) and sent.json (what went where, after redaction).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from postgrad.core.actor import Sampling
from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.core.files import write_json
from postgrad.core.trace import Step, Trace
from postgrad.run.config import Config
from postgrad.run.progress import track
from postgrad.teachers.replay import ReplayedStep, Teacher, replay
from postgrad.verbs.command import verb_command
from postgrad.verbs.teachers import TeacherConfig, make_teachers

REPLAYED = "replayed.jsonl"


class SamplingConfig(Config):
    """How teachers answer."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy"""
    max_new_tokens: Annotated[int, Field(ge=1)] = 256
    """most tokens of an answer"""
    seed: int = 0
    """of the sampling, where a teacher takes one"""


class ReplayConfig(Config):
    """Which steps, which teachers."""

    store: Path
    """trace store to read"""
    teachers: tuple[TeacherConfig, ...] = ()
    """who is asked"""
    select: Literal["sites", "all"] = "sites"
    """steps at error sites, or every step"""
    limit: Annotated[int, Field(ge=1)] | None = None
    """most steps to replay"""
    sampling: SamplingConfig = SamplingConfig()
    """how teachers answer"""
    budget: float | None = None
    """most US dollars that this run may pay; needs known prices"""
    batch: Annotated[int, Field(ge=1)] = 32
    """steps asked at once"""
    cache: Path | None = None
    """folder of answers [cache/ in the run folder]"""


CONFIG = ReplayConfig


def run(config: ReplayConfig, out: Path) -> dict[str, Any]:
    """Replay the selected steps and write replayed.jsonl.

    Raises:
        ConfigError: a teacher cannot be made, or a budget cannot be kept.
        DataError: the store has no step to replay.
        OutsideFailure: a teacher cannot be reached; the same command goes on.
    """
    from postgrad.signals.records import write_records
    from postgrad.teachers.report import report
    from postgrad.traces.redact import Redactor
    from postgrad.traces.store import Store

    store, redactor = Store(config.store), Redactor()
    steps = select_steps(store.traces(), select=config.select, limit=config.limit)
    total = sum(map(len, steps.values()))
    if not total:
        raise DataError("the store has no step to replay", got=str(config.store), do="try --select all")
    cache = config.cache or out / "cache"
    teachers = make_teachers(config.teachers, cache=cache, redact=redactor.ask, template=template_for)
    sampling = Sampling(**config.sampling.model_dump())
    answered = _Answered(config, teachers, sampling)
    replayed = list(track(answered.steps(store.traces(), steps), "replay", total))
    write_records(out / REPLAYED, replayed)
    write_json(out / "sent.json", what_was_sent(config, replayed, redactor.ask))
    return {
        "selected": total,
        "steps": len(replayed),
        "stopped": answered.stopped,
        "teachers": report(replayed, teachers),
        "replayed": str(out / REPLAYED),
    }


def select_steps(traces: Iterator[Trace], *, select: str, limit: int | None) -> dict[str, list[int]]:
    """Trace id -> steps to replay, never of an evaluation; steps of unknown context and compactions are left out."""
    from postgrad.signals.sites import LEARNABLE, find_sites

    left = limit
    chosen: dict[str, list[int]] = {}
    for trace in traces:
        if trace.for_evaluation:
            continue
        wanted = {site.step for site in find_sites(trace) if site.verdict in LEARNABLE}
        fit = [step for step in trace.steps if step.can_be_learnt]
        found = [step.index for step in fit if select == "all" or step.index in wanted][:left]
        left = None if left is None else left - len(found)
        if found:
            chosen[trace.id] = found
        if left == 0:
            break
    return chosen


def template_for(trace: Trace, step: Step) -> str | None:
    """Hint for the first learnable mistake at `step`."""
    from postgrad.signals.hints import template_hint
    from postgrad.signals.sites import find_sites

    hints = (template_hint(site, trace) for site in find_sites(trace) if site.step == step.index)
    return next((hint for hint in hints if hint is not None), None)


class _Answered:
    """The replayed steps, up to the budget; `stopped` says why there are no more."""

    def __init__(self, config: ReplayConfig, teachers: Sequence[Teacher], sampling: Sampling) -> None:
        from postgrad.teachers.budget import Budget

        self.stopped: str | None = None
        self._config, self._teachers, self._sampling = config, teachers, sampling
        self._budget = None if config.budget is None else Budget(config.budget, teachers, sampling)

    def steps(self, traces: Iterator[Trace], steps: dict[str, list[int]]) -> Iterator[ReplayedStep]:
        from postgrad.teachers.budget import BudgetReached

        before = self._budget.check if self._budget else None
        batch = self._config.batch
        try:
            for step in replay(traces, steps, self._teachers, self._sampling, batch=batch, before=before):
                if self._budget:
                    self._budget.pay(step)
                yield step
        except BudgetReached:
            self.stopped = f"the next steps might go over the budget of {self._config.budget} US dollars"


def what_was_sent(config: ReplayConfig, replayed: Sequence[ReplayedStep], redact: Any) -> dict[str, Any]:
    """Per teacher: where it is, and the steps it was asked with the content id of the redacted ask."""
    sent: dict[str, Any] = {}
    for teacher in config.teachers:
        rows = []
        for step in replayed:
            ask = msgspec.structs.replace(step.ask, hint=step.answers[teacher.name].hint)
            left = redact(ask) if teacher.kind == "openai" else ask
            rows.append({"trace": step.trace, "step": step.step, "ask": content_id(msgspec.to_builtins(left))})
        where = teacher.endpoint.base_url if teacher.kind == "openai" else "this machine"
        sent[teacher.name] = {"kind": teacher.kind, "model": teacher.model, "where": where, "asks": rows}
    return sent


def show(result: dict[str, Any]) -> Any:
    """Show a table of teachers."""
    from rich.table import Table

    table = Table(title=f"{result['steps']} of {result['selected']} steps replayed", title_justify="left")
    columns = ("teacher", "what it is", "answers", "abstained", "invalid", "US dollars", "p50 s", "p95 s", "cached")
    for column in columns:
        table.add_column(column)
    for name, one in result["teachers"].items():
        cells = (one["kind"], one["answers"], one["abstentions"], one["invalid"], one["cost"], one["seconds_p50"])
        table.add_row(name, *(str(cell) for cell in (*cells, one["seconds_p95"], one["cache_hits"])))
    table.caption = result["stopped"]
    return table


command = verb_command("replay", CONFIG, run, help=__doc__.splitlines()[0], show=show)
