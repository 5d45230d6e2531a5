"""Judges of pairs: both must agree both ways round; one that judges by place is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from postgrad.core.actor import Answer, Ask
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.record import Provenance, Record
from postgrad.signals.rows.made import Made
from postgrad.signals.rows.pair_judge import PairJudge, _letter, family_of, judged
from postgrad.signals.text_judges import ActorJudge, exact, words
from postgrad.teachers.scripted import ScriptedActor
from unit.signals.traces_by_hand import act, call


def pair(number: int = 0) -> Made:
    good, bad = (act(call("get_weather", {"city": city, "n": number})) for city in ("Rome", "Oslo"))
    row = Record((Message.of("user", "Rome?"),), good, rejected=bad, provenance=Provenance(why="2 of 3", cost=0.5))
    return Made(row)


def judge(says: Callable[[str], str], family: str, name: str = "j") -> PairJudge:
    actor = ScriptedActor(name, lambda ask: Message.of("assistant", says(ask.messages[0].text)))
    return PairJudge(actor, family)


def likes(city: str) -> Callable[[str], str]:
    """Names the place at which `city` stands."""
    return lambda text: "A" if text.index(city, text.index("Action A")) < text.index("Action B") else "B."


FIRST: Callable[[str], str] = lambda text: "A"  # noqa: E731
TIE: Callable[[str], str] = lambda text: "T"  # noqa: E731
MUTE: Callable[[str], str] = lambda text: "I cannot say."  # noqa: E731


def test_a_pair_that_two_families_confirm_is_kept_and_says_so() -> None:
    (made,) = judged([pair()], [judge(likes("Rome"), "x", "one"), judge(likes("Rome"), "y", "two")])
    assert made.record is not None
    assert made.record.provenance.why == "2 of 3; judges one, two agree"
    assert made.record.provenance.cost == 0.5


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        *(("B", "B"), ("b", "B"), ("**A**", "A"), ("(T)", "T"), ("Action A", "A"), ("B is better", "B")),
        ("A careful look says: B", "B"),
        ("A is better than B", "A"),
        ("A. Because B names no city", "A"),
        ("Both call the tool, and B with the right city", "B"),
        ("Compare A with B first.\n\nAnswer: T", "T"),
        ("A good case can be made", ""),
        ("Option B is better than A", "B"),
        ("Action A is better.", "A"),
        ("B seems clearly preferable to A", "B"),
        ("A is worse than B", "B"),
        ("A is not better than B", ""),
        ("A is better at first sight, but B is better", ""),
        ("", ""),
    ],
)
def test_the_letter_is_the_one_that_an_answer_settles_on(said: str, letter: str) -> None:
    assert _letter(Answer(Message.of("assistant", said), "j")) == letter


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (likes("Oslo"), "judges_disagree"),
        (FIRST, "judge_by_place"),
        (TIE, "judge_tie"),
        (MUTE, "judge_silent"),
    ],
)
def test_pairs_that_are_not_confirmed(second: Callable[[str], str], reason: str) -> None:
    assert [one.dropped for one in judged([pair()], [judge(likes("Rome"), "x"), judge(second, "y")])] == [reason]


def test_both_prefer_the_student() -> None:
    judges = [judge(likes("Oslo"), "x"), judge(likes("Oslo"), "y")]
    assert [one.dropped for one in judged([pair(), Made(dropped="tie")], judges)] == ["judge_prefers_student", "tie"]


def test_a_judge_that_judges_by_place_is_refused_with_the_numbers() -> None:
    pairs = [pair(number) for number in range(4)]
    with pytest.raises(DataError, match="judge biased judges by place; got 'of 4 pairs 4 times the first and 0"):
        judged(pairs, [judge(likes("Rome"), "x"), judge(FIRST, "y", "biased")])
    assert len(judged(pairs[:3], [judge(likes("Rome"), "x"), judge(FIRST, "y")])) == 3  # too few to tell


def test_a_lean_beyond_chance_is_refused_below_a_half() -> None:
    """6 of 20 pairs by the first place: 2 * 1/2^6 = 0.031 < 0.05. 5 of 20: 2 * 1/2^5 = 0.0625."""

    def leans(count: int) -> Callable[[str], str]:
        marks = [f'"n":{number}}}' for number in range(count)]
        return lambda text: "A" if any(mark in text for mark in marks) else likes("Rome")(text)

    pairs = [pair(number) for number in range(20, 40)]
    pairs[:6] = [pair(number) for number in range(6)]
    with pytest.raises(DataError, match="6 times the first"):
        judged(pairs, [judge(likes("Rome"), "x"), judge(leans(6), "y")])
    kept = judged(pairs, [judge(likes("Rome"), "x"), judge(leans(5), "y")])
    assert [one.dropped for one in kept].count("judge_by_place") == 5


def test_one_family_is_not_enough() -> None:
    with pytest.raises(ConfigError, match="judges of two families"):
        judged([pair()], [judge(likes("Rome"), "x"), judge(likes("Rome"), "x")])


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o", "gpt"),
        ("o3-mini", "gpt"),
        ("anthropic/claude-3.5", "claude"),
        ("Qwen/Qwen3-8B", "qwen"),
        ("7b", "7b"),
    ],
)
def test_families(model: str, family: str) -> None:
    assert family_of(model) == family


def test_texts_mean_the_same_only_both_ways_round() -> None:
    asked: list[Ask] = []

    def says(answer: str) -> ActorJudge:
        def script(ask: Ask) -> Message:
            asked.append(ask)
            return Message.of("assistant", answer if len(asked) % 2 else "SAME")

        return ActorJudge(ScriptedActor("j", script))

    context = [Message.of("user", "Rain?")]
    assert says("SAME")(context, "Yes.", "It will rain.")
    assert not says("DIFFERENT")(context, "Yes.", "No.")
    assert not says("not the same, different")(context, "Yes.", "No.")
    assert says("DIFFERENT")(context, "Yes.", " Yes. ")  # nobody is asked
    assert exact((), "a b", "a  b")
    assert not words((), "-3 degrees", "3 degrees")
    assert not words((), "1.5", "15")
    assert words((), "**Yes**, it is!", "yes it is")
