"""What a verb's result came to, on one line: the number that one would ask for first, and where its work lies.

A verb without an entry in `BRIEF` (a module of the user's own) is told by the first plain facts of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from postgrad.core.words import counted

Result = Mapping[str, Any]

_MADE = ("artifact", "store", "path", "replayed", "report", "captured", "captures", "champion", "traces")
"""Keys of results that name what was made; the first that is there is the one to go on with."""


def in_brief(verb: str, result: Result) -> str:
    """The line; of a result that lacks what the verb's line needs (an older version's), the first plain facts."""
    try:
        told = BRIEF[verb](result) if verb in BRIEF else ""
    except (KeyError, TypeError):
        told = ""
    return told or brief(result)


def made(result: Result) -> str:
    """Where what the verb made lies; empty where it made nothing."""
    return next((str(result[key]) for key in _MADE if isinstance(result.get(key), str)), "")


def brief(result: Result, *, shown: int = 5) -> str:
    """The first few facts of a result: plain values (no paths), lengths of lists, numbers one level down."""
    return ", ".join(islice(_facts(result), shown))


def short(value: Any) -> str:
    """A value as it stands in a line of facts."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return counted(len(value), "item")
    if isinstance(value, list):
        return "; ".join(str(item) for item in value)
    return "-" if value is None else str(value)


def _facts(result: Result) -> Iterator[str]:
    for key, value in result.items():
        if isinstance(value, list):
            yield counted(len(value), key.removesuffix("s"), key)
        elif isinstance(value, Mapping):
            inner = {name: number for name, number in value.items() if isinstance(number, (int, float))}
            yield from (f"{name} {short(number)}" for name, number in inner.items())
        elif value is not None and not (isinstance(value, str) and "/" in value):
            yield f"{key} {short(value)}"


def _evaluate(result: Result) -> str:
    return ", ".join(f"{name} {_score(score)}" for name, score in result["scores"].items())


def _score(score: Result) -> str:
    return "unmeasured" if score["accuracy"] is None else f"{100 * score['accuracy']:.1f} % (n={score['n']})"


def _rollout(result: Result) -> str:
    worst = sorted(result["errors"].items(), key=lambda item: -item[1])[:2]
    failed = f"; {', '.join(f'{count} {name}' for name, count in worst)}" if worst else ""
    return f"{counted(result['n'], 'answer')}, {100 * result['accuracy']:.1f} % right{failed}"


def _ingest(result: Result) -> str:
    return f"{counted(len(result['sources']), 'source')}, {counted(len(result['sites']), 'error site')}"


def _replay(result: Result) -> str:
    if result.get("plan"):
        return f"plan: {counted(result['calls'], 'call')} at {counted(result['steps'], 'step')}"
    cost = f", {result['cost']:.2f} US dollars" if result.get("cost") else ""
    return f"{counted(result['steps'], 'step')} asked about{cost}"


def _build(result: Result) -> str:
    kinds = [f"{count} {kind}" for kind, count in result["records"].items() if kind != "total" and count]
    return f"{counted(result['records']['total'], 'row')}{': ' if kinds else ''}{', '.join(kinds)}"


def _train(result: Result) -> str:
    loss = result["last"].get("loss")
    return counted(result["steps"], "step") + (f", loss {loss:.4g} at last" if loss is not None else "")


def _gate(result: Result) -> str:
    judged = (f"{one['benchmark']} {one['verdict'].replace('_', '-')}" for one in result["comparisons"])
    return f"{result['decision']}: {', '.join(judged)}"


def _cycle(result: Result) -> str:
    stages = result["stages"]
    done = sum(stage["status"] in ("ran", "kept") for stage in stages)
    return f"{done} of {counted(len(stages), 'stage')}{'' if result['passed'] else ', a gate said no'}"


BRIEF: Mapping[str, Callable[[Result], str]] = {
    "ingest": _ingest,
    "replay": _replay,
    "build": _build,
    "rollout": _rollout,
    "train": _train,
    "evaluate": _evaluate,
    "gate": _gate,
    "cycle": _cycle,
    "demo": _cycle,
}
"""Verb -> its line."""
