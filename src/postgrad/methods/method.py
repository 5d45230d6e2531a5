"""What a method is: a frozen class whose fields are its configuration and which annotates tokens.

`weights()` says which channels it feeds and with which weight; `source(...)` gives the loop its units, step by step.
A method never steps an optimiser and never sees a loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from postgrad.core.annotation import Unit

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


class UnitSource(Protocol):
    """Units of one optimiser step; deterministic given the policy's weights, the seed and the step."""

    def units(self, step: int) -> Sequence[Unit]:
        """Units of optimiser step `step`, the first being 0."""
        ...

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold beside the step, as plain JSON."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        ...


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

    def source(self, policy: Policy, *, seed: int) -> UnitSource:
        """The units for `policy`.

        Raises:
            DataError: there is nothing to train on.
        """
        ...
