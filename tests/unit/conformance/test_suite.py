"""The suite itself, and every case of ours against its value by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner

from postgrad.conformance import PEERS, suite
from postgrad.conformance.__main__ import main
from postgrad.conformance.case import Case
from postgrad.conformance.suite import difference, load_cases, require_peers, run_suite
from postgrad.core.errors import ConfigError, UserError
from postgrad.objectives.advantages import ADVANTAGES
from postgrad.objectives.policy_objectives import OBJECTIVES

CASES = load_cases()
MADE_UP = Case("made/up", "nowhere", "1 + 1", (2.0, None), lambda: [2.0, None])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ours_is_what_the_paper_says(case: Case):
    assert difference(case.expected, list(case.ours())) <= case.tolerance, case.by_hand


def test_every_objective_and_estimator_has_a_case():
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    assert {f"policy/{name}" for name in OBJECTIVES} | {f"advantage/{name}" for name in ADVANTAGES} <= names
    assert {peer for case in CASES for peer in (*case.peers, *case.notes)} <= set(PEERS)


def test_a_wrong_number_fails_and_is_named():
    wrong = replace(MADE_UP, name="made/wrong", ours=lambda: [2.1, None])
    missing = replace(MADE_UP, name="made/short", ours=lambda: [2.0])
    result = run_suite([MADE_UP, wrong, missing], [])
    assert result["failed"] == ["made/wrong", "made/short"]
    assert [row["ok"] for row in result["rows"]] == [True, False, False]
    assert result["rows"][1]["error"] == pytest.approx(0.05)
    assert result["peers"] == {}


def test_differences():
    """Absolute below 1, relative above; what is not a number, or not there, is infinitely far."""
    assert difference([0.5, 100.0], [0.6, 101.0]) == pytest.approx(0.1)
    assert difference([100.0], [101.0]) == pytest.approx(0.01)
    assert difference([1.0], [math.nan]) == difference([None], [1.0]) == difference([1.0], []) == math.inf
    assert difference([None], [None]) == difference([], []) == 0


def test_a_peer_that_differs_is_told_and_fails_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(suite, "version", lambda name: "9.9")
    told = replace(MADE_UP, peers={"trl": lambda: [math.nan, None]}, notes={"trl": "0/0"})
    result = run_suite([told, replace(told, name="made/right", peers={"trl": told.ours}), MADE_UP], ["trl"])
    assert result["failed"] == []
    (differs, agrees) = result["peers"]["trl"]
    assert (differs["agrees"], differs["got"], differs["error"], differs["note"]) == (False, ["nan", None], None, "0/0")
    assert (agrees["agrees"], agrees["version"]) == (True, "9.9")
    json.dumps(result, allow_nan=False)


def test_a_peer_that_is_not_there_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> str:
        raise suite.PackageNotFoundError(name)

    monkeypatch.setattr(suite, "version", absent)
    with pytest.raises(UserError, match=r"verl is not installed; run: pip install .*verl==.*; or --peers none"):
        require_peers(["verl"])
    with pytest.raises(ConfigError, match="unknown peer"):
        require_peers(["nobody"])
    done = CliRunner().invoke(main, ["--json", "--only", "advantage/rloo", "--peers", "trl"])
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["type"] == "UserError"


def test_peers_that_nobody_asked_for_are_measured_where_they_are(monkeypatch: pytest.MonkeyPatch):
    """Without one on the machine ours is measured all the same, and what to install is said beside it."""

    def only_trl(name: str) -> str:
        if name == "trl":
            return "9.9"
        raise suite.PackageNotFoundError(name)

    monkeypatch.setattr(suite, "version", only_trl)
    result = run_suite([replace(MADE_UP, peers={"trl": MADE_UP.ours, "verl": MADE_UP.ours})])
    assert [row["version"] for row in result["peers"]["trl"]] == ["9.9"]
    assert result["peers"]["verl"] == []
    assert list(result["not_installed"]) == ["verl"]
    done = CliRunner().invoke(main, ["--only", "advantage/rloo"])
    assert done.exit_code == 0
    assert "verl is not installed and was not measured; run: pip install" in done.stdout


def test_the_command_line_prints_one_json_object():
    done = CliRunner().invoke(main, ["--json", "--peers", "none", "--only", "advantage/"])
    result = json.loads(done.stdout)
    assert done.exit_code == 0
    assert set(result) == {"rows", "failed", "peers", "not_installed"}
    assert len(result["rows"]) == sum(case.name.startswith("advantage/") for case in CASES)
    assert "16 of 16 cases" in CliRunner().invoke(main, ["--peers", "none", "--only", "advantage/"]).stdout
    assert CliRunner().invoke(main, ["--peers", "none", "--only", "policy/dappo"]).exit_code == 2
