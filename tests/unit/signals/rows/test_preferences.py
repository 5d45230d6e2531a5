"""Pairs, rows to imitate and hinted rows, from replayed steps and traces written by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from postgrad.core.actor import Answer, Ask
from postgrad.core.message import Message, Text
from postgrad.signals.agreement import Agreement, agree
from postgrad.signals.error_sites.sites import find_sites
from postgrad.signals.hints.hinted import build_hinted
from postgrad.signals.rows.preferences import Choice, build_imitations, build_pairs
from postgrad.signals.rows.recovery_rows import build_recoveries
from postgrad.signals.text_judges import words
from postgrad.teachers.replay import ReplayedStep, TeacherAnswer
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, bash, call

ROME, PARIS, OSLO = (act(call("get_weather", {"city": city})) for city in ("Rome", "Paris", "Oslo"))
BROKEN = act(call("get_weather", "{"))
AGAINST = act(call("get_weather", {"city": 5}))
UNKNOWN = act(call("get_time", {}))


def replayed(answers: Mapping[str, Message | None], student: Message = OSLO, kind: str = "local model") -> ReplayedStep:
    said = {name: TeacherAnswer(Answer(message, name), kind) for name, message in answers.items()}
    return ReplayedStep("t", 3, Ask((Message.of("user", "weather?"),), (WEATHER,)), student, said)


def test_majority_pair_by_hand() -> None:
    """Three of four teachers say Rome: 3 >= max(2, ceil(4 / 2)) = 2, so the pair has weight 3 / 4."""
    (made,) = build_pairs([replayed({"a": ROME, "b": PARIS, "c": ROME, "d": ROME})])
    assert made.record is not None
    assert (made.record.action, made.record.rejected) == (ROME, OSLO)
    assert made.record.weight == 0.75
    where = made.record.provenance
    assert (where.trace, where.step, where.rule, where.teachers) == ("t", 3, "majority/1", ("a", "c", "d"))
    assert where.agreement == 0.75


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([], "no_answer"),
        ([None, None], "no_answer"),
        ([ROME], "low_agreement"),  # one teacher is no majority: 1 < max(2, 1)
        ([ROME, PARIS], "tie"),
        ([ROME, ROME, PARIS, PARIS], "tie"),
        ([ROME, ROME, PARIS, OSLO, UNKNOWN], "low_agreement"),  # 2 < ceil(5 / 2) = 3
        ([BROKEN, BROKEN], "malformed_json"),
        ([AGAINST, AGAINST], "against_schema"),
        ([UNKNOWN, UNKNOWN], "unknown_tool"),
        ([act(Text(" ")), act(Text(" "))], "empty"),
        ([OSLO, OSLO], "same_as_student"),
    ],
)
def test_reasons_for_no_pair(answers: list[Message | None], reason: str) -> None:
    (made,) = build_pairs([replayed({str(place): answer for place, answer in enumerate(answers)})])
    assert (made.record, made.dropped) == (None, reason)


@pytest.mark.parametrize("stop", ["length", "max_tokens", "content_filter", "refusal"])
def test_an_answer_that_was_cut_off_is_nobodys_action(stop: str) -> None:
    said = {name: TeacherAnswer(Answer(ROME, name, stop_reason=stop), "network") for name in "abc"}
    (made,) = build_pairs([replace(replayed({}), answers=said)])
    assert (made.record, made.dropped) == (None, "truncated")


def test_invalid_answers_vote_against_and_abstentions_do_not_vote() -> None:
    """Rome twice, broken twice, two silent, one of them with an answer of nothing: N = 4, the two broken ones form no
    cluster, share 2 / 4."""
    found = agree(replayed({"a": ROME, "b": ROME, "c": BROKEN, "d": BROKEN, "e": None, "f": act(Text(" "))}))
    assert isinstance(found, Agreement)
    assert found.share == 0.5


def test_a_cut_off_answer_is_no_vote_for_what_it_began_to_say() -> None:
    cut = TeacherAnswer(Answer(act(Text("The wea")), "x", stop_reason="length"), "local model")
    step = replayed({})
    assert agree(ReplayedStep("t", 0, step.ask, OSLO, {"a": cut, "b": cut})) == "truncated"


HINT = "Give every required argument: city is missing."


@pytest.mark.parametrize(
    ("said", "kind", "dropped"),
    [
        ("Give every required argument: city is missing", "local model, told a hint", "repeats_hint"),
        ("Sorry: give EVERY required argument, city", "local model, told a hint", "repeats_hint"),  # 5 of 6 words
        ("Sorry, but which city shall it be: every required one?", "local model, told a hint", None),  # 3 of 10
        ("Give every required argument: city is missing", "local model, told the gold answer", None),
    ],
)
def test_an_answer_that_is_the_hint_again_is_not_learnt(said: str, kind: str, dropped: str | None) -> None:
    step = replayed({"a": None})
    answers = {"a": TeacherAnswer(Answer(Message.of("assistant", said), "a"), kind, HINT)}
    (made,) = build_imitations([replace(step, answers=answers)], Choice("a"))
    assert (made.dropped, made.record is None) == (dropped, dropped is not None)
    called = {"a": TeacherAnswer(Answer(ROME, "a"), kind, '{"city": "Rome"}')}
    (made,) = build_imitations([replace(step, answers=called)], Choice("a"))
    assert made.record is not None


def test_a_broken_schema_is_named_and_learnt_from_by_nobody() -> None:
    bad = type(WEATHER)("get_weather", "", {"type": "dict", "properties": {}})
    step = ReplayedStep("t", 0, Ask((Message.of("user", "?"),), (bad,)), OSLO, replayed({"a": ROME, "b": ROME}).answers)
    assert agree(step) == "unusable_schema"


def test_imitation_rows_do_not_ask_what_the_student_did() -> None:
    (made,) = build_imitations([replayed({"a": OSLO, "b": OSLO})])
    assert made.record is not None
    assert (made.record.action, made.record.rejected, made.record.weight) == (OSLO, None, 1.0)


def test_gold_rows_are_the_gold_teachers_alone_and_say_so() -> None:
    gold = replayed({"gold": PARIS}, kind="gold answers").answers
    votes = replayed({"a": ROME, "b": ROME}).answers
    step = ReplayedStep("t", 3, replayed({}).ask, OSLO, {**votes, **gold})
    (made,) = build_imitations([step], Choice("gold"))
    assert made.record is not None
    assert made.record.action == PARIS
    assert (made.record.provenance.rule, made.record.provenance.teachers) == ("gold/1", ("gold",))
    (none,) = build_imitations([replayed({"a": ROME, "b": ROME})], Choice("gold"))
    assert none.dropped == "no_answer"


def test_pairs_of_the_gold_teacher_need_no_vote_and_name_it() -> None:
    gold, votes = replayed({"g": PARIS}, kind="gold answers").answers, replayed({"a": ROME, "b": ROME}).answers
    step = ReplayedStep("t", 3, replayed({}).ask, OSLO, {**votes, **gold}, "exact")
    (made,) = build_pairs([step], Choice("gold"))
    assert made.record is not None
    assert (made.record.action, made.record.rejected, made.record.weight) == (PARIS, OSLO, 1.0)
    where = made.record.provenance
    assert (where.rule, where.teachers, where.agreement, where.fidelity) == ("gold/1", ("g",), 1.0, "exact")
    same = ReplayedStep("t", 3, step.ask, PARIS, step.answers)
    assert [one.dropped for one in build_pairs([same, replayed({"a": ROME})], Choice("gold"))] == [
        "same_as_student",
        "no_answer",
    ]


def test_one_teacher_by_name_counts_with_the_share_that_agrees() -> None:
    """`b` says Paris, so do one of three others: 2 of 4."""
    (made,) = build_pairs([replayed({"a": ROME, "b": PARIS, "c": PARIS, "d": BROKEN})], Choice("b"))
    assert made.record is not None
    assert (made.record.action, made.record.weight, made.record.provenance.rule) == (PARIS, 0.5, "teacher/1")
    assert [one.dropped for one in build_pairs([replayed({"a": ROME}), replayed({"b": BROKEN})], Choice("b"))] == [
        "no_answer",
        "malformed_json",
    ]


def test_a_pair_carries_why_who_agreement_cost_and_fidelity() -> None:
    """Costs are those of all answers at the step, also of those that lost: 0.25 + 0.5 = 0.75; c's is not known."""
    answers = {
        name: TeacherAnswer(Answer(message, name, cost=cost), "HTTP endpoint")
        for name, message, cost in (("a", ROME, 0.25), ("b", ROME, 0.5), ("c", PARIS, None))
    }
    (made,) = build_pairs([ReplayedStep("t", 3, replayed({}).ask, OSLO, answers, "reconstructed")])
    assert made.record is not None
    where = made.record.provenance
    assert where.why == "2 of 3 teachers do the same; the student did something else"
    assert (where.teachers, where.agreement, where.cost, where.fidelity) == (("a", "b"), 2 / 3, 0.75, "reconstructed")
    (free,) = build_pairs([replayed({"a": ROME, "b": ROME})])
    assert free.record is not None
    assert free.record.provenance.cost is None


def test_texts_are_compared_by_a_judge_where_there_is_one() -> None:
    """Two answers in other marks: no majority by their text, one by their words; the student said the same too."""
    yes, also, no = act(Text("Yes, it rains.")), act(Text("yes it RAINS")), act(Text("No."))
    said = {"a": yes, "b": also}
    assert [one.dropped for one in build_pairs([replayed(said, student=no)])] == ["tie"]
    (made,) = build_pairs([replayed(said, student=no)], Choice(same_text=words))
    assert made.record is not None
    assert made.record.action == yes
    (none,) = build_pairs([replayed(said, student=act(Text("YES it rains!")))], Choice(same_text=words))
    assert none.dropped == "same_as_student"


def recovered(first: str, second: str) -> TraceBuilder:
    builder = TraceBuilder().step(act(bash(first, "c0")), [("Exit code 128\nfatal: no upstream", True)])
    return builder.step(act(Text("I see."), bash(second, "c1")), [("pushed", False)])


def test_recovery_pair_stands_in_the_context_of_the_failure() -> None:
    trace = recovered("git push", "git push -u origin main").build()
    (made,) = build_recoveries(trace, find_sites(trace))
    assert made.record is not None
    assert made.record.messages == trace.context(trace.steps[0])
    assert made.record.action == act(bash("git push -u origin main", "c1"))
    assert made.record.rejected == act(bash("git push", "c0"))
    assert made.record.provenance.rule == "recovery/1"


def test_the_same_call_that_worked_later_teaches_nothing() -> None:
    """The first commit in between is what helped."""
    builder = TraceBuilder().step(act(bash("git push", "c0")), [("Exit code 1\nerror: src refspec main", True)])
    builder.step(act(bash("git commit -m x", "c1")), [("1 file changed", False)])
    trace = builder.step(act(bash("git push", "c2")), [("pushed", False)]).build()
    assert [made.dropped for made in build_recoveries(trace, find_sites(trace))] == ["same_call_worked_later"]
    alone = TraceBuilder().step(act(bash("git push")), [("Exit code 1\nfatal", True)]).build()
    assert [made.dropped for made in build_recoveries(alone, find_sites(alone))] == ["not_recovered"]


def test_hinted_rows_keep_the_students_own_action_and_at_most_two_of_one_mistake() -> None:
    builder = TraceBuilder()
    for number in range(4):
        builder.step(act(bash("git push", f"c{number}")), [("Exit code 128\nfatal: no upstream", True)])
    trace = builder.build()
    made = list(build_hinted(trace, find_sites(trace)))
    rows = [one.record for one in made if one.record is not None]
    assert [row.provenance.step for row in rows] == [0, 1]
    assert [one.dropped for one in made[2:]] == ["repeated_mistake", "repeated_mistake"]
    assert rows[0].action == trace.steps[0].action
    assert rows[0].hint is not None
    assert rows[0].messages == trace.context(trace.steps[0])
