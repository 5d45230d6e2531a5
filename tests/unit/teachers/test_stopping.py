"""A replay that is asked to end: who waits is woken, who asks is refused, and what is under way goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from postgrad.teachers.claims import claimed
from postgrad.teachers.gateway import Gateway, Limits
from postgrad.teachers.money.budget import Budget
from postgrad.teachers.money.prices import Price
from postgrad.teachers.stopping import Interrupted, Stop
from unit.teachers.asking import SAMPLING, ask, openai, teacher
from unit.teachers.endpoint_by_script import ERROR, Reply, completion, serving


def test_a_sleeper_is_woken_from_another_thread_and_nobody_sleeps_afterwards() -> None:
    stop = Stop()

    async def sleeper() -> None:
        threading.Timer(0.1, stop.ask).start()
        await stop.sleep(60.0)

    started = time.monotonic()
    for _ in range(2):  # the second in a loop of its own
        with pytest.raises(Interrupted):
            asyncio.run(sleeper())
    assert time.monotonic() - started < 5.0


def test_a_sleep_that_nobody_disturbs_is_one() -> None:
    started = time.monotonic()
    asyncio.run(Stop().sleep(0.05))
    assert time.monotonic() - started >= 0.04


def test_what_is_under_way_is_answered_and_the_others_are_not_asked(tmp_path: Path) -> None:
    """Four asks, two places; the first goes alone. At the third call it is asked to end: two are under way then."""
    gateway = Gateway(budget=Budget(1.0))

    async def everything() -> list[object]:
        async with asked.connected():
            asks = (asked.ask(ask(f"weather in {city}?"), SAMPLING) for city in ("Rome", "Oslo", "Lima", "Bonn"))
            return list(await asyncio.gather(*asks, return_exceptions=True))

    def answer(body: object) -> Reply:
        if len(endpoint.requests) == 3:
            gateway.stop.ask()
        return Reply(completion("warm").body | {"model": "asked-1"}, wait=0.2)

    with serving(answer=answer) as endpoint:
        price = Price(1.0, 1.0)
        asked = teacher(tmp_path, openai(endpoint.base_url), price=price, limits=Limits(2), gateway=gateway)
        said = asyncio.run(everything())
    assert len(endpoint.requests) == 3
    assert [isinstance(one, Interrupted) for one in said].count(True) == 1
    assert gateway.budget.paid == pytest.approx(3 * 120e-6)
    assert gateway.budget.uncertain == 0.0


def test_a_call_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    gateway = Gateway()

    def fail(body: object) -> Reply:
        gateway.stop.ask()
        return Reply(ERROR, status=500)

    with serving(answer=fail) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), gateway=gateway)
        with pytest.raises(Interrupted):
            asked.answer([ask()], SAMPLING)
    assert len(endpoint.requests) == 1


def test_whoever_waits_for_another_process_does_not_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postgrad.teachers.claims._lock", lambda file, place: False)  # it holds the claim for good
    stop = Stop()

    async def wait() -> None:
        threading.Timer(0.1, stop.ask).start()
        async with claimed(tmp_path, "a" * 40, sleep=stop.sleep):
            pass

    with pytest.raises(Interrupted):
        asyncio.run(wait())
