"""The cache: one call per different question, whoever asks, whatever breaks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.message import Message
from postgrad.teachers.cache import AnswerCache, CachedActor
from postgrad.teachers.scripted import ScriptedActor


def ask(text: str, hint: str | None = None) -> Ask:
    return Ask((Message.of("user", text),), hint=hint)


def echo(given: Ask) -> Message | None:
    words = given.messages[-1].text
    return None if words == "unknown" else Message.of("assistant", f"{words}!")


def test_each_question_is_answered_once(tmp_path: Path) -> None:
    actor = ScriptedActor("a", echo)
    cached = CachedActor(actor, tmp_path)
    first = cached.answer([ask("x"), ask("y"), ask("x")], Sampling())
    again = CachedActor(actor, tmp_path).answer([ask("y"), ask("x")], Sampling())
    assert [answer.message.text for answer in first if answer.message] == ["x!", "y!", "x!"]
    assert again == [first[1], first[0]]
    assert actor.asked == [ask("x"), ask("y")]


def test_all_that_decides_an_answer_is_in_the_key(tmp_path: Path) -> None:
    actor = ScriptedActor("a", echo)
    CachedActor(actor, tmp_path).answer([ask("x")], Sampling())
    CachedActor(actor, tmp_path).answer([ask("x", "hint")], Sampling())
    CachedActor(actor, tmp_path).answer([ask("x")], Sampling(seed=1))
    CachedActor(actor, tmp_path, identity="other weights").answer([ask("x")], Sampling())
    CachedActor(ScriptedActor("b", echo), tmp_path).answer([ask("x")], Sampling())
    assert len(actor.asked) == 4
    assert len(list(tmp_path.rglob("*.json"))) == 5


def test_where_a_message_was_read_from_does_not_count(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, "a")
    (message,) = ask("x").messages
    moved = Ask((msgspec.structs.replace(message, records=(7,)),))
    assert cache.key(moved, Sampling()) == cache.key(ask("x"), Sampling())


def test_abstentions_and_broken_files_are_asked_again(tmp_path: Path) -> None:
    actor = ScriptedActor("a", echo)
    cached = CachedActor(actor, tmp_path)
    cached.answer([ask("unknown")], Sampling())
    assert cached.answer([ask("unknown")], Sampling())[0].message is None
    assert len(actor.asked) == 2
    cached.answer([ask("x")], Sampling())
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(file.read_bytes()[:20])
    assert cached.known([ask("x")], Sampling()) == [None]
    cached.answer([ask("x")], Sampling())
    assert len(actor.asked) == 4


def test_many_at_once_leave_whole_files(tmp_path: Path) -> None:
    asks = [ask(str(number)) for number in range(20)]

    def work(_: int) -> list[str]:
        answers = CachedActor(ScriptedActor("a", echo), tmp_path).answer(asks, Sampling())
        return [answer.message.text for answer in answers if answer.message]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert all(result == [f"{number}!" for number in range(20)] for result in results)
    assert len(list(tmp_path.rglob("*"))) - len(list(tmp_path.iterdir())) == 20  # no temporary file is left
    assert None not in CachedActor(ScriptedActor("a", echo), tmp_path).known(asks, Sampling())


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    cached = CachedActor(ScriptedActor("a", echo), tmp_path)
    first = cached.answer([ask("\ud83d")], Sampling())
    assert cached.known([ask("\ud83d")], Sampling()) == list(first)


def test_what_an_answer_cost_is_found_by_its_key(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, "a")
    cache.put("k1", Answer(Message.of("assistant", "x"), "m", cost=0.5))
    cache.put("k2", Answer(Message.of("assistant", "x"), "m"))
    cache.put("k3", Answer(None, "m"))
    assert [cache.cost(key) for key in ("k1", "k2", "k3")] == [0.5, 0.0, None]
