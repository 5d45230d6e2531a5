"""Prices of models: a dated data file, because a price in code is a wrong price soon.

Rows are US dollars per million tokens; beside them stands how long providers' prompt caches keep what they hold. A
metered model without a price stops a replay before any call. Not covered:
reasoning that is billed and not reported, surcharges for long prompts, taxes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from postgrad.core.errors import ConfigError
from postgrad.teachers.providers.prompt_cache import RuleName
from postgrad.teachers.providers.served import same_model

SHIPPED = Path(__file__).with_name("prices.yaml")


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens in a provider's batch API."""

    input: float
    output: float


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens.

    Attributes:
        input: of prompt tokens.
        output: of completion tokens.
        cached_input: of prompt tokens that the provider's prompt cache held; None where it gives no discount.
        cache_write: of prompt tokens that are written into that cache, where this costs extra.
        batch: of the provider's batch API: a share of the full price (0.5 is half), or prices; None without one.
        prompt_cache: which beginnings that cache keeps, for plans; None: as the API's own provider does.
        as_of: the day a price table was read; None for a price of the user's own.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    batch: float | Batch | None = None
    prompt_cache: RuleName | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        batch = (self.batch.input, self.batch.output) if isinstance(self.batch, Batch) else (self.batch,)
        values = (self.input, self.output, self.cached_input, self.cache_write, *batch)
        if any(value is not None and not 0 <= value < math.inf for value in values):
            raise ValueError("a price is a number of at least 0")
        if isinstance(self.batch, float | int) and self.batch > 1:
            raise ValueError("`batch` as a number is a share of the full price, at most 1")

    def cost(self, *, prompt_tokens: float, completion_tokens: float, cached: float = 0, written: float = 0) -> float:
        """US dollars for one call; `cached` and `written` are the parts of the prompt tokens that the cache changed."""
        reading = self.input if self.cached_input is None else self.cached_input
        writing = self.input if self.cache_write is None else self.cache_write
        plain = max(0, prompt_tokens - cached - written)
        dollars = plain * self.input + cached * reading + written * writing + completion_tokens * self.output
        return dollars / 1e6

    def batch_cost(self, *, prompt_tokens: float, completion_tokens: float) -> float | None:
        """US dollars in the batch API, where prompt caches cannot be counted on; None without one."""
        if self.batch is None:
            return None
        if isinstance(self.batch, Batch):
            return (prompt_tokens * self.batch.input + completion_tokens * self.batch.output) / 1e6
        return self.batch * self.cost(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)

    @property
    def dearest_input(self) -> float:
        """The most that a prompt token can cost."""
        return max(self.input, self.cached_input or 0.0, self.cache_write or 0.0)

    @property
    def free(self) -> bool:
        """Whether no token costs anything."""
        return self.dearest_input == self.output == 0

    @property
    def rewards_order(self) -> bool:
        """Whether asking a trace's steps one after the other is cheaper than all at once."""
        return self.cached_input is not None and self.cached_input < self.input


FREE = Price(0.0, 0.0)


class PromptCaches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds for which prompt caches keep a beginning that nobody asks for, by rule, and the day they were read."""

    as_of: str
    seconds: dict[RuleName, float]


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices by model id and the day they were read; a table may leave `prompt_caches` to the shipped one."""

    as_of: str
    models: dict[str, Price]
    prompt_caches: PromptCaches | None = None

    def of(self, model: str) -> Price | None:
        """The price of `model`, under its own name or as a version of a listed one; None if unknown."""
        listed = self.models.get(model)
        return listed or next((price for name, price in self.models.items() if same_model(name, model)), None)


def read_prices(path: Path | None = None) -> PriceTable:
    """Read a price file, by default the shipped one.

    Raises:
        ConfigError: it is missing or not of the form.
    """
    source = path or SHIPPED
    try:
        value: Any = yaml.safe_load(source.read_text(encoding="utf-8"))
        table = msgspec.convert(value, PriceTable)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"cannot use the price file {source}: {error}",
            expected="as_of: DATE, models: {MODEL: {input: USD, output: USD}} per million tokens",
        ) from None
    models = {name: msgspec.structs.replace(row, as_of=row.as_of or table.as_of) for name, row in table.models.items()}
    return msgspec.structs.replace(table, models=models)


def kept_seconds(path: Path | None = None) -> Mapping[RuleName, float]:
    """How long prompt caches keep a beginning, by rule: the shipped numbers, and over them those of the file at `path`.

    Raises:
        ConfigError: the file is missing or not of the form.
    """
    tables = [read_prices(), *([] if path is None else [read_prices(path)])]
    caches = [table.prompt_caches for table in tables if table.prompt_caches is not None]
    return {rule: seconds for one in caches for rule, seconds in one.seconds.items()}
