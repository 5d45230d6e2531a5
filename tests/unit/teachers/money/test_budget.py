"""Money: many workers, one limit."""

from __future__ import annotations

import asyncio

import pytest

from postgrad.core.errors import ConfigError
from postgrad.teachers.money.budget import Budget, BudgetReached


async def work(budget: Budget, *, most: float, cost: float, bills: list[float]) -> None:
    """One worker: calls until it is stopped."""
    while True:
        try:
            held = await budget.reserve(most)
        except BudgetReached:
            return
        await asyncio.sleep(0)
        bills.append(cost)
        await budget.settle(held, paid=cost)


@pytest.mark.parametrize("workers", [1, 8])
def test_workers_never_overrun_a_budget_and_leave_less_than_one_call(workers: int) -> None:
    """A call may cost 10, costs 4, limit 25: 0, 4, 8, 12 let one through, 16 + 10 is too much. Paid 16, by any number.

    Eight workers ask at once; only two reservations fit, and the others wait for them instead of giving up.
    """
    budget, bills = Budget(25.0), list[float]()

    async def everyone() -> None:
        await asyncio.gather(*(work(budget, most=10.0, cost=4.0, bills=bills) for _ in range(workers)))

    asyncio.run(everyone())
    assert budget.paid == sum(bills) == 16.0
    assert budget.stopped


def test_money_that_may_be_gone_counts() -> None:
    async def calls() -> None:
        await budget.settle(await budget.reserve(10.0), uncertain=10.0)
        with pytest.raises(BudgetReached):
            await budget.reserve(10.0)

    budget = Budget(19.0)
    asyncio.run(calls())
    assert (budget.paid, budget.uncertain) == (0.0, 10.0)


def test_what_is_set_aside_is_raised_where_a_bill_was_more_than_it_could_be() -> None:
    """Three calls of a may cost 2, one of b 1; the first is billed at 7, 3.5 times as much: the others count as 7 each.

    7 + 7 + 7 + 1 = 22 of 25 are held or paid: 4 more do not fit before one of them has settled at 2, 3 do at once.
    """

    async def calls() -> None:
        first, second, _ = [await budget.reserve(2.0, whose="a") for _ in range(3)]
        await budget.reserve(1.0, whose="b")
        budget.expect("a", times=3.5, least=6.0)
        await budget.settle(first, paid=7.0)
        await budget.settle(await asyncio.wait_for(budget.reserve(3.0, whose="b"), 1.0))
        waiting = asyncio.create_task(budget.reserve(4.0, whose="b"))
        await asyncio.sleep(0)
        assert not waiting.done()
        await budget.settle(second, paid=2.0)
        await asyncio.wait_for(waiting, 1.0)

    budget = Budget(25.0)
    asyncio.run(calls())
    assert budget.paid == 9.0


def test_what_is_set_aside_is_raised_to_the_bill_at_least_and_only_of_that_teacher() -> None:
    async def calls() -> None:
        small, other = await budget.reserve(0.5, whose="a"), await budget.reserve(0.5, whose="b")
        budget.expect("a", times=2.0, least=6.0)
        assert (small.amount, other.amount) == (6.0, 0.5)

    budget = Budget(25.0)
    asyncio.run(calls())


def test_once_it_is_over_it_is_over_for_everyone_but_the_free() -> None:
    async def calls() -> None:
        with pytest.raises(BudgetReached):
            await budget.reserve(2.0)
        with pytest.raises(BudgetReached):
            await budget.reserve(0.5)

    budget = Budget(1.0)
    asyncio.run(calls())


def test_earlier_runs_count() -> None:
    async def call() -> None:
        await Budget(1.0, paid=0.4, uncertain=0.2).reserve(0.4)
        with pytest.raises(BudgetReached):
            await Budget(1.0, paid=0.4, uncertain=0.2).reserve(0.41)

    asyncio.run(call())


def test_no_limit_lets_everything_through() -> None:
    async def calls() -> None:
        for _ in range(3):
            await budget.settle(await budget.reserve(1e9), paid=5.0)

    budget = Budget()
    asyncio.run(calls())
    assert (budget.paid, budget.stopped) == (15.0, False)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_what_is_no_amount_of_money_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match="no amount of money"):
        Budget(limit)
