"""`gate`: may the candidate take the parent's place? One of three verdicts, from paired differences.

A bare threshold ("worse by 5 % -> roll back") fails identical models by chance and passes true losses half of the
time. Here each benchmark gives a paired difference with an interval, and "cannot tell" is a legal answer:

    regressed      a one-sided test finds a loss (Holm over all benchmarks) and it is at least half of the margin
    superior       the two-sided interval and test are above 0
    non_inferior   the one-sided lower bound is above -margin
    inconclusive   none of these; `items_needed` says how many items in all would tell
    unmeasured     a side has no score

    any regressed                                        -> rollback
    every target superior, every guard non-inferior      -> promote
    anything else                                        -> iterate, with the reason

Every guard must pass, so their tests need no correction (an intersection-union test is of level alpha by itself).
Too many infrastructure errors make a benchmark inconclusive. Where the shares of cut-off answers differ, a pass must
also hold when the parent's cut-off answers are credited with the upper bound of what its finished ones score, so that
brevity alone promotes nothing.
Not covered: repeated looks at one benchmark (the best of many checkpoints is luck: keep a last split for the end).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from postgrad.core.report import Comparison, Report, Unmeasured, Verdict
from postgrad.evaluate.pairing import Pairing
from postgrad.evaluate.policy import GatePolicy
from postgrad.evaluate.statistics import Paired, holm, items_to_detect, items_without_flips
from postgrad.run.nearest import nearest

__all__ = ["GatePolicy", "gate"]

Role = Literal["target", "guard"]
Measured = Literal["superior", "non_inferior", "inconclusive", "regressed"]

LEVEL = 0.95
"""Level of the interval that a report shows; decisions use the policy's alpha."""


@dataclass(frozen=True)
class _Judged:
    """A comparison and the sentence that explains it."""

    comparison: Comparison
    reason: str


def gate(parent: Report, candidate: Report, policy: GatePolicy) -> Verdict:
    """Compare two reports under `policy`.

    Raises:
        DataError: a benchmark was measured with other items, settings or another grader version.
    """
    roles: list[tuple[str, Role]] = [(name, "target") for name in policy.targets]
    roles += [(name, "guard") for name in policy.guards]
    pairings = {name: _pairing(name, parent, candidate) for name, _ in roles}
    usable = {name: pairing for name, pairing in pairings.items() if isinstance(pairing, Pairing) and pairing.both}
    worse = dict(zip(usable, holm([pair.paired().p_value("less") for pair in usable.values()]), strict=True))
    judged = [
        _judge(usable[name], role, policy, worse[name]) if name in usable else _unmeasured(name, role, pairings[name])
        for name, role in roles
    ]
    decision = _decide([one.comparison for one in judged])
    head = _headline(decision, [one.comparison for one in judged])
    return Verdict(decision, (head, *(one.reason for one in judged)), tuple(one.comparison for one in judged))


def _pairing(name: str, parent: Report, candidate: Report) -> Pairing | Unmeasured:
    for side, report in (("parent", parent), ("candidate", candidate)):
        if name not in report.scores:
            known = (gap.reason for gap in report.unmeasured if gap.benchmark == name)
            absent = f"it was not evaluated ({nearest(name, report.scores)})"
            return Unmeasured(name, f"the {side} has no score: {next(known, absent)}")
    return Pairing.of(parent.scores[name], candidate.scores[name])


def _unmeasured(name: str, role: Role, gap: Pairing | Unmeasured) -> _Judged:
    why = gap.reason if isinstance(gap, Unmeasured) else "no item has a score on both sides"
    return _Judged(Comparison(name, role, "unmeasured"), f"{name} ({role}): unmeasured, {why}")


def _judge(pairing: Pairing, role: Role, policy: GatePolicy, p_worse: float) -> _Judged:
    """Judge one benchmark; `p_worse` is Holm's adjusted p-value of a loss."""
    paired = pairing.paired()
    verdict, doubt = _verdict(pairing, policy, p_worse)
    needed = None if doubt else _items_needed(paired, role, verdict, policy, policy.margin_of(pairing.benchmark))
    low, high = paired.interval(LEVEL)
    comparison = Comparison(
        pairing.benchmark, role, verdict, paired.n, paired.difference, low, high,
        paired.p_value(), pairing.fixed, pairing.broken, needed,
    )  # fmt: skip
    return _Judged(comparison, _sentence(comparison, policy.margin_of(pairing.benchmark), doubt))


def _verdict(pairing: Pairing, policy: GatePolicy, p_worse: float) -> tuple[Measured, str]:
    """Give the verdict and, where the data decide nothing, why."""
    paired, margin = pairing.paired(), policy.margin_of(pairing.benchmark)
    if pairing.infra_errors > policy.max_infra_errors:
        return "inconclusive", f"infrastructure errors lost {pairing.infra_errors:.1%} of the items: evaluate again"
    if p_worse < policy.alpha and paired.difference <= -margin / 2:
        return "regressed", ""
    verdict = _passing(paired, margin, policy)
    before, after = pairing.cut_off
    if verdict == "inconclusive" or abs(before - after) <= policy.max_truncation_gap:
        return verdict, ""
    if _passing(pairing.paired(cautious=True), margin, policy) == verdict:
        return verdict, ""
    return "inconclusive", (
        f"cut-off answers ({before:.0%} of the parent's, {after:.0%} of the candidate's) could explain the "
        "difference: evaluate both with a larger max_new_tokens"
    )


def _passing(paired: Paired, margin: float, policy: GatePolicy) -> Measured:
    if paired.interval(1 - policy.alpha)[0] > 0 and paired.p_value() < policy.alpha:
        return "superior"
    if paired.interval(1 - 2 * policy.alpha)[0] > -margin:  # its lower end is the one-sided bound of level alpha
        return "non_inferior"
    return "inconclusive"


def _items_needed(paired: Paired, role: Role, verdict: str, policy: GatePolicy, margin: float) -> int | None:
    """Items in all after which the difference seen here, if true, would be told; None where nothing is open."""
    if verdict in ("superior", "regressed") or (role == "guard" and verdict == "non_inferior"):
        return None
    if role == "target":
        # Superiority is two-sided. With no gain seen, ask for what would show a gain of one margin.
        effect, alpha = (paired.difference if paired.difference > 0 else margin), policy.alpha / 2
    elif paired.difference > -margin:
        effect, alpha = margin + paired.difference, policy.alpha
    else:
        effect, alpha = -paired.difference, policy.alpha
    needed = items_to_detect(effect, variance=paired.variance, alpha=alpha, power=policy.power)
    return max(needed, items_without_flips(margin, alpha=policy.alpha), paired.n + 1)


def _decide(comparisons: Sequence[Comparison]) -> Literal["promote", "iterate", "rollback"]:
    if any(one.verdict == "regressed" for one in comparisons):
        return "rollback"
    passes = {"target": ("superior",), "guard": ("superior", "non_inferior")}
    return "promote" if all(one.verdict in passes[one.role] for one in comparisons) else "iterate"


def _headline(decision: str, comparisons: Sequence[Comparison]) -> str:
    """Why the decision is what it is, in one line."""
    by_verdict = {
        verdict: [one for one in comparisons if one.verdict == verdict]
        for verdict in ("regressed", "unmeasured", "inconclusive", "non_inferior")
    }
    if decision == "rollback":
        return f"rollback: {_names(by_verdict['regressed'])} got worse"
    if decision == "promote":
        return "promote: every target is better and no guard is worse by its margin"
    causes = []
    if by_verdict["unmeasured"]:
        causes.append(f"{_names(by_verdict['unmeasured'])} was not measured")
    if by_verdict["inconclusive"]:
        causes.append(f"{_names(by_verdict['inconclusive'])} is inconclusive")
    flat = [one for one in by_verdict["non_inferior"] if one.role == "target"]
    if flat:
        causes.append(f"{_names(flat)} shows no gain")
    return f"iterate: {'; '.join(causes)}"


def _names(comparisons: Sequence[Comparison]) -> str:
    return ", ".join(one.benchmark for one in comparisons)


def _sentence(one: Comparison, margin: float, doubt: str) -> str:
    """One benchmark in words: "name (role): verdict, difference (interval, n, p, flips), what is open"."""
    assert one.difference is not None
    assert one.low is not None
    assert one.high is not None
    assert one.p_value is not None
    text = (
        f"{one.benchmark} ({one.role}): {one.verdict.replace('_', '-')}, {100 * one.difference:+.1f} points "
        f"({LEVEL:.0%} interval {100 * one.low:+.1f} to {100 * one.high:+.1f}, n={one.n}, "
        f"p={one.p_value:.2g}, {len(one.fixed)} fixed, {len(one.broken)} broken, margin {100 * margin:g})"
    )
    if doubt:
        return f"{text}; {doubt}"
    if one.items_needed is not None:
        return f"{text}; about {one.items_needed - one.n} more items would tell ({one.items_needed} in all)"
    return text
