"""The gate on hand-made reports, and its error rates by simulation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.report import Score, Unmeasured, Verdict
from postgrad.evaluate.gates import GatePolicy, gate
from postgrad.run.config import load
from unit.evaluate.reports_by_hand import first, report, score

TARGET = GatePolicy(targets=("t",))
GUARDED = GatePolicy(targets=("t",), guards=("g",))


def judge(before: Score, after: Score, policy: GatePolicy = TARGET) -> Verdict:
    return gate(report(before), report(after), policy)


def test_no_op_candidate_iterates() -> None:
    same = score("t", first(30, 60))
    verdict = judge(same, same)
    assert verdict.decision == "iterate"
    assert verdict.comparisons[0].difference == 0
    assert "t shows no gain" in verdict.reasons[0]


def test_good_candidate_is_promoted() -> None:
    """0 of 60 before, 30 of 60 after: 30 fixed, none broken; guard unchanged on 100 items."""
    guard = score("g", first(70, 100))
    verdict = gate(report(score("t", first(0, 60)), guard), report(score("t", first(30, 60)), guard), GUARDED)
    assert verdict.passed
    target, kept = verdict.comparisons
    assert (target.verdict, kept.verdict) == ("superior", "non_inferior")
    assert (len(target.fixed), target.broken, target.difference) == (30, (), 0.5)


def test_sabotaged_candidate_is_rolled_back() -> None:
    """A model that lost 25 of 30 right answers; and one that gains on the target but ruins a guard."""
    assert judge(score("t", first(30, 60)), score("t", first(5, 60))).decision == "rollback"
    before = report(score("t", first(0, 60)), score("g", first(70, 100)))
    after = report(score("t", first(50, 60)), score("g", first(30, 100)))
    verdict = gate(before, after, GUARDED)
    assert verdict.decision == "rollback"
    assert verdict.reasons[0] == "rollback: g got worse"


def test_a_guard_that_cannot_tell_holds_the_candidate_and_says_how_many_items_would() -> None:
    """10 items without a flip: the one-sided bound is -2.7055 / 12.7055 = -0.213, below the margin of 5 points.

    With variance 0.5 / 10 and an effect of the margin, n = 6.1826 * 0.05 / 0.0025 = 123.7 -> 124 items.
    """
    guard = score("g", first(7, 10))
    verdict = gate(report(score("t", first(0, 60)), guard), report(score("t", first(30, 60)), guard), GUARDED)
    assert verdict.decision == "iterate"
    assert verdict.comparisons[1].verdict == "inconclusive"
    assert verdict.comparisons[1].items_needed == 124
    assert "about 114 more items would tell (124 in all)" in verdict.reasons[2]


def test_margin_of_a_benchmark_overrides_the_general_one() -> None:
    """60 items without a flip: bound -2.7055 / 62.7055 = -0.0431, between margins of 4 and 5 points."""
    guard, before, after = score("g", first(40, 60)), score("t", first(0, 60)), score("t", first(30, 60))
    strict = GatePolicy(targets=("t",), guards=("g",), margins={"g": 0.04})
    assert gate(report(before, guard), report(after, guard), GUARDED).passed
    assert gate(report(before, guard), report(after, guard), strict).decision == "iterate"


def test_small_true_loss_is_no_rollback() -> None:
    """1,000 items, 20 broken, none fixed: surely worse, but by 2 points, less than half of the margin."""
    verdict = judge(score("t", first(520, 1000)), score("t", first(500, 1000)))
    assert verdict.decision == "iterate"
    assert verdict.comparisons[0].verdict == "non_inferior"
    wider = GatePolicy(targets=("t",), margin=0.03)
    assert judge(score("t", first(520, 1000)), score("t", first(500, 1000)), wider).decision == "rollback"


def test_holm_covers_the_family() -> None:
    """6 broken, none fixed of 100 (6 points): one-sided mid-p 1/128 = 0.0078, times 7 benchmarks 0.055 > 0.05."""
    names = [f"g{i}" for i in range(6)]
    same = [score(name, first(70, 100)) for name in names]
    before, after = score("t", first(50, 100)), score("t", first(44, 100))
    family = GatePolicy(targets=("t",), guards=tuple(names))
    assert judge(before, after).decision == "rollback"
    assert gate(report(before, *same), report(after, *same), family).decision == "iterate"


def test_unmeasured_is_never_promoted_and_says_why() -> None:
    gap = [Unmeasured("g", "bfcl-eval is not installed")]
    verdict = gate(report(score("t", first(0, 60)), unmeasured=gap), report(score("t", first(60, 60))), GUARDED)
    assert verdict.decision == "iterate"
    assert verdict.comparisons[1].verdict == "unmeasured"
    assert verdict.reasons[0] == "iterate: g was not measured"
    assert "the parent has no score: bfcl-eval is not installed" in verdict.reasons[2]


def test_infrastructure_errors_above_one_percent_decide_nothing() -> None:
    """2 of 100 lost is 2 %: neither a promotion nor a rollback can come of it; 1 of 100 is accepted."""
    before = score("t", first(10, 100))
    after = score("t", first(90, 100), outcomes={0: "infra_error", 1: "infra_error"})
    verdict = judge(before, after)
    assert verdict.decision == "iterate"
    assert "infrastructure errors lost 2.0% of the items" in verdict.reasons[1]
    assert judge(after, before).decision == "iterate"
    assert judge(before, score("t", first(90, 100), outcomes={0: "infra_error"})).passed


def test_a_gain_that_truncation_could_explain_is_no_gain() -> None:
    """The parent was cut off in 50 of 60 answers and right in 9 of the 10 that it finished; the candidate in 54.

    Credited with the upper bound of 9 of 10 (98 %) the parent is as good, so nothing is shown.
    """
    before = score("t", first(9, 60), outcomes=dict.fromkeys(range(10, 60), "truncated"))
    verdict = judge(before, score("t", first(54, 60)))
    assert verdict.decision == "iterate"
    assert "cut-off answers (83% of the parent's, 0% of the candidate's) could explain" in verdict.reasons[1]


def test_a_gain_beyond_truncation_is_promoted() -> None:
    """As above, but none of the 30 finished answers was right: their upper bound, 11 %, explains no 90 %."""
    before = score("t", first(0, 60), outcomes=dict.fromkeys(range(30), "truncated"))
    assert judge(before, score("t", first(54, 60))).passed


def test_a_candidate_that_no_longer_ends_is_rolled_back() -> None:
    after = score("t", first(0, 60), outcomes=dict.fromkeys(range(60), "truncated"))
    assert judge(score("t", first(30, 60)), after).decision == "rollback"


def test_pairing_goes_by_id_and_leaves_out_what_one_side_lacks() -> None:
    """Items in another order pair by id; a prompt too long for one side is in no difference."""
    before, after = score("t", first(0, 60)), score("t", first(40, 60))
    turned = Score(after.benchmark, after.mean, after.stderr, after.n, after.items[::-1], after.settings)
    assert judge(before, turned) == judge(before, after)
    missing = judge(before, score("t", first(40, 60), outcomes={59: "too_long"}))
    assert missing.comparisons[0].n == 59


@pytest.mark.parametrize(("setting", "value"), [("grader", "g 2"), ("max_new_tokens", "128"), ("prompts", "q")])
def test_other_settings_are_refused(setting: str, value: str) -> None:
    other = score("t", first(30, 60), settings={setting: value})
    with pytest.raises(DataError, match=f"measured differently in '{setting}'"):
        judge(score("t", first(0, 60)), other)


def test_another_number_of_tasks_is_told_with_both_and_with_what_to_do() -> None:
    """40 and 60 tasks drawn: their prompts differ because of that, and a hash of them would help nobody."""
    before = score("a/b", first(0, 40), settings={"subset": "40 drawn with seed 0", "prompts": "9f3c"})
    after = score("a/b", first(0, 60), settings={"subset": "60 drawn with seed 0", "prompts": "77e1"})
    with pytest.raises(DataError) as told:
        judge(before, after, GatePolicy(targets=("a/b",)))
    assert str(told.value) == (
        "a/b: parent and candidate were measured differently in 'subset' (parent: n=40, subset 40 drawn with seed 0; "
        "candidate: n=60, subset 60 drawn with seed 0); evaluate both on the same tasks: --benchmarks a/b:N with one "
        "N, and one --seed"
    )


def test_other_weights_and_batch_sizes_are_the_point() -> None:
    other = score("t", first(30, 60), settings={"weights": "x", "batch": "1"})
    assert judge(score("t", first(0, 60)), other).passed


def test_other_items_are_refused() -> None:
    with pytest.raises(DataError, match=r"parent \(n=60\) and candidate \(n=59\) were measured on different"):
        judge(score("t", first(0, 60)), score("t", first(0, 59)))


def test_policy_refuses_a_benchmark_in_two_roles() -> None:
    with pytest.raises(ConfigError, match="one role"):
        load(GatePolicy, None, {"targets": ["t"], "guards": ["t"]})
    with pytest.raises(ConfigError, match="neither target nor guard"):
        load(GatePolicy, None, {"targets": ["t"], "margins": {"x": 0.1}})


def _decisions(up: float, down: float, *, n: int, runs: int, seed: int) -> Counter[str]:
    """Decisions for a guard whose items flip up and down with these probabilities, beside a target that gains."""
    rng = np.random.default_rng(seed)
    gained = score("t", first(0, 60)), score("t", first(40, 60))
    seen: Counter[str] = Counter()
    for _ in range(runs):
        before = (rng.random(n) < 0.6).astype(float)
        flips = rng.random(n)
        after = np.where(before == 1, np.where(flips < down / 0.6, 0.0, 1.0), np.where(flips < up / 0.4, 1.0, 0.0))
        reports = (report(gained[0], score("g", before.tolist())), report(gained[1], score("g", after.tolist())))
        seen[gate(*reports, GUARDED).decision] += 1
    return seen


@pytest.mark.slow
def test_error_rates_of_the_guard() -> None:
    """An identical model (10 % of the items flip) is rolled back in under 5 % of the runs; one that is truly worse by
    the margin passes in about alpha = 5 % of them (bare thresholds: 13 % and half, see the module's docstring).
    """
    runs = 400
    identical = _decisions(0.05, 0.05, n=164, runs=runs, seed=1)
    assert identical["rollback"] / runs <= 0.05
    assert identical["promote"] / runs >= 0.5  # power for a margin of 5 points at n = 164: 0.67
    worse = _decisions(0.025, 0.075, n=280, runs=runs, seed=2)
    assert worse["promote"] / runs <= 0.08


def test_error_rate_of_promotion() -> None:
    """A target without a true gain is promoted in about alpha / 2 of the runs."""
    rng = np.random.default_rng(5)
    promoted = 0
    for _ in range(300):
        flips = rng.choice([0, 1, 2], size=100, p=[0.8, 0.1, 0.1])
        before = np.where(flips == 2, 1.0, 0.0)
        after = np.where(flips == 1, 1.0, 0.0)
        promoted += judge(score("t", before.tolist()), score("t", after.tolist())).passed
    assert promoted / 300 <= 0.045


def test_a_misspelt_benchmark_is_answered_with_the_nearest_measured_one() -> None:
    measured = report(score("t", first(0, 60)), score("retention/facts", first(70, 100)))
    verdict = gate(measured, measured, GatePolicy(targets=("t",), guards=("retention/fact",)))
    assert verdict.reasons[2].endswith("it was not evaluated (did you mean 'retention/facts'?)")
