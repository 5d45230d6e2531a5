"""Let a model act on an environment's tasks and record every run as a trace.

Rollouts are training material, so only an environment's training splits are open here (`postgrad evaluate` is for the
others). Batches are kept as they come, and traces.jsonl is put together from them at the end; the same command in the
same run folder goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from pydantic import Field

from postgrad.core.actor import Actor, Sampling
from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError
from postgrad.core.files import write_bytes, write_text
from postgrad.core.task import Task
from postgrad.core.trace import Trace
from postgrad.core.words import counted
from postgrad.run.config import Config
from postgrad.run.progress import track
from postgrad.verbs.command import verb_command
from postgrad.verbs.tables import Rows

if TYPE_CHECKING:
    from postgrad.envs.environment import Environment


class SamplingConfig(Config):
    """How answers are drawn."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy"""
    max_new_tokens: Annotated[int, Field(ge=1)] = 128
    """most tokens of an answer"""
    constrained: bool = False
    """hold answers to the grammar of the offered tools"""


class RolloutConfig(Config):
    """Which model, on which tasks."""

    model: str
    """short name, model or adapter folder, or hub id; "gold" lets the gold answers act, as a teacher"""
    environment: str = "function_calling"
    """where tasks, tools and grades come from"""
    split: str = "train"
    """one of the environment's training splits"""
    n: Annotated[int, Field(ge=1)] | None = None
    """tasks; the environment's own number by default"""
    seed: int = 0
    """chooses the tasks, and the answers at a temperature above 0"""
    sampling: SamplingConfig = SamplingConfig()
    """how answers are drawn"""
    max_turns: Annotated[int, Field(ge=1)] = 1
    """turns a task; with more than 1 a refused call may be repaired"""
    batch: Annotated[int, Field(ge=1)] = 16
    """tasks answered at once"""
    device: str = "cpu"
    """torch device"""
    benchmarks: tuple[str, ...] = ()
    """environment/split of benchmarks that the tasks must not overlap with: tool names, word sequences, templates"""


CONFIG = RolloutConfig
GOLD = "gold"


class Batch(msgspec.Struct, frozen=True):
    """What is kept of a finished batch: trace lines and, per task, the score and the kind of error."""

    lines: tuple[str, ...]
    outcomes: tuple[tuple[float, str | None], ...]


def run(config: RolloutConfig, out: Path) -> dict[str, Any]:
    """Roll out all tasks, batch by batch, and write traces.jsonl.

    Raises:
        ConfigError: unknown model, environment or split, or a split that is for evaluation only.
        OutsideFailure: the model cannot be reached or the disk is full; finished batches are kept.
    """
    from postgrad.envs import load_environment, training_tasks

    environment = load_environment(config.environment)
    tasks = training_tasks(environment, config.split, config.n, config.seed)
    overlaps = {name: refuse_overlap(tasks, name) for name in config.benchmarks}
    actor, weights = load_actor(config, tasks)
    batches = roll(config, environment, tasks, actor=actor, identity=weights, folder=out / "batches")
    traces = out / "traces.sources.jsonl"
    write_text(traces, "".join(f"{line}\n" for batch in batches for line in batch.lines))
    outcomes = [outcome for batch in batches for outcome in batch.outcomes]
    errors = Counter(error for _, error in outcomes if error)
    return {
        "n": len(outcomes),
        "accuracy": sum(score for score, _ in outcomes) / len(outcomes),
        "errors": dict(errors.most_common()),
        "overlap": overlaps,
        "traces": str(traces),
    }


def refuse_overlap(tasks: Sequence[Task], name: str) -> dict[str, int]:
    """Counts of overlap with a benchmark, all zero.

    Raises:
        DataError: there is some; it names the first finding.
    """
    from postgrad.data.overlap import overlap
    from postgrad.envs import load_environment

    environment, _, split = name.partition("/")
    report = overlap(tasks, load_environment(environment).tasks(split))
    if not report.clean:
        first = report.findings[0]
        raise DataError(
            f"training tasks overlap with {name}: {report.counts}",
            got=f"{first.training} with {first.benchmark} ({first.kind}: {first.evidence})",
            do="leave these tasks out; a benchmark is never trained on",
        )
    return report.counts


def roll(
    config: RolloutConfig, environment: Environment, tasks: Sequence[Task], *, actor: Actor, identity: str, folder: Path
) -> list[Batch]:
    """All batches, those that `folder` holds already read from there.

    A batch's file is named by all that decides its content (tasks, sampling, weights), so an old file never stands in
    for another run's.
    """
    from postgrad.envs import rollout

    batches: list[Batch] = []
    parts = [tasks[i : i + config.batch] for i in range(0, len(tasks), config.batch)]
    for number, part in enumerate(track(parts, f"rollout {config.environment}/{config.split}", size=len)):
        drawn = Sampling(seed=config.seed + number, **config.sampling.resolved())
        about = [identity, environment.version, msgspec.to_builtins((part, drawn)), config.max_turns]
        path = folder / f"{number:05d}-{content_id(about)}.json"
        if not path.exists():
            traces = rollout(actor, environment, part, drawn, max_turns=config.max_turns)
            write_bytes(path, msgspec.json.encode(_kept(traces)))
        batches.append(msgspec.json.decode(path.read_bytes(), type=Batch))
    return batches


def load_actor(config: RolloutConfig, tasks: Sequence[Task]) -> tuple[Actor, str]:
    """Load the model as an actor, with a name of its weights for the batches' files."""
    if config.model == GOLD:
        from postgrad.envs import GoldActor

        return GoldActor(tasks), GOLD
    from postgrad.models.actor import PolicyActor
    from postgrad.models.policy import load_policy
    from postgrad.models.resolve import resolve_model
    from postgrad.run.inputs import input_hash

    source = resolve_model(config.model)
    weights = input_hash(source) if isinstance(source, Path) else source
    policy = load_policy(config.model, device=config.device)
    return PolicyActor(policy, config.model), weights


def _kept(traces: Sequence[Trace]) -> Batch:
    from postgrad.traces.capture import lines

    return Batch(tuple(line for trace in traces for line in lines(trace)), tuple(map(_outcome, traces)))


def _outcome(trace: Trace) -> tuple[float, str | None]:
    """Score and error kind of the last action; a run without one scores 0."""
    if not trace.steps:
        return 0.0, "no_answer"
    feedback = trace.steps[-1].feedback[-1]
    assert feedback.value is not None, "a rollout's feedback has a score"
    return feedback.value, feedback.text.partition(":")[0] or None


def show(result: dict[str, Any]) -> Any:
    """Show accuracy and the kinds of error."""
    rows = [("right", str(result["n"] - sum(result["errors"].values())))]
    rows += [(kind, str(count)) for kind, count in result["errors"].items()]
    title = f"{counted(result['n'], 'rollout')} in {result['traces']}"
    return Rows(("outcome", "runs"), rows, title=title, numbers=("runs",), flexible=("outcome",))


command = verb_command("rollout", CONFIG, run, help=__doc__.splitlines()[0], show=show)
