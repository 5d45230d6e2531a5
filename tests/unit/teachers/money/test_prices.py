"""Prices: tokens of every kind, the table, and what is no price."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgrad.core.errors import ConfigError
from postgrad.teachers.money.prices import Batch, Price, kept_seconds, read_prices


def test_every_kind_of_token_has_its_price() -> None:
    """Of 1,000 tokens 600 were cached and 300 written: 100 x 2 + 600 x 0.2 + 300 x 2.5 + 50 x 10 = 1,570 / 1e6."""
    price = Price(2.0, 10.0, cached_input=0.2, cache_write=2.5)
    assert price.cost(prompt_tokens=1000, completion_tokens=50, cached=600, written=300) == pytest.approx(0.00157)
    assert price.dearest_input == 2.5
    assert price.rewards_order


def test_without_a_discount_cached_tokens_cost_as_much_as_others() -> None:
    assert Price(2.0, 10.0).cost(prompt_tokens=1000, completion_tokens=0, cached=900) == 0.002
    assert not Price(2.0, 10.0).rewards_order


def test_batch_as_a_share_and_as_prices() -> None:
    """Full price of 1e6 in and 1e6 out: 12 US dollars."""
    tokens = {"prompt_tokens": 1e6, "completion_tokens": 1e6}
    assert Price(2.0, 10.0, batch=0.5).batch_cost(**tokens) == 6.0
    assert Price(2.0, 10.0, batch=Batch(0.5, 3.0)).batch_cost(**tokens) == 3.5
    assert Price(2.0, 10.0).batch_cost(**tokens) is None


def test_the_shipped_table_is_dated_and_knows_versions() -> None:
    table = read_prices()
    assert len(table.as_of) == 10
    assert table.of("gpt-4o-2024-08-06") == table.models["gpt-4o"]
    assert table.of("claude-sonnet-4-20250514") == table.models["claude-sonnet-4"]
    assert table.of("openai/gpt-5-mini") == table.models["gpt-5-mini"]
    assert table.of("teacher-a") is None


@pytest.mark.parametrize(
    "text",
    [
        "models: {m: {in: 1}}",
        'as_of: "2026-01-01"\nmodels: {m: {input: 1}}',
        'as_of: "2026-01-01"\nmodels: {m: {input: -1, output: 1}}',
        'as_of: "2026-01-01"\nmodels: {m: {input: .nan, output: 1}}',
        'as_of: "2026-01-01"\nmodels: {m: {input: 1, output: 1, batch: 50}}',
        "{",
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, text: str) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot use the price file"):
        read_prices(own)


def test_an_own_table_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text('as_of: "2026-01-01"\nmodels: {m: {input: 1, output: 2, batch: 0.5}}\n', encoding="utf-8")
    assert read_prices(own).models == {"m": Price(1.0, 2.0, batch=0.5, as_of="2026-01-01")}


def test_how_long_prompt_caches_keep_is_dated_and_may_be_given(tmp_path: Path) -> None:
    """Five minutes are what OpenAI's and Anthropic's documentation promises; a file says it for the rules it names."""
    shipped = read_prices().prompt_caches
    assert shipped is not None
    assert len(shipped.as_of) == 10
    assert (kept_seconds()["openai"], kept_seconds()["anthropic"]) == (300, 300)
    own = tmp_path / "prices.yaml"
    own.write_text(
        'as_of: "2026-01-01"\nmodels: {}\nprompt_caches: {as_of: "2026-01-02", seconds: {openai: 86400}}\n', "utf-8"
    )
    assert kept_seconds(own) == {**kept_seconds(), "openai": 86400}
    own.write_text('as_of: "2026-01-01"\nmodels: {}\n', encoding="utf-8")
    assert kept_seconds(own) == kept_seconds()
