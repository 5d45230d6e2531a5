from __future__ import annotations

from typing import get_args

from postgrad.conformance import divergence_cases, preference_cases
from postgrad.objectives.preference import Objective


def test_every_preference_objective_has_a_case():
    names = {case.name for case in preference_cases.cases()}
    assert {f"preference/{name}" for name in get_args(Objective)} <= names


def test_both_ends_the_middle_and_every_support_have_a_case():
    names = {case.name.partition("/")[2] for case in divergence_cases.cases()}
    assert {"beta_0", "beta_half", "beta_1", "top_k_bucket", "top_k_renormalised", "sampled", "taid"} <= names
