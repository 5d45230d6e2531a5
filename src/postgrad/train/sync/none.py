"""No sync: one replica, which nothing has to be kept together with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic.dataclasses import dataclass

from postgrad.train.settings import STRICT

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, config=STRICT)
class NoSync:
    """The settings, none, and the sync itself, which does nothing."""

    name: ClassVar[str] = "sync"
    replica: ClassVar[int] = 0
    replicas: ClassVar[int] = 1

    def build(self, parameters: Mapping[str, nn.Parameter], *, steps: int, rank: int) -> NoSync:
        """There is nothing to make."""
        return self

    def agree(self, steps: Sequence[int]) -> int | None:
        """The newest."""
        return max(steps, default=None)

    @property
    def together(self) -> bool:
        """There is no other."""
        return False

    def before_save(self, step: int) -> None:
        """Nobody waits."""

    def begin(self) -> None:
        """Weights stay as they are."""

    def finish(self) -> None:
        """Nobody waits."""

    def after_step(self, step: int) -> None:
        """Nothing happens."""

    def tensors(self) -> dict[str, Tensor]:
        """None."""
        return {}

    def state(self) -> dict[str, Any]:
        """None."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """There is nothing to take back."""
