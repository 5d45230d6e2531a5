"""What a replay says aloud beside its result, where money may be other than the user thinks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postgrad.run.progress import note

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
