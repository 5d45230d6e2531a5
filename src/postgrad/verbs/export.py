"""`postgrad export STORE --to openai|atif|sharegpt|inspect -o FILE`: traces in another tool's form, with what was lost.

Secrets are taken out once more before anything is written. Transcripts of evaluations are exported like all others and
are marked, in the form's own way, as what they are: nothing to train on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.words import counted
from postgrad.run.config import Config
from postgrad.run.progress import track
from postgrad.traces.exports import EXPORTS
from postgrad.verbs.command import verb_command
from postgrad.verbs.tables import Rows

if TYPE_CHECKING:
    from postgrad.core.trace import Trace
    from postgrad.traces.exports.exporter import Exporter, Losses

Form = Literal["openai", "atif", "sharegpt", "inspect"]


class ExportConfig(Config):
    """What to export, as what, and where to."""

    store: Path
    """the trace store"""
    to: Form
    """openai: JSON lines of messages; atif: Harbor's trajectories; sharegpt: JSON lines with Hermes' marks; inspect: an
    evaluation log"""
    output: Path
    """the file to write; for atif a path without suffix is a folder with one file a trajectory"""
    trace: tuple[str, ...] = ()
    """only these traces, by id or its beginning [all]"""
    reasoning: Literal["keep", "text", "drop"] = "keep"
    """openai: thoughts as reasoning_content, in the text as <think>, or left out"""
    stubs: bool = False
    """openai: give calls that have no result one that says so"""


CONFIG = ExportConfig


def run(config: ExportConfig, out: Path) -> dict[str, Any]:
    """Write the traces and count what their new form could not carry.

    Raises:
        DataError: no store, or no such trace.
        ConfigError: the output lies in the store.
        MissingDependency: the form needs a library that is not installed.
    """
    from postgrad.traces.exports.exporter import Losses
    from postgrad.traces.redaction.redactor import Redactor
    from postgrad.traces.storage.store import Store

    if config.store.resolve() in config.output.resolve().parents:
        raise ConfigError("the output lies in the store", got=str(config.output), do="give another -o")
    redactor, losses, told = Redactor(), Losses(), _Told()
    store = Store(config.store)
    traces = track(_wanted(store.traces(), _ids(store.ids(), config.trace)), "exporting traces")
    clean = (redactor.redact(trace) for trace in traces)
    rows = _exporter(config).write(told.watched(clean, losses), config.output, losses)
    if not told.traces:
        raise DataError("the store holds no trace to export", got=str(config.store))
    return {
        "to": config.to,
        "path": str(config.output),
        "rows": rows,
        "traces": told.traces,
        "steps": told.steps,
        "evaluation_traces": told.evaluations,
        "losses": {kind: count for kind, count in sorted(losses.items()) if count},
        "redactions": dict(sorted(redactor.counts.items())),
    }


def _exporter(config: ExportConfig) -> Exporter:
    from postgrad.run.plugins import resolve

    form = resolve("export", config.to, EXPORTS)
    exporter: Exporter = form(config.reasoning, config.stubs) if config.to == "openai" else form()
    return exporter


def _ids(known: frozenset[str], names: tuple[str, ...]) -> frozenset[str]:
    """The traces that are named, by whole ids or by beginnings that only one id has."""
    found = {name: [name] if name in known else [one for one in known if one.startswith(name)] for name in names}
    for name, ids in found.items():
        if len(ids) != 1:
            what = f"{len(ids)} traces begin like this" if ids else "no such trace in the store"
            raise DataError(what, got=name, do="see: postgrad show STORE")
    return frozenset(ids[0] for ids in found.values())


def _wanted(traces: Iterator[Trace], ids: frozenset[str]) -> Iterator[Trace]:
    return (trace for trace in traces if not ids or trace.id in ids)


class _Told:
    """Counts what goes by."""

    def __init__(self) -> None:
        self.traces = self.steps = self.evaluations = 0

    def watched(self, traces: Iterator[Trace], losses: Losses) -> Iterator[Trace]:
        """The traces that have a step: a form of messages has nothing to say about others."""
        for trace in traces:
            if not trace.steps:
                losses["traces without a step"] += 1
                continue
            self.traces += 1
            self.steps += len(trace.steps)
            self.evaluations += trace.for_evaluation
            yield trace


def show(result: dict[str, Any]) -> Any:
    """What was written, and a row for each kind of loss."""
    read = f"{counted(result['traces'], 'trace')}, {counted(result['steps'], 'step')}"
    rows = [(kind, str(count)) for kind, count in result["losses"].items()] or [("nothing", "0")]
    columns = ("what could not be carried", "times")
    title = f"{read} -> {result['path']} ({counted(result['rows'], 'row')})"
    return Rows(columns, rows, title=title, numbers=("times",), flexible=columns[:1])


command = verb_command(
    "export",
    CONFIG,
    run,
    help="Write traces in another tool's form, and say what that form could not carry.",
    show=show,
    positional="store",
    short={"-o": "output"},
    keeps_run=False,
)
