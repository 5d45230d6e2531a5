"""Make training rows from traces and replayed steps: pairs, hinted rows, rows to imitate, rows to distil.

Every row is redacted before it is written, and says which trace, step, rule and teachers it comes from, and why it
holds. What gave no row is counted by reason.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postgrad.core.words import counted
from postgrad.run.progress import note
from postgrad.verbs.build_config import RECIPES, BuildConfig, Kind
from postgrad.verbs.command import verb_command
from postgrad.verbs.tables import Rows

if TYPE_CHECKING:
    from postgrad.core.record import Record
    from postgrad.verbs import build_rows

RECORDS = "records.jsonl"
CONFIG = BuildConfig


def run(config: BuildConfig, out: Path) -> dict[str, Any]:
    """Write records.jsonl, count what became of everything, and say in sent.json what models were told.

    Raises:
        ConfigError: the inputs cannot feed what is to be built.
        DataError: an input is missing or broken.
    """
    from postgrad.signals.rows.records import row_content, write_records
    from postgrad.traces.redaction.redactor import Redactor
    from postgrad.verbs.build_models import Models
    from postgrad.verbs.build_rows import Rows as RowMaker

    kinds, lacking = config.chosen()
    for kind, need in lacking.items():
        note(f"no {kind} rows: they need {need}")
    redactor = Redactor()
    models = Models(config, out)
    rows = RowMaker(config, models, redactor.redact)
    counts: Counter[str] = Counter()
    drops: dict[str, Counter[str]] = {}
    kept: dict[str, Record] = {}
    try:
        for kind, made in rows.of(kinds):
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
    finally:
        sent = models.record_sent()
    write_records(out / RECORDS, kept.values())
    if not kept:
        why = "what is told of each kind says why"
        note(f"no row was made; {why}" if drops or rows.passed_over else "no row was made: nothing here calls for one")
    return _result(rows, out, list(kept.values()), counts, drops, kinds) | {
        "left_out": lacking,
        "redactions": dict(sorted(redactor.counts.items())),
        "sent": str(sent) if sent is not None else None,
    }


def _result(
    rows: build_rows.Rows,
    out: Path,
    kept: list[Record],
    counts: Counter[str],
    drops: dict[str, Counter[str]],
    kinds: list[Kind],
) -> dict[str, Any]:
    result = {
        "records": {"total": len(kept), **{kind: counts[kind] for kind in dict.fromkeys([*kinds, *counts])}},
        "rules": dict(sorted(Counter(row.provenance.rule for row in kept).items())),
        "dropped": {kind: dict(sorted(reasons.items())) for kind, reasons in drops.items()},
        "passed_over": {kind: dict(sorted(reasons.items())) for kind, reasons in rows.passed_over.items()},
        "costs": rows.costs(sum(row.rejected is not None and row.provenance.cost != 0 for row in kept)),
        "path": str(out / RECORDS),
    }
    if rows.levels.counts:
        result["levels"] = dict(sorted(rows.levels.counts.items()))
    if rows.config.hints.student and rows.gate is not None:
        gains = rows.gate.gains
        mean = sum(gains) / len(gains) if gains else None
        result["effect"] = {**dict(sorted(rows.gate.measured.items())), "mean_gain": mean}
    return result


def show(result: dict[str, Any]) -> Any:
    """Show how many rows of each kind there are, and what gave none."""
    passed_over = result.get("passed_over", {})
    rows = []
    for kind, count in result["records"].items():
        if kind != "total":
            reasons = [f"{number} {reason}" for reason, number in result["dropped"].get(kind, {}).items()]
            other = [f"{number} {what}" for what, number in passed_over.get(kind, {}).items() if number]
            told = [", ".join(reasons), f"passed over: {', '.join(other)}" if other else ""]
            rows.append((kind, str(count), "; ".join(part for part in told if part)))
    title = f"{counted(result['records']['total'], 'row')} in {result['path']}"
    return Rows(("kind", "rows", "no row"), rows, title=title, numbers=("rows",), flexible=("no row",))


command = verb_command(
    "build",
    CONFIG,
    run,
    help=__doc__.splitlines()[0],
    show=show,
    positional="store",
    recipe_names=tuple(RECIPES),
)
