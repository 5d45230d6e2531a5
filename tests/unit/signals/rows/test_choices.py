"""Pairs from answers that somebody chose between, and from how runs ended."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from postgrad.core.message import Message, Text
from postgrad.core.trace import Candidate, Feedback, Request, Step, Trace
from postgrad.signals.rows.choices import build_choices
from postgrad.signals.rows.outcome_pairs import build_outcomes
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call

ROME, OSLO, BERN = (act(call("get_weather", {"city": city})) for city in ("Rome", "Oslo", "Bern"))


def regenerated(*others: Candidate, goes_on: bool = True) -> Trace:
    builder = TraceBuilder("weather?").step(ROME, [("20", False)])
    trace = (builder.step(act(Text("20 degrees."))) if goes_on else builder).build()
    first = replace(trace.steps[0], candidates=(*trace.steps[0].candidates, *others))
    return replace(trace, steps=(first, *trace.steps[1:]))


def test_the_regeneration_that_was_gone_on_from_is_preferred() -> None:
    trace = regenerated(Candidate(OSLO, chosen=False), Candidate(BERN, chosen=False))
    records = [made.record for made in build_choices(trace)]
    assert [(r.action, r.rejected) for r in records if r is not None] == [(ROME, OSLO), (ROME, BERN)]
    assert {r.provenance.rule for r in records if r is not None} == {"regeneration/1"}


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (regenerated(Candidate(OSLO, chosen=False), goes_on=False), "nothing_chosen"),
        (regenerated(Candidate(ROME, chosen=False)), "same_action"),
        (regenerated(Candidate(OSLO, chosen=False, stop_reason="length")), "cut_off"),
        (regenerated(Candidate(act(), chosen=False)), "empty"),
    ],
)
def test_answers_that_nobody_chose_between(trace: Trace, reason: str) -> None:
    assert [made.dropped for made in build_choices(trace)] == [reason]


def test_teachers_answers_are_no_regenerations() -> None:
    assert list(build_choices(regenerated(Candidate(OSLO, chosen=False, teacher="large")))) == []


def test_the_branch_that_was_kept_is_preferred_to_the_one_that_was_left() -> None:
    trace = regenerated()
    left = Step(2, trace.steps[0].request, (Candidate(OSLO),), abandoned=True)
    other = Step(3, Request((Message.of("user", "?").id,)), (Candidate(BERN),), abandoned=True)
    made = list(build_choices(replace(trace, steps=(*trace.steps, left, other))))
    assert made[0].record is not None
    assert (made[0].record.action, made[0].record.rejected) == (ROME, OSLO)
    assert made[0].record.provenance.rule == "branch/1"
    assert made[1].dropped == "other_context"


def attempt(name: str, action: Message, reward: float | None, verified: float | None = None) -> Trace:
    said = [Feedback("verifier", verified)] if verified is not None else []
    builder = TraceBuilder("weather in Rome?", [WEATHER]).step(action, [(f"20 ({name})", False)], feedback=said)
    end = [Feedback("reward", reward)] if reward is not None else []
    return builder.step(act(Text("Done.")), feedback=end).build(name)


def test_the_action_of_the_better_runs_is_preferred_by_the_difference_of_the_means() -> None:
    """Rome: (1 + 0.5) / 2 = 0.75; Oslo: 0.25; Bern: (0 + 0) / 2 = 0, so Rome against Bern by 0.75."""
    runs = [("a", ROME, 1.0), ("b", ROME, 0.5), ("c", OSLO, 0.25), ("d", BERN, 0.0), ("e", BERN, 0.0)]
    traces = [attempt(*run) for run in runs]
    (made,) = build_outcomes(lambda: traces)
    assert made.record is not None
    assert (made.record.action, made.record.rejected, made.record.weight) == (ROME, BERN, 0.75)
    assert (made.record.provenance.rule, made.record.provenance.trace) == ("outcome/1", "a")
    assert made.record.provenance.why == "mean outcome 0.75 against 0.00 in the same context"


@pytest.mark.parametrize(
    ("traces", "reasons"),
    [
        ([attempt("a", ROME, 1.0), attempt("b", OSLO, 1.0)], ["same_outcome"]),
        ([attempt("a", ROME, 0.6), attempt("b", OSLO, 0.5)], ["same_outcome"]),  # 0.1 < 0.2
        ([attempt("a", ROME, 1.0), attempt("b", ROME, 0.0)], ["one_action"]),
        ([attempt("a", ROME, None), attempt("b", OSLO, None)], []),
        ([attempt("a", ROME, 1.0)], []),
    ],
)
def test_contexts_that_tell_nothing(traces: list[Trace], reasons: list[str]) -> None:
    assert [made.dropped for made in build_outcomes(lambda: traces)] == reasons


def test_a_steps_own_verifier_counts_before_the_runs_end() -> None:
    (made,) = build_outcomes(lambda: [attempt("a", ROME, 0.0, verified=1.0), attempt("b", OSLO, 1.0, verified=0.0)])
    assert made.record is not None
    assert (made.record.action, made.record.weight) == (ROME, 1.0)


def test_runs_of_an_evaluation_are_passed_over() -> None:
    traces = []
    for trace in (attempt("a", ROME, 1.0), attempt("b", OSLO, 0.0)):
        first = replace(trace.steps[0], request=replace(trace.steps[0].request, params={"purpose": "evaluation"}))
        traces.append(replace(trace, steps=(first, *trace.steps[1:])))
    assert list(build_outcomes(lambda: traces)) == []
