"""Network teachers against a local server that misbehaves on cue."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.canonical import canonical_json
from postgrad.core.errors import ConfigError, OutsideFailure
from postgrad.core.message import Message
from postgrad.teachers.gateway import Gateway, Limits
from postgrad.teachers.journal import Journal
from postgrad.teachers.money.budget import Budget, BudgetReached
from postgrad.teachers.money.prices import Price
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.openai_compatible import OpenAICompatible
from postgrad.teachers.providers.provider import Body, Send
from unit.signals.traces_by_hand import WEATHER
from unit.teachers.asking import SAMPLING, ask, openai, teacher
from unit.teachers.endpoint_by_script import ERROR, Reply, Script, completion, serving

HI = Message.of("assistant", "hi")
ONE_AT_A_TIME = Limits(concurrency=1, timeout=5.0, max_retries=0)


def outcomes(asked: NetworkTeacher) -> list[str]:
    return [line.outcome for line in asked.gateway.journal.lines if line.event == "settled"]


def test_an_answer_has_its_price_and_its_model(tmp_path: Path) -> None:
    """By hand: of 100 tokens read 60 were cached: (40 x 2 + 60 x 0.5 + 20 x 10) / 1e6 = 0.00031 US dollars."""
    with serving(completion("hi", usage=(100, 20, 60), model="asked-1-2026-01-01")) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(2.0, 10.0, cached_input=0.5))
        (answer,) = asked.answer([ask()], SAMPLING)
    assert (answer.message, answer.model) == (HI, "asked-1-2026-01-01")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (100, 20, 60)
    assert answer.cost == pytest.approx(0.00031, rel=1e-12)
    assert answer.seconds > 0
    assert asked.gateway.budget.paid == answer.cost


def test_retry_after_in_seconds_is_waited_for_by_every_call(tmp_path: Path) -> None:
    """Two asks, one place: the 429 to the first holds the second back as well."""
    with serving(Reply(ERROR, 429, {"retry-after": "1"}), completion("hi")) as endpoint:
        limits = Limits(concurrency=1, timeout=5.0, max_retries=2)
        answers = teacher(tmp_path, openai(endpoint.base_url), limits=limits).answer([ask("a"), ask("b")], SAMPLING)
    assert [answer.message for answer in answers] == [HI, HI]
    assert endpoint.times[1] - endpoint.times[0] >= 1.0


def test_retry_after_as_a_date_is_waited_for(tmp_path: Path) -> None:
    """Nothing is asked again before the date that was named, however late the first try came."""
    date, clock = int(time.time()) + 3, time.time() - time.monotonic()
    with serving(Reply(ERROR, 429, {"retry-after": formatdate(date, usegmt=True)}), completion("hi")) as at:
        (answer,) = teacher(tmp_path, openai(at.base_url)).answer([ask()], SAMPLING)
    assert answer.message == HI
    assert at.times[1] + clock >= date - 0.05


def test_a_wait_beyond_patience_is_a_failure(tmp_path: Path) -> None:
    with serving(Reply(ERROR, 429, {"retry-after": "9999"})) as endpoint:
        (answer,) = teacher(tmp_path, openai(endpoint.base_url)).answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 1
    assert (answer.message, answer.error) == (None, "rate_limited")


@dataclass(frozen=True)
class OneARound(OpenAICompatible):
    """It answers one of those that wait and refuses the others, again and again; `said` are the answers so far."""

    waiting: int = 12
    said: list[bool] = field(default_factory=list)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        async def send(body: Body, request: str) -> object:
            await asyncio.sleep(0)
            round_ = self.said[::-1].index(True) if True in self.said else len(self.said)
            self.said.append(round_ == self.waiting - 1 - sum(self.said))
            if not self.said[-1]:
                raise CallFailed("rate_limited", "slow down", status=429, wait=0.0)
            return completion("hi", model=body["model"]).body

        yield send


def test_whoever_waits_long_at_an_endpoint_that_answers_others_gets_a_turn(tmp_path: Path) -> None:
    """The last of 12 is refused 11 times, with 2 tries after the first allowed."""
    gateway, limits = Gateway(concurrency=12), Limits(concurrency=12, max_retries=2)
    gateway.random.uniform = lambda a, b: a  # type: ignore[method-assign]
    asked = teacher(tmp_path, OneARound("asked-1", "http://127.0.0.1:1/v1"), limits=limits, gateway=gateway)
    answers = asked.answer([ask(str(number)) for number in range(12)], SAMPLING)
    assert [answer.message for answer in answers] == [HI] * 12


def test_a_server_error_is_tried_again_and_at_last_an_error_of_this_ask(tmp_path: Path) -> None:
    down = Reply(ERROR, 500, {"retry-after-ms": "1"})
    with serving(down, completion("hi")) as endpoint:
        asked = teacher(tmp_path / "a", openai(endpoint.base_url))
        assert asked.answer([ask()], SAMPLING)[0].message == HI
        assert outcomes(asked) == ["server_error", "answered"]
    with serving(down) as endpoint:
        (answer,) = teacher(tmp_path / "b", openai(endpoint.base_url)).answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 3  # once and two retries, none by the SDK
    assert (answer.message, answer.error) == (None, "server_error")
    assert "500" in answer.stop_reason


def test_an_endpoint_that_fails_ask_after_ask_is_left_alone(tmp_path: Path) -> None:
    """Four asks fail at it, the other six are not sent."""
    with serving(Reply(ERROR, 503)) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=ONE_AT_A_TIME)

        async def one_by_one() -> list[Answer]:
            async with asked.connected():
                return [(await asked.ask(ask(str(number)), SAMPLING))[0] for number in range(10)]

        answers = asyncio.run(one_by_one())
        assert len(endpoint.requests) == 4
    assert [answer.error for answer in answers] == ["server_error"] * 4 + ["down"] * 6


def test_a_hang_is_given_up_and_may_have_been_billed(tmp_path: Path) -> None:
    """Once more after the first, then the money stays aside: at most 2 x (most tokens x price)."""
    with serving(Reply({}, wait=1.2)) as endpoint:
        limits = Limits(timeout=0.4, max_retries=5)
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(1.0, 1.0), limits=limits)
        (answer,) = asked.answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 2
    assert answer.error == "timeout"
    reserved = [line.reserved for line in asked.gateway.journal.lines if line.event == "sent"]
    assert asked.gateway.budget.uncertain == pytest.approx(sum(reserved))
    assert asked.gateway.budget.paid == 0


@pytest.mark.parametrize("body", [b"<html>", b"", {"detail": "no"}, {"choices": []}, {"choices": [{}]}, [], b'{"cho'])
def test_an_endpoint_that_speaks_something_else_is_an_error_of_this_ask(tmp_path: Path, body: object) -> None:
    with serving(Reply(body, headers={"retry-after-ms": "1"})) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=ONE_AT_A_TIME)
        (answer,) = asked.answer([ask()], SAMPLING)
    assert (answer.message, answer.error) == (None, "invalid_reply")


def test_a_truncated_answer_is_asked_again(tmp_path: Path) -> None:
    whole = completion("hi")
    with serving(Reply({**whole.body, "model": "asked-1"}, cut=40), whole) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(1.0, 1.0))
        (answer,) = asked.answer([ask()], SAMPLING)
    assert answer.message == HI
    assert outcomes(asked) == ["truncated", "answered"]
    assert asked.gateway.budget.uncertain > 0


def test_a_server_that_is_not_there_is_an_error_of_this_ask(tmp_path: Path) -> None:
    with serving(completion("hi")) as endpoint:
        gone = endpoint.base_url
    (answer,) = teacher(tmp_path, openai(gone), limits=ONE_AT_A_TIME).answer([ask()], SAMPLING)
    assert answer.error == "connection"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_unknown_model_is_the_users_mistake(tmp_path: Path, status: int) -> None:
    with serving(Reply(ERROR, status)) as endpoint:
        with pytest.raises(ConfigError, match=rf"{status}.*check base_url, model"):
            teacher(tmp_path, openai(endpoint.base_url)).answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 1


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """A trace goes to the host that was named, and to no other."""
    with serving(completion("hi")) as other, serving(Reply(b"", 307, {"location": other.base_url})) as endpoint:
        with pytest.raises(ConfigError, match="307"):
            teacher(tmp_path, openai(endpoint.base_url)).answer([ask()], SAMPLING)
        assert other.requests == []


def test_an_ask_that_is_refused_for_itself_is_told_and_others_go_on(tmp_path: Path) -> None:
    with serving(Reply(ERROR, 400), completion("hi")) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=ONE_AT_A_TIME)
        answers = asked.answer([ask("long"), ask("short")], SAMPLING)
    assert (answers[0].message, answers[0].error) == (None, "refused")
    assert answers[0].stop_reason.startswith("refused: 400")
    assert answers[1].message == HI


def test_money_that_is_used_up_at_the_provider_ends_this_teacher(tmp_path: Path) -> None:
    spent = Reply({"error": {"message": "no credit", "code": "insufficient_quota", "type": "x", "param": None}}, 429)
    with serving(spent) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=Limits(concurrency=1))
        answers = asked.answer([ask("a"), ask("b")], SAMPLING)
        assert len(endpoint.requests) == 1
    assert [answer.error for answer in answers] == ["quota", "down"]


def test_another_model_than_asked_is_no_answer_and_is_paid_once(tmp_path: Path) -> None:
    """The bill is (100 + 20) / 1e6; once the name is accepted the kept answer counts, without a call."""
    with serving(completion("hi", model="cheap-1")) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(1.0, 1.0))
        first = asked.answer([ask()], SAMPLING)[0]
        again = asked.answer([ask()], SAMPLING)[0]
        accepting = teacher(tmp_path, openai(endpoint.base_url), accepted=("cheap-1",))
        accepted = accepting.answer([ask()], SAMPLING)[0]
        assert len(endpoint.requests) == 1
    assert (first.message, first.error) == (None, "wrong_model")
    assert "cheap-1 answered for asked-1" in again.stop_reason
    assert asked.gateway.budget.paid == pytest.approx(120e-6)
    assert (accepted.message, accepted.model) == (HI, "cheap-1")


def test_failover_goes_in_order_and_comes_back_to_the_first(tmp_path: Path) -> None:
    busy = Reply(ERROR, 503)
    with serving(busy, completion("first")) as one, serving(completion("second")) as two:
        asked = teacher(tmp_path, openai(one.base_url), openai(two.base_url), limits=ONE_AT_A_TIME)
        answers = asked.answer([ask("a"), ask("b")], SAMPLING)
    assert [answer.message.text for answer in answers if answer.message] == ["second", "first"]


def test_calls_at_once_stay_within_the_provider_and_the_run_and_answers_keep_their_order(tmp_path: Path) -> None:
    def slow(body: dict[str, Any]) -> Reply:
        return Reply(completion(body["messages"][0]["content"]).body, wait=0.05)

    asks = [ask(str(number)) for number in range(6)]
    with serving(answer=slow) as endpoint:
        answers = teacher(tmp_path / "a", openai(endpoint.base_url)).answer(asks, SAMPLING)
        assert endpoint.most_at_once == 2
    assert [answer.message.text for answer in answers if answer.message] == [str(number) for number in range(6)]
    with serving(answer=slow) as endpoint:
        shared = Gateway(concurrency=3)
        teachers = [
            teacher(
                tmp_path / name, openai(f"{endpoint.base_url}/{name}"), limits=Limits(concurrency=8), gateway=shared
            )
            for name in "bc"
        ]

        async def both() -> None:
            async with teachers[0].connected(), teachers[1].connected():
                await asyncio.gather(*(one.ask(question, SAMPLING) for one in teachers for question in asks))

        asyncio.run(both())
        assert endpoint.most_at_once == 3


def test_the_same_ask_twice_at_once_is_one_call(tmp_path: Path) -> None:
    with serving(completion("hi")) as endpoint:
        answers = teacher(tmp_path, openai(endpoint.base_url)).answer([ask(), ask(), ask()], SAMPLING)
        assert len(endpoint.requests) == 1
    assert [answer.message for answer in answers] == [HI] * 3


def test_answers_that_arrived_before_a_mistake_are_never_paid_twice(tmp_path: Path) -> None:
    """Two answers come, the third call is denied; a second run asks for the two that are missing."""
    asks = [ask(str(number)) for number in range(4)]
    with serving(completion("0"), completion("1"), Reply(ERROR, 401)) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), limits=ONE_AT_A_TIME)
        told = asked.answer(asks, SAMPLING)
        assert [answer.error for answer in told] == [None, None, "denied", "denied"]
    with serving(completion("2"), completion("3")) as endpoint:
        answers = teacher(tmp_path, openai(endpoint.base_url), limits=ONE_AT_A_TIME).answer(asks, SAMPLING)
        assert [body["messages"][0]["content"] for body in endpoint.requests] == ["2", "3"]
    assert [answer.message.text for answer in answers if answer.message] == ["0", "1", "2", "3"]


def test_nothing_leaves_before_redaction(tmp_path: Path) -> None:
    def redact(given: Ask) -> Ask:
        return Ask((Message.of("user", given.messages[0].text.replace("hunter2", "<secret>")),), hint="<clean>")

    question = Ask((Message.of("user", "pw hunter2"),), hint="hunter2")
    with serving(completion("hi")) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), redact=redact)
        asked.answer([question], SAMPLING)
    assert endpoint.requests[0]["messages"] == [{"role": "user", "content": "pw <secret>\n\n<clean>"}]
    assert "hunter2" not in json.dumps([endpoint.requests, endpoint.headers])
    assert "hunter2" not in str(asked.gateway.journal.lines)


def test_another_machine_needs_a_redactor(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without redaction"):
        teacher(tmp_path, openai("https://api.example.com/v1"))
    teacher(tmp_path, openai("https://api.example.com/v1"), redact=lambda given: given)


@pytest.mark.parametrize("extra", [{"max_tokens": 1000}, {"max_completion_tokens": 1000}, {"n": 16}])
def test_longer_answers_by_extra_are_kept_within_the_budget(tmp_path: Path, extra: dict[str, Any]) -> None:
    """64 tokens at 1 US dollar a million fit into 0.0005 US dollars; 1000, or 16 answers of 64, do not."""
    gateway = Gateway(budget=Budget(0.0005))
    with serving(completion("hi", usage=(0, 1000, 0))) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url, extra=extra), price=Price(0.0, 1.0), gateway=gateway)
        with pytest.raises(BudgetReached):
            asked.answer([ask()], SAMPLING)
    assert (endpoint.requests, gateway.budget.paid) == ([], 0.0)


def test_a_surprising_bill_starts_no_call_on_money_that_those_under_way_will_need(tmp_path: Path) -> None:
    """An answer may have 64 tokens. The first has; of the next eight, at once, the first is billed at 6,400 tokens.

    The budget is 22,400 tokens. The seven under way may cost as much, 51,200 in all, so nothing starts beside them and
    nothing after them: 64 + 8 x 6,400 are paid. Before they ended there was money for a ninth, and for two: by what
    had been set aside for them, 64 each.
    """
    path, price = tmp_path / "calls.jsonl", Price(0.0, 1.0)
    gateway = Gateway(budget=Budget(0.0224), journal=Journal(path))

    def answer(body: dict[str, Any]) -> Reply:
        place = len(endpoint.requests)
        said = completion("hi", usage=(10, 64 if place == 1 else 6400, 0), model="asked-1")
        return Reply(said.body, wait=0.0 if place == 1 else 0.7 if place == 2 else 1.4)

    async def everyone() -> list[object]:
        async with asked.connected():
            asks = (asked.ask(ask(f"weather {number}?"), SAMPLING) for number in range(20))
            return list(await asyncio.gather(*asks, return_exceptions=True))

    with serving(answer=answer) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=price, limits=Limits(8), gateway=gateway)
        said = asyncio.run(everyone())
        assert len(endpoint.requests) == 9
        assert sum(isinstance(one, BudgetReached) for one in said) == 11
        assert gateway.budget.paid == pytest.approx((64 + 8 * 6400) / 1e6)
        # Another run knows of it: money for one such bill is not enough for a call that may be the next.
        short = Gateway(budget=Budget(0.0576, paid=gateway.budget.paid), journal=Journal(path))
        again = teacher(tmp_path, openai(endpoint.base_url), price=price, gateway=short)
        with pytest.raises(BudgetReached):
            again.answer([ask("another?")], SAMPLING)
    assert short.journal.surprise("http") == 0.0064


def broken_first() -> Script:
    """Every request gets a broken answer the first time. Each is billed 20 tokens either way."""
    seen: set[str] = set()

    def answer(body: dict[str, Any]) -> Reply:
        text = body["messages"][0]["content"]
        known = text in seen
        seen.add(text)
        return Reply(completion("hi").body, wait=0.02) if known else Reply(b"{", wait=0.02)

    return answer


def at_once(asked: NetworkTeacher, count: int) -> list[object]:
    async def everyone() -> list[object]:
        async with asked.connected():
            asks = (asked.ask(ask(f"weather {number}?"), SAMPLING) for number in range(count))
            return list(await asyncio.gather(*asks, return_exceptions=True))

    return asyncio.run(everyone())


def test_a_burst_of_broken_answers_pins_no_budget(tmp_path: Path) -> None:
    """An answer may have 64 tokens and has 20, and the first try of each is lost: 40 a call, 320 of 330 for eight.

    Of eight calls at once five fit (5 x 64) when the first is known; were each lost one asked again only with 64 of its
    own, or behind new ones, 320 would be held by five lost tries, and nothing would be answered any more.
    """
    gateway = Gateway(budget=Budget(330e-6))
    gateway.random.uniform = lambda a, b: 0.01  # type: ignore[method-assign]
    with serving(answer=broken_first()) as endpoint:
        url, price = openai(endpoint.base_url), Price(0.0, 1.0)
        asked = teacher(tmp_path, url, price=price, limits=Limits(8), gateway=gateway)
        said = at_once(asked, 8)
    answered = sum(isinstance(one, tuple) and one[0].message == HI for one in said)
    assert len(endpoint.requests) * 20e-6 <= 330e-6
    assert answered >= 6  # a call more needs 64 beside 40 for each before it: 6 x 40 + 64 is within 330, 7 x 40 is not
    assert gateway.budget.paid == gateway.budget.uncertain == pytest.approx(answered * 20e-6)


def test_what_a_call_might_cost_at_most_still_holds_when_it_is_asked_again(tmp_path: Path) -> None:
    """The second of three asks of a trace begins with the first, which was billed, so its bound is close. It is lost,
    and by the time of its retry the third was billed, with which it does not begin."""
    gateway = Gateway(budget=Budget(1.0))
    texts = ["weather? " * 40, "and in Rome?", "and in Oslo?"]
    asks = [Ask(tuple(Message.of("user", text) for text in texts[: count + 1]), (WEATHER,)) for count in range(3)]

    def answer(body: dict[str, Any]) -> Reply:
        return Reply(b"{") if len(endpoint.requests) == 2 else completion("hi", model="asked-1")

    async def one_after_the_other() -> None:
        async with asked.connected():
            await asked.ask(asks[0], SAMPLING, trace="t")
            lost = asyncio.create_task(asked.ask(asks[1], SAMPLING, trace="t"))
            while len(endpoint.requests) < 2:
                await asyncio.sleep(0.01)
            await asyncio.gather(lost, asked.ask(asks[2], SAMPLING, trace="t"))

    with serving(answer=answer) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(1.0, 0.0), gateway=gateway)
        gateway.budget.require_turn = lambda key: None  # type: ignore[method-assign]
        asyncio.run(one_after_the_other())
    sent = [(line.key, line.reserved) for line in gateway.journal.lines if line.event == "sent"]
    assert len(sent) == 4
    assert sent[3] == sent[1] != sent[2]


@pytest.mark.parametrize("tokens", [200, 1000])
def test_workers_never_overrun_a_budget_by_lost_tries(tmp_path: Path, tokens: int) -> None:
    """The endpoint bills 20 tokens for every request, and breaks off every third answer. Some are lost three times."""
    gateway = Gateway(budget=Budget(tokens / 1e6))
    gateway.random.uniform = lambda a, b: 0.01  # type: ignore[method-assign]

    def answer(body: dict[str, Any]) -> Reply:
        return Reply(b"{") if len(endpoint.requests) % 3 == 1 else Reply(completion("hi").body, wait=0.02)

    with serving(answer=answer) as endpoint:
        url, price = openai(endpoint.base_url), Price(0.0, 1.0)
        asked = teacher(tmp_path, url, price=price, limits=Limits(8), gateway=gateway)
        at_once(asked, 80)
    billed = 20 * len(endpoint.requests)
    assert gateway.budget.stopped
    assert 0.5 * tokens < billed <= tokens


def test_no_budget_holds_where_extra_takes_the_limit_of_an_answer_out(tmp_path: Path) -> None:
    endless = openai("http://127.0.0.1:1", extra={"max_tokens": None})
    asked = teacher(tmp_path, endless, price=Price(0.0, 1.0), gateway=Gateway(budget=Budget(1.0)))
    with pytest.raises(ConfigError, match="answers of any length"):
        asked.answer([ask()], SAMPLING)


def test_a_journal_that_cannot_be_written_holds_nobody_up(tmp_path: Path) -> None:
    """The money is enough for one call: the second waits for the first, which ends with the disk's error."""
    gateway = Gateway(budget=Budget(0.0015), journal=Journal(tmp_path / "calls.jsonl"))
    (tmp_path / "calls.jsonl").mkdir()
    asked = teacher(tmp_path, openai("http://127.0.0.1:1"), price=Price(1.0, 1.0), gateway=gateway)

    async def both() -> None:
        async with asyncio.timeout(20), asked.connected():
            first, second = (asked.ask(ask(text), SAMPLING) for text in "ab")
            told = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(one) for one in told] == [OutsideFailure, OutsideFailure]

    asyncio.run(both())
    assert gateway.budget.uncertain == 0.0  # nothing left


def test_constrained_decoding_is_refused(tmp_path: Path) -> None:
    with serving(completion("hi")) as endpoint, pytest.raises(ConfigError, match="local models"):
        teacher(tmp_path, openai(endpoint.base_url)).answer([ask()], Sampling(constrained=True))


def test_an_answer_without_a_bill_is_money_that_may_be_gone(tmp_path: Path) -> None:
    with serving(completion("hi", usage=None)) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(1.0, 1.0))
        (answer,) = asked.answer([ask()], SAMPLING)
    assert (answer.message, answer.cost) == (HI, None)
    assert asked.gateway.budget.uncertain > 0


def test_what_a_recipe_adds_to_a_request_is_weighed(tmp_path: Path) -> None:
    """A schema for the answer is read by the model too: a token a byte at most, at 1 US dollar a token."""
    added = {"response_format": {"type": "json_schema", "json_schema": {"name": "x" * 500}}}
    reserved = []
    with serving(completion("hi")) as endpoint:
        for name, extra in (("plain", {}), ("more", added)):
            gateway = Gateway()
            asked = teacher(
                tmp_path / name, openai(endpoint.base_url, extra=extra), price=Price(1e6, 0.0), gateway=gateway
            )
            asked.answer([ask()], SAMPLING)
            reserved += [line.reserved for line in gateway.journal.lines if line.event == "sent"]
    assert reserved[1] - reserved[0] == pytest.approx(len(canonical_json(added)))
