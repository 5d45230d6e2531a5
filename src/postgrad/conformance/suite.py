"""Runs cases: ours, and peers beside them. What does not agree is told, never hidden in a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from postgrad.conformance import CASE_MODULES, PEERS
from postgrad.conformance.case import Case, Measure
from postgrad.core.errors import ConfigError, UserError
from postgrad.run.nearest import nearest


def load_cases(only: str = "") -> list[Case]:
    """All cases whose names begin with `only`.

    Raises:
        ConfigError: there is none.
    """
    found = [case for module in CASE_MODULES.values() for case in import_module(module).cases()]
    chosen = [case for case in found if case.name.startswith(only)]
    if not chosen:
        raise ConfigError("no conformance case of that name", got=only, do=nearest(only, [case.name for case in found]))
    return chosen


def require_peers(names: Sequence[str]) -> dict[str, str]:
    """Versions of the peers.

    Raises:
        ConfigError: an unknown peer.
        UserError: one that is not installed.
    """
    versions = {}
    for name in names:
        if name not in PEERS:
            raise ConfigError("unknown peer", got=name, expected=f"{', '.join(PEERS)} or none")
        found = _version(name)
        if found is None:
            raise UserError(f"{name} is not installed", do=f"run: {PEERS[name]}; or --peers none")
        versions[name] = found
    return versions


def installed_peers() -> dict[str, str]:
    """Versions of the peers that are installed."""
    return {name: found for name in PEERS if (found := _version(name)) is not None}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def run_suite(cases: Sequence[Case], peers: Sequence[str] | None = None) -> dict[str, Any]:
    """Measure `cases`: {"rows", "failed", "peers", "not_installed"} as plain data.

    Without `peers` those that are installed are measured; one that is not has no rows, and `not_installed` says what
    to do about it.

    Raises:
        ConfigError: an unknown peer.
        UserError: a peer that was asked for and is not installed.
    """
    versions = installed_peers() if peers is None else require_peers(peers)
    asked = list(PEERS if peers is None else peers)
    rows = [
        {"case": case.name, "source": case.source, "by_hand": case.by_hand, **_measured(case, case.ours, "ok")}
        for case in cases
    ]
    return {
        "rows": rows,
        "failed": [row["case"] for row in rows if not row["ok"]],
        "peers": {
            peer: [
                {"case": case.name, "source": case.source, "version": versions[peer]}
                | _measured(case, case.peers[peer], "agrees")
                | {"note": case.notes.get(peer, "")}
                for case in cases
                if peer in case.peers and peer in versions
            ]
            for peer in asked
        },
        "not_installed": {peer: f"run: {PEERS[peer]}" for peer in asked if peer not in versions},
    }


def _measured(case: Case, measure: Measure, verdict: str) -> dict[str, Any]:
    got = [None if value is None else float(value) for value in measure()]
    error = difference(case.expected, got)
    plain = [value if value is None or math.isfinite(value) else str(value) for value in got]  # JSON has no NaN
    told = error if math.isfinite(error) else None
    return {"expected": list(case.expected), "got": plain, "error": told, verdict: error <= case.tolerance}


def difference(expected: Sequence[float | None], got: Sequence[float | None]) -> float:
    """Largest difference of two lists, each over max(1, |expected|); infinite where they cannot be compared."""
    if len(expected) != len(got):
        return math.inf
    return max((_one(a, b) for a, b in zip(expected, got, strict=True)), default=0.0)


def _one(expected: float | None, got: float | None) -> float:
    if expected is None or got is None:
        return 0.0 if expected is got else math.inf
    error = abs(expected - got) / max(1.0, abs(expected))
    return math.inf if math.isnan(error) else error
