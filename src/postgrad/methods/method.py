"""What a method is: a frozen class whose fields are its configuration and which annotates tokens.

`weights()` says which channels it feeds and with which weight; `source(...)` gives the loop its units, step by step.
A method never steps an optimiser and never sees a loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.train.contracts import FitnessSource, UnitSource


@runtime_checkable
class Counted(Protocol):
    """A source that knows what became of its rows: used, dropped and why, split."""

    rows: Mapping[str, int]


class Method(Protocol):
    """Configuration and behaviour of one method."""

    def weights(self) -> Mapping[str, float]:
        """Channel name to weight; a channel that is not named gets nothing."""
        ...

    def check(self, channels: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse channel settings that the method cannot serve.

        Raises:
            ConfigError: such a setting.
        """
        ...

    def data(self) -> Sequence[Path]:
        """Files that the method reads."""
        ...

    def source(self, policy: Policy, *, seed: int) -> UnitSource | FitnessSource:
        """The units for `policy`, or for an evolution strategy its fitness.

        Raises:
            DataError: there is nothing to train on.
        """
        ...
