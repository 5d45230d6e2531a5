"""Score a model on held-out tasks, with n and standard error.

Benchmarks are named "environment/split[:n]"; "constrained" answers, under the grammar of the offered tools, are a
benchmark of their own ("...@constrained") and exist only where tools are offered. A benchmark that cannot be measured
here (its data is not installed, no prompt fits the model) is reported as unmeasured, with the reason.

Items are kept in items.jsonl as they come; the same command in the same run folder goes on. traces.jsonl holds the
transcripts: they are of held-out tasks, for looking at and never for training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from postgrad import __version__
from postgrad.core.actor import Actor, Sampling
from postgrad.core.errors import ConfigError, UserError
from postgrad.core.files import write_text
from postgrad.core.report import Report, Score, Unmeasured
from postgrad.core.task import Task
from postgrad.evaluate.benchmarks import Benchmark, Mode
from postgrad.run.config import Config
from postgrad.verbs.command import verb_command
from postgrad.verbs.tables import Rows

if TYPE_CHECKING:
    from postgrad.envs.environment import Environment
    from postgrad.evaluate.runner import Measurement


class EvaluateConfig(Config):
    """Which model, on what, and how it answers."""

    model: str
    """short name, model or adapter folder, or hub id"""
    benchmarks: Annotated[tuple[str, ...], Field(min_length=1)]
    """environment/split[:n], such as function_calling/heldout:60, bfcl/simple_python, retention/facts"""
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] = ("free",)
    """free running, and under the tools' grammar (constrained)"""
    max_new_tokens: Annotated[int, Field(ge=1)] = 128
    """most tokens of an answer; an environment that needs fewer lowers it"""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy"""
    seed: int = 0
    """draws the n tasks, and the answers at a temperature above 0"""
    batch: Annotated[int, Field(ge=1)] = 16
    """tasks answered at once"""
    device: str = "cpu"
    """torch device"""
    dtype: Literal["float32", "bfloat16", "auto"] = "float32"
    """precision of the weights"""


CONFIG = EvaluateConfig


@dataclass(frozen=True)
class Plan:
    """One benchmark with its tasks at hand."""

    benchmark: Benchmark
    environment: Environment
    tasks: Sequence[Task]


def run(config: EvaluateConfig, out: Path) -> dict[str, Any]:
    """Measure every benchmark in every mode that applies; write report.json and traces.jsonl.

    Raises:
        ConfigError: unknown model, environment or split, or two benchmarks of one name.
        OutsideFailure: the model or a grader cannot be reached.
    """
    from postgrad.evaluate.reports import REPORT, write_report

    plans, gaps = plan(config)
    notes = _known_before(config, plans)
    asked = [(one, mode) for one in plans for mode in _modes(config, one)]
    results = _measured(config, asked, out / "items.jsonl") if asked else []
    scores: dict[str, Score] = {}
    traces: list[str] = []
    for (one, mode), result in zip(asked, results, strict=True):
        if isinstance(result, Unmeasured):
            gaps.append(result)
        else:
            scores[result.score.benchmark] = result.score
            traces += _transcripts(config, one, result, sampling=_sampling(config, one, mode))
    report = Report(config.model, scores, tuple(gaps))
    write_report(out / REPORT, report)
    write_text(out / "traces.sources.jsonl", "".join(f"{line}\n" for line in traces))
    return {**_result(report, out / REPORT), "notes": notes, "traces": str(out / "traces.sources.jsonl")}


def plan(config: EvaluateConfig) -> tuple[list[Plan], list[Unmeasured]]:
    """Read every benchmark's tasks before any model is loaded; what cannot be read is unmeasured."""
    from postgrad.envs.environment import load_environment

    benchmarks = [Benchmark.parse(text) for text in config.benchmarks]
    doubled = [name for name, count in Counter(one.key("free") for one in benchmarks).items() if count > 1]
    if doubled:
        raise ConfigError("benchmark named twice", got=doubled[0], expected="one entry a benchmark")
    plans: list[Plan] = []
    gaps: list[Unmeasured] = []
    for benchmark in benchmarks:
        environment = load_environment(benchmark.environment)
        try:
            tasks = environment.tasks(benchmark.split, benchmark.n, config.seed)
        except ConfigError:
            raise
        except UserError as error:  # its data or library is not on this machine
            gaps.extend(Unmeasured(benchmark.key(mode), str(error)) for mode in config.modes)
        else:
            plans.append(Plan(benchmark, environment, tasks))
    return plans, gaps


def _known_before(config: EvaluateConfig, plans: Sequence[Plan]) -> list[str]:
    """What the model may know already; kept with the result."""
    from postgrad.evaluate.trained_on import Asked, trained_on

    asked = [Asked(one.environment, one.benchmark.split, one.tasks) for one in plans]
    return trained_on(Path(config.model).expanduser(), asked)


def load_actor(config: EvaluateConfig) -> tuple[Actor, str]:
    """Load the model as an actor, with the content hash of its weights."""
    from postgrad.models.actor import PolicyActor
    from postgrad.models.policy import load_policy

    policy = load_policy(config.model, device=config.device, dtype=config.dtype)
    return PolicyActor(policy, config.model), f"{weights_of(config.model)}, {config.dtype}"


def weights_of(model: str) -> str:
    """Content hash of a model folder, an adapter's with that of its base; a hub id stands for itself."""
    from postgrad.models.adapter.folder import ADAPTER_CONFIG, base_of
    from postgrad.models.resolve import resolve_model
    from postgrad.run.inputs import input_hash

    source = resolve_model(model)
    if not isinstance(source, Path):
        return f"named {source}"
    base = f" on {weights_of(base_of(source))}" if (source / ADAPTER_CONFIG).exists() else ""
    return f"{input_hash(source)[:16]}{base}"


def _grader(environment: Environment) -> str:
    """Name the grader's version; an environment that keeps none of its own has the package's."""
    return f"{environment.name} {getattr(environment, 'version', f'postgrad {__version__}')}"


def _modes(config: EvaluateConfig, one: Plan) -> list[Mode]:
    """The modes that differ here: without tools there is no grammar to hold an answer to."""
    tools = any(task.tools for task in one.tasks)
    return [mode for mode in config.modes if mode == "free" or tools]


def _measured(
    config: EvaluateConfig, asked: Sequence[tuple[Plan, Mode]], store: Path
) -> list[Measurement | Unmeasured]:
    """A result for every benchmark in its mode; those that sample in the same way are measured together."""
    from postgrad.evaluate.runner import Conditions, Measurement, Part, measure

    actor, weights = load_actor(config)
    parts: dict[Sampling, list[tuple[int, Part]]] = {}
    for place, (one, mode) in enumerate(asked):
        conditions = Conditions(
            weights=weights,
            grader=_grader(one.environment),
            subset=one.benchmark.subset(config.seed),
            batch=config.batch,
            store=store,
        )
        part = Part(one.benchmark.key(mode), one.environment, one.tasks, conditions)
        parts.setdefault(_sampling(config, one, mode), []).append((place, part))
    results: dict[int, Measurement | Unmeasured] = {}
    for sampling, together in parts.items():
        measured = measure(actor, [part for _, part in together], sampling=sampling)
        for (place, part), result in zip(together, measured, strict=True):
            results[place] = result if isinstance(result, Measurement) else Unmeasured(part.benchmark, str(result))
    return [results[place] for place in range(len(asked))]


def _sampling(config: EvaluateConfig, one: Plan, mode: Mode) -> Sampling:
    limit = min(config.max_new_tokens, getattr(one.environment, "answer_tokens", config.max_new_tokens))
    return Sampling(config.temperature, limit, config.seed, mode == "constrained")


def _transcripts(config: EvaluateConfig, one: Plan, measured: Measurement, *, sampling: Sampling) -> list[str]:
    """Give the capture lines of the answers."""
    from postgrad.evaluate.transcripts import transcripts
    from postgrad.traces.capture import lines

    traces = transcripts(config.model, one.environment, one.tasks, measured.answers, sampling)
    return [line for trace in traces for line in lines(trace)]


def _result(report: Report, path: Path) -> dict[str, Any]:
    # What was asked for and not measured has its place too, without a number: a cycle's summary may refer to it.
    gaps = {gap.benchmark: {"accuracy": None, "stderr": None, "n": 0} for gap in report.unmeasured}
    return {
        "model": report.model,
        "scores": gaps | {name: _summary(score) for name, score in report.scores.items()},
        "unmeasured": [{"benchmark": gap.benchmark, "reason": gap.reason} for gap in report.unmeasured],
        "report": str(path),
    }


def _summary(score: Score) -> dict[str, Any]:
    from postgrad.evaluate.pairing import score_interval

    low, high = score_interval(score)
    outcomes = Counter(item.outcome for item in score.items)
    summary = {"accuracy": score.mean, "stderr": score.stderr, "n": score.n, "low": low, "high": high}
    return {**summary, "outcomes": dict(sorted(outcomes.items()))}


def show(result: dict[str, Any]) -> Any:
    """Show a table of scores with their intervals, and what was not measured."""
    from rich.console import Group
    from rich.text import Text  # in a string, square brackets would be markup

    rows = []
    for name, one in result["scores"].items():
        if one["accuracy"] is not None:
            # The interval and n say how sure it is; a standard error of 0.0 % for none of 40 would say too much.
            interval = f"{100 * one['low']:.1f} to {100 * one['high']:.1f}"
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in one["outcomes"].items())
            rows.append((name, f"{100 * one['accuracy']:.1f} %", interval, str(one["n"]), outcomes))
    columns, numbers = ("benchmark", "mean", "95 % interval", "n", "outcomes"), ("mean", "95 % interval", "n")
    table = Rows(columns, rows, title=result["model"], numbers=numbers, flexible=("outcomes",))
    gaps = [Text(f"unmeasured: {gap['benchmark']}: {gap['reason']}") for gap in result["unmeasured"]]
    return Group(table, *gaps, *(Text(f"note: {told}") for told in result.get("notes", ())))


command = verb_command("evaluate", CONFIG, run, help=__doc__.splitlines()[0], show=show)
