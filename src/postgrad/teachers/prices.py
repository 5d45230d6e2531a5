"""Prices of models: a dated data file, because a price in code is a wrong price soon.

A model without a price costs None, reports say "unknown", and a budget for it is refused. Not covered: cached input,
batch discounts, reasoning that is billed and not reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from postgrad.core.errors import ConfigError

SHIPPED = Path(__file__).with_name("prices.yaml")


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: float
    output: float

    def cost(self, *, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for one call."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices by model id and the day they were read."""

    as_of: str
    models: dict[str, Price]


def read_prices(path: Path | None = None) -> PriceTable:
    """Read a price file, by default the shipped one.

    Raises:
        ConfigError: it is missing or not of the form.
    """
    source = path or SHIPPED
    try:
        value: Any = yaml.safe_load(source.read_text(encoding="utf-8"))
        return msgspec.convert(value, PriceTable)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"cannot use the price file {source}: {error}",
            expected="as_of: DATE, models: {MODEL: {input: USD, output: USD}} per million tokens",
        ) from None
