"""`nearest`: what the user may have meant. No heavy import: the command line uses it before anything is loaded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def close(name: str, known: Iterable[str]) -> list[str]:
    """The closest of `known`, two at most; none where nothing is like `name`."""
    return difflib.get_close_matches(name, sorted(set(known)), n=2, cutoff=0.6)


def nearest(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """Say "did you mean 'x'?" with the closest of `known`, or the list of all of them; `prefix` is set before each."""
    names = sorted(set(known))
    if found := close(name, names):
        return "did you mean " + " or ".join(f"'{prefix}{match}'" for match in found) + "?"
    return "known: " + ", ".join(prefix + name for name in names) if names else "nothing is known here"
