"""Benchmark names: "environment/split" or "environment/split:n", as recipes and reports write them.

The environment is a short name or `module:Class`. `n` draws that many tasks by the evaluation's seed. A report's key
is the name without n; answers under the tools' grammar are kept apart as "environment/split@constrained".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from postgrad.core.errors import ConfigError

Mode = Literal["free", "constrained"]

_NAME = re.compile(r"(?P<environment>[^/\s]+)/(?P<split>[^/:@\s]+)(?::(?P<n>[1-9]\d*))?")


@dataclass(frozen=True)
class Benchmark:
    """Which environment, which split, and how many of its tasks (None: all)."""

    environment: str
    split: str
    n: int | None = None

    @classmethod
    def parse(cls, text: str) -> Benchmark:
        """Read a name.

        Raises:
            ConfigError: it is not of the form environment/split[:n].
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise ConfigError("not a benchmark", got=text, expected="environment/split or environment/split:n")
        n = match["n"]
        return cls(match["environment"], match["split"], int(n) if n else None)

    def key(self, mode: Mode) -> str:
        """Name the benchmark as reports and gates do."""
        plain = f"{self.environment}/{self.split}"
        return plain if mode == "free" else f"{plain}@{mode}"

    def subset(self, seed: int) -> str:
        """Say in words which tasks are asked."""
        return "all" if self.n is None else f"{self.n} drawn with seed {seed}"
