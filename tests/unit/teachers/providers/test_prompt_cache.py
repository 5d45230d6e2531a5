"""Rules of prompt caches, and what bills say of them."""

from __future__ import annotations

import pytest

from postgrad.teachers.providers.prompt_cache import RULES, Bills, RuleName


@pytest.mark.parametrize(
    ("rule", "tokens", "found"),
    [
        ("none", 5000, 0),
        ("openai", 1023, 0),
        ("openai", 1024, 1024),
        ("openai", 1300, 1280),
        ("anthropic", 1023, 0),
        ("anthropic", 1300, 1300),
        ("all", 7, 7),
    ],
)
def test_rules(rule: RuleName, tokens: int, found: int) -> None:
    assert RULES[rule].found(tokens) == found


def bills(*pairs: tuple[float, int]) -> Bills:
    made = Bills()
    for beginning, cached in pairs:
        made.add(beginning, cached)
    return made


def test_without_a_bill_an_api_is_taken_at_its_word() -> None:
    assert Bills().expected("openai").told == "openai, assumed"


def test_bills_that_name_no_cache_where_there_should_have_been_one_say_that_there_is_none() -> None:
    """A beginning of 500 tokens says nothing about a rule that starts at 1024, and all about one that starts at 1."""
    assert bills((2000, 0)).expected("openai").told == "none, as billed"
    assert bills((500, 0)).expected("all").told == "none, as billed"
    assert bills((500, 0)).expected("openai").told == "openai, assumed"


def test_the_nearest_rule_counts_with_what_it_is_off_by() -> None:
    """1300 and 500 billed as found whole: "all". 1280 and 0: OpenAI's. Half of everything: half of the nearest, which
    is OpenAI's 1280 (650 + 250 = 900 against 1280, 1300 and 1800); never more than the whole beginning."""
    assert bills((1300, 1300), (500, 500)).expected("openai").told == "all, as billed"
    assert bills((1300, 1280), (500, 0)).expected("all").told == "openai, as billed"
    half = bills((1300, 650), (500, 250)).expected("openai")
    assert (half.name, half.share) == ("openai", pytest.approx(900 / 1280))
    more = bills((1300, 2600)).expected("all")
    assert more.found(1000) == 1000


def test_a_cache_that_nobody_assumed_is_found_by_its_bills() -> None:
    assert bills((500, 400)).expected("none").told == "all, as billed"
