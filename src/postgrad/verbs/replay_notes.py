"""What a replay says aloud beside its result, where money may be other than the user thinks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.errors import DataError
from postgrad.core.words import counted
from postgrad.run.progress import note
from postgrad.teachers.money.budget import Budget
from postgrad.teachers.replay import ReplayedStep

_OFF = 0.1  # of a planned price a call: from here on the difference is told
Teachers = Mapping[str, Mapping[str, Any]]


def tell_of_prompt_caches(plan: Teachers) -> None:
    """A discount that no bill has shown yet, with the price without it."""
    for name, one in plan.items():
        if one["cost"] < one["cost_uncached"] and one["prompt_cache"].endswith("assumed"):
            told = f"{name}: {one['cost']:.6f} US dollars if its prompt cache gives the discount of its price row"
            note(f"{told} ({one['prompt_cache']}); {one['cost_uncached']:.6f} if it finds nothing")


def tell_of_the_bill(plan: Teachers, teachers: Teachers) -> None:
    """Where the calls of this run cost more than planned, and whether it was the prompt cache."""
    for name, one in teachers.items():
        planned, calls = plan[name], one["calls"]
        if not calls or not planned["calls"] or not planned["cost"]:
            continue
        paid, expected = one["cost"] / calls, planned["cost"] / planned["calls"]
        if paid > (1 + _OFF) * expected:
            told = f"{name}: a call cost {paid:.6f} US dollars where {expected:.6f} were planned"
            cache = one["tokens_cached"] == 0 < planned["tokens_cached"]
            why = ": its bills name no cached tokens" if cache else ""
            note(f"{told}{why}; plans in this folder go by these bills from now on")


def tell_of_broken_calls(uncertain: float) -> None:
    """Money that may be gone."""
    if uncertain:
        told = f"calls that broke off may have been billed: up to {uncertain:.6f} US dollars"
        note(f"{told}, which count against the budget; --calls.release true once the provider's bill says otherwise")


def tell_of_an_overrun(budget: Budget) -> None:
    """Bills above what their calls could cost by the rules."""
    if budget.overrun:
        told = f"the bills came to {budget.paid:.6f} US dollars, {budget.overrun:.6f} above the budget"
        note(f"{told}: a provider billed more tokens than it was sent or allowed to write; after that nothing is asked")


class _Place(msgspec.Struct):
    """Which step a line of replayed.jsonl is about."""

    trace: str
    step: int


def tell_of_left_out_steps(path: Path, replayed: Sequence[ReplayedStep]) -> None:
    """Steps of an earlier run that the file at `path` will not hold any more."""
    from postgrad.signals.rows.records import read_lines

    earlier: set[tuple[str, int]] = set()
    with suppress(DataError):  # there is none, or what cannot be read is nobody's loss
        earlier.update((place.trace, place.step) for place in read_lines(path, _Place))
    left = len(earlier - {(step.trace, step.step) for step in replayed})
    if left:
        verb, whose = ("is", "its") if left == 1 else ("are", "their")
        told = f"{counted(left, 'step')} of the earlier run {verb} not among these {len(replayed)}"
        note(f"{told}: {whose} answers stay in the cache")


def tell_of_the_unreached(teachers: Teachers, folder: Path) -> None:
    """The error line of a replay that made its result, though not with everyone."""
    told = []
    for name, one in teachers.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in one["errors"].items())
        told.append(f"{name} could not be reached: 0 of {counted(one['abstentions'], 'step')} answered ({kinds})")
    again = f"to go on: postgrad replay --resume {shlex.quote(str(folder))}"
    note(f"error: {'; '.join(told)}; {again} (what was answered is not asked again)")


def tell_of_the_useless(teachers: Teachers) -> None:
    """The error line of each teacher that answered no step, and will not answer the same command later either."""
    for name, one in teachers.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in one["errors"].items())
        why = next(iter(one["refusals"])).removeprefix("error: ")
        do = f"; if it is what you want: accept: [{', '.join(one['models'])}]" if "wrong_model" in one["errors"] else ""
        note(f"error: {name}: 0 of {counted(one['abstentions'], 'step')} answered ({kinds}): {why}{do}")


def tell_of_the_interruption(result: Mapping[str, Any], folder: Path) -> None:
    """The last line of a replay that was ended early."""
    done = f"{result['steps']} of {counted(result['selected'], 'step')} replayed"
    again = f"to go on: postgrad replay --resume {shlex.quote(str(folder))}"
    note(f"interrupted: {done}, and every answer is kept; {again} (what was answered is not asked again)")
