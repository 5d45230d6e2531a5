"""Make training rows from traces and replayed steps: rows to imitate, preference pairs, hinted rows.

Every row is redacted before it is written, and says which trace, step, rule and teachers it comes from. What gave no
row is counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from postgrad.core.errors import ConfigError
from postgrad.core.record import Record
from postgrad.run.config import Config
from postgrad.signals.preferences import Made
from postgrad.teachers.replay import ReplayedStep
from postgrad.verbs.command import verb_command

RECORDS = "records.jsonl"
Kind = Literal["sft", "preference", "recovery", "hinted", "verified", "taken"]
FROM_TRACES: frozenset[Kind] = frozenset({"recovery", "hinted", "verified", "taken"})


class BuildConfig(Config):
    """What to build from what."""

    store: Path | None = None
    """trace store, for hinted, verified and taken rows and recoveries"""
    replayed: Path | None = None
    """replayed.jsonl, for rows to imitate and preference pairs"""
    kinds: tuple[Kind, ...] = ("sft", "preference", "recovery", "hinted")
    """which rows to make; verified and taken imitate the store's own actions: those that a verifier passed, and those
    at which no error site lies"""
    imitate: Literal["majority", "gold"] = "majority"
    """whose action an sft row teaches: the teachers' majority, or the gold teacher"""


CONFIG = BuildConfig
Redact = Callable[[ReplayedStep], ReplayedStep]


def run(config: BuildConfig, out: Path) -> dict[str, Any]:
    """Write records.jsonl and count what became of everything.

    Raises:
        ConfigError: neither a store nor replayed steps are given.
        DataError: an input is missing or broken.
    """
    from postgrad.signals.records import row_content, write_records
    from postgrad.traces.redact import Redactor

    if config.store is None and config.replayed is None:
        raise ConfigError("nothing to build from", expected="--store or --replayed")
    redactor = Redactor()
    counts: Counter[str] = Counter()
    drops: dict[str, Counter[str]] = {}
    kept: dict[str, Record] = {}
    for kind, made in rows(config, redactor.redact):
        if made.record is None:
            drops.setdefault(kind, Counter())[made.dropped or "unknown"] += 1
            continue
        record = redactor.redact(made.record)
        key = row_content(record)
        if key in kept:
            drops.setdefault(kind, Counter())["duplicate"] += 1
            continue
        kept[key] = record
        counts[kind] += 1
    write_records(out / RECORDS, kept.values())
    return {
        "records": {"total": len(kept), **{kind: counts[kind] for kind in config.kinds}},
        "dropped": {kind: dict(sorted(reasons.items())) for kind, reasons in drops.items()},
        "redactions": dict(sorted(redactor.counts.items())),
        "path": str(out / RECORDS),
    }


def rows(config: BuildConfig, redact: Redact) -> Iterator[tuple[Kind, Made]]:
    """Every row or reason, with its kind."""
    if config.replayed is not None:
        yield from _from_replayed(config, config.replayed, redact)
    if config.store is not None:
        yield from _from_traces(config, config.store)


def _from_replayed(config: BuildConfig, path: Path, redact: Redact) -> Iterator[tuple[Kind, Made]]:
    from postgrad.signals.preferences import build_imitations, build_pairs
    from postgrad.signals.records import read_lines

    # Before actions are compared: a secret is one mark in the student's action and in a teacher's answer.
    steps = [redact(step) for step in read_lines(path, ReplayedStep)]
    if "sft" in config.kinds:
        yield from _of("sft", build_imitations(steps, gold=config.imitate == "gold"))
    if "preference" in config.kinds:
        yield from _of("preference", build_pairs(steps))


def _from_traces(config: BuildConfig, folder: Path) -> Iterator[tuple[Kind, Made]]:
    from postgrad.signals.hinted import build_hinted
    from postgrad.signals.imitation import build_taken, build_verified
    from postgrad.signals.preferences import build_recoveries
    from postgrad.signals.sites import find_sites
    from postgrad.traces.store import Store

    for trace in Store(folder).traces():
        if trace.for_evaluation:
            yield from ((kind, Made(dropped="evaluation")) for kind in config.kinds if kind in FROM_TRACES)
            continue
        sites = find_sites(trace)
        if "recovery" in config.kinds:
            yield from _of("recovery", build_recoveries(trace, sites))
        if "hinted" in config.kinds:
            yield from _of("hinted", build_hinted(trace, sites))
        if "verified" in config.kinds:
            yield from _of("verified", build_verified(trace))
        if "taken" in config.kinds:
            yield from _of("taken", build_taken(trace, sites))


def _of(kind: Kind, made: Iterable[Made]) -> Iterator[tuple[Kind, Made]]:
    return ((kind, one) for one in made)


def show(result: dict[str, Any]) -> Any:
    """Show how many rows of each kind there are, and why others are not."""
    from rich.table import Table

    table = Table(title=f"{result['records']['total']} rows in {result['path']}", title_justify="left")
    for column in ("kind", "rows", "dropped"):
        table.add_column(column)
    for kind, count in result["records"].items():
        if kind != "total":
            reasons = ", ".join(f"{number} {reason}" for reason, number in result["dropped"].get(kind, {}).items())
            table.add_row(kind, str(count), reasons)
    return table


command = verb_command("build", CONFIG, run, help=__doc__.splitlines()[0], show=show)
