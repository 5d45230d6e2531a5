"""Soft targets: a teacher's log-probabilities in the student's vocabulary, or the reason why there are none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from postgrad.core.actor import Answer, Ask, Sampling, TokenChoice
from postgrad.core.errors import DataError
from postgrad.core.message import Message, Text
from postgrad.models.actor import PolicyActor
from postgrad.models.policy import Policy, load_policy
from postgrad.models.token_texts import token_texts
from postgrad.signals.rows.distillation import Levels, build_distilled
from postgrad.signals.rows.preferences import Choice
from postgrad.signals.rows.soft_targets import StudentVocabulary
from postgrad.teachers.replay import ReplayedStep, TeacherAnswer
from unit.signals.traces_by_hand import act

SAID = "Rain in Rome."


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


@pytest.fixture(scope="module")
def student(policy: Policy) -> StudentVocabulary:
    return StudentVocabulary("tiny-random", policy.renderer)


def tokens_of(student: StudentVocabulary, text: str = SAID) -> list[str]:
    texts = token_texts(student.renderer.tokenizer)
    return [texts[token] for token in student.renderer.action(Message.of("assistant", text))[:-1]]


def answer(choices: Sequence[TokenChoice], text: str = SAID) -> Answer:
    return Answer(act(Text(text)), "teacher", tokens=tuple(choices))


def plain(student: StudentVocabulary) -> list[TokenChoice]:
    """Every token has probability 1/2."""
    return [TokenChoice(token, math.log(0.5)) for token in tokens_of(student)]


def test_named_tokens_and_the_rest_are_one(student: StudentVocabulary) -> None:
    """The first token: 0.5 itself, 0.25 another that the student has, 0.125 one that it has not: tail 0.25."""
    texts = token_texts(student.renderer.tokenizer)
    other = next(text for text in texts if text.strip() and text not in tokens_of(student) and text.isascii())
    choices = plain(student)
    choices[0] = replace(choices[0], top=((other, math.log(0.25)), ("\u2603 no such token", math.log(0.125))))
    found = student.targets("t", answer(choices), act(Text(SAID)))
    assert not isinstance(found, str)
    action = student.renderer.action(act(Text(SAID)))
    assert found.tokens == tuple(action[:-1])
    assert found.ids[0] == (action[0], texts.index(other))
    assert [math.exp(value) for value in found.logprobs[0]] == pytest.approx([0.5, 0.25])
    assert math.exp(found.tails[0]) == pytest.approx(0.25)
    for logprobs, tail in zip(found.logprobs, found.tails, strict=True):
        assert math.fsum(math.exp(value) for value in (*logprobs, tail)) == pytest.approx(1.0)
    assert (found.teacher, found.student) == ("t", "tiny-random")


def test_where_the_named_have_everything_the_tail_is_the_least(student: StudentVocabulary) -> None:
    choices = [TokenChoice(token, 0.0) for token in tokens_of(student)]
    found = student.targets("t", answer(choices), act(Text(SAID)))
    assert not isinstance(found, str)
    assert set(found.tails) == {math.log(1e-7)}


def test_reasons_for_no_soft_targets(student: StudentVocabulary) -> None:
    good = plain(student)
    whole = [TokenChoice(SAID, -0.1)]  # one token for all of it: another tokenizer
    twice = [replace(one, top=((" and", math.log(0.6)),)) for one in good]
    cases = [([], "no_logprobs"), (good[:-1], "not_the_whole_action"), (whole, "tokenizer_mismatch")]
    cases += [([replace(good[0], logprob=math.nan), *good[1:]], "not_a_distribution")]
    if " and" in token_texts(student.renderer.tokenizer):
        cases += [(twice, "not_a_distribution")]  # 0.5 + 0.6 > 1
    for choices, reason in cases:
        assert student.targets("t", answer(choices), act(Text(SAID))) == reason


def test_a_mark_at_the_end_of_the_teachers_turn_is_no_token_of_the_action(student: StudentVocabulary) -> None:
    for end in ("", "<|their_end|>"):
        found = student.targets("t", answer([*plain(student), TokenChoice(end, -0.1)]), act(Text(SAID)))
        assert not isinstance(found, str), end


def test_a_local_teachers_tokens_are_its_own_softmax(policy: Policy, student: StudentVocabulary) -> None:
    """The likeliest token of greedy decoding is the one that was sampled; teacher = student, so everything fits."""
    ask = Ask((Message.of("user", "weather?"),))
    (said,) = PolicyActor(policy, "p").answer([ask], Sampling(max_new_tokens=6, top_logprobs=5))
    assert said.tokens
    for token in said.tokens:
        assert len(token.top) == 5
        assert token.top[0] == (token.token, pytest.approx(token.logprob))
        assert sum(math.exp(value) for _, value in token.top) <= 1
    (without,) = PolicyActor(policy, "p").answer([ask], Sampling(max_new_tokens=6))
    assert without.message == said.message
    assert without.tokens == ()


def replayed(said: Answer, name: str = "t") -> ReplayedStep:
    return ReplayedStep("trace", 0, Ask((Message.of("user", "?"),)), act(Text("no")), {name: TeacherAnswer(said, "x")})


def test_rows_are_soft_where_they_can_be_and_counted_where_not(student: StudentVocabulary) -> None:
    steps = [replayed(answer(plain(student))), replayed(answer([])), replayed(answer([TokenChoice(SAID, -0.1)]))]
    levels = Levels(student)
    rows = [made.record for made in build_distilled(steps, Choice("t"), levels)]
    assert [row is not None and row.soft is not None for row in rows] == [True, False, False]
    assert levels.counts == {"soft": 1, "no_logprobs": 1, "tokenizer_mismatch": 1}
    assert all(row is not None and row.action == act(Text(SAID)) for row in rows)


def test_a_mismatch_is_refused_on_request(student: StudentVocabulary) -> None:
    steps = [replayed(answer([TokenChoice(SAID, -0.1)]))]
    with pytest.raises(DataError, match="teacher t cuts its answers into other tokens than the student tiny-random"):
        list(build_distilled(steps, Choice("t"), Levels(student, "refuse")))


def test_without_a_student_everything_teaches_sequences(student: StudentVocabulary) -> None:
    levels = Levels()
    (made,) = build_distilled([replayed(answer(plain(student)))], Choice("t"), levels)
    assert made.record is not None
    assert made.record.soft is None
    assert levels.counts == {"no_student": 1}
