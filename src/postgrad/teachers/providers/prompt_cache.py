"""What a provider's prompt cache will hold of a request: the rules of APIs, and which of them the bills speak for.

A rule says how many tokens of a beginning that was asked before are found again. Before the first bill an API is taken
at its word; after some bills the rule that comes nearest to what they named as cached counts, times what it is off by.
A provider whose bills name no cache has none, whatever its price table says. How long a cache keeps is data
(`prices.yaml`), and for `asked` to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

RuleName = Literal["none", "openai", "anthropic", "all"]


@dataclass(frozen=True)
class Rule:
    """Beginnings of `shortest` tokens or more are kept, in units of `unit` tokens; `unit` 0 keeps nothing."""

    shortest: int
    unit: int

    def found(self, tokens: float) -> float:
        """How much is found of a beginning of so many tokens that was asked before."""
        if self.unit == 0 or tokens < self.shortest:
            return 0.0
        return tokens if self.unit == 1 else tokens // self.unit * self.unit


RULES: Mapping[RuleName, Rule] = {
    "none": Rule(0, 0),
    "openai": Rule(1024, 128),
    "anthropic": Rule(1024, 1),
    "all": Rule(1, 1),
}
"""none; OpenAI: 1024 tokens or more, in blocks of 128; Anthropic: 1024 or more, up to a mark (some models: 2048 or
4096); all: whatever was asked before, as servers of one's own do."""


@dataclass(frozen=True)
class Expected:
    """What is expected of a prompt cache: a rule, how much of it comes true, and whether bills said so."""

    name: RuleName
    share: float = 1.0
    billed: bool = False

    def found(self, tokens: float) -> float:
        """How much is expected to be found of a beginning that was asked before; never more than all of it."""
        return min(tokens, self.share * RULES[self.name].found(tokens))

    @property
    def told(self) -> str:
        """In words."""
        return f"{self.name}, {'as billed' if self.billed else 'assumed'}"


@dataclass
class Bills:
    """What bills named as cached, beside what each rule says; both in the provider's own tokens."""

    followed: int = 0
    cached: float = 0.0
    by_rule: dict[RuleName, float] = field(default_factory=lambda: dict.fromkeys(RULES, 0.0))

    def add(self, beginning: float, cached: int) -> None:
        """One bill of a request of which `beginning` tokens had been asked before."""
        self.followed += 1
        self.cached += cached
        for name, rule in RULES.items():
            self.by_rule[name] += rule.found(beginning)

    def expected(self, assumed: RuleName) -> Expected:
        """By the bills where some could have named a cache under `assumed` or any other rule, else as assumed."""
        if not self.cached:
            could = self.by_rule[assumed] > 0 or (assumed == "none" and self.followed > 0)
            return Expected("none", billed=True) if could else Expected(assumed)
        near = self._nearest((assumed, *RULES))
        return Expected(near, self.cached / self.by_rule[near], billed=True)

    def _nearest(self, names: Iterable[RuleName]) -> RuleName:
        """The first of those that are nearest."""
        able = [name for name in names if self.by_rule[name] > 0]
        return min(able, key=lambda name: abs(self.by_rule[name] - self.cached), default="none")
