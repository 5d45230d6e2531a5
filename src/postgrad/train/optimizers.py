"""Optimisers by name. Each is a frozen class: its fields are the recipe's `optim.settings`, `build` makes it.

    name        from                     state a weight          paper
    adamw       torch                    2 numbers               arXiv:1711.05101
    adamw8bit   pytorch-optimizer        2 bytes                 arXiv:2110.02861
    adafactor   torch                    a row and a column      arXiv:1804.04235
    galore      pytorch-optimizer        2 numbers per rank row  arXiv:2403.03507
    lion        pytorch-optimizer        1 number                arXiv:2302.06675
    muon        torch (and its AdamW)    1 number                https://kellerjordan.github.io/posts/muon/
    sgd         torch                    0 or 1 number

Learning rate, weight decay, clipping and schedule are the loop's and common to all. torch is imported when one is
built, so that a configuration can be checked without it; a library that is not installed is an error that says what
to install. An optimiser of your own is `module:Class` with the same two things: fields, and `build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from postgrad.core.errors import MissingDependency
from postgrad.train.settings import STRICT, Beta, Count, Positive

if TYPE_CHECKING:
    import torch

    from postgrad.train.groups import Group


@dataclass(frozen=True, config=STRICT)
class AdamW:
    """Adam with decoupled weight decay."""

    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay of the two moments."""
    eps: Positive = 1e-8
    """Added to the root of the second moment."""

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """One optimiser over all groups."""
        import torch

        return [torch.optim.AdamW(_plain(groups), betas=self.betas, eps=self.eps)]


@dataclass(frozen=True, config=STRICT)
class AdamW8bit:
    """AdamW whose moments are bytes with one half-precision scale for every 32.

    A momentum below 6e-8 throughout its 32 is lost, so gradients must not all be that small.
    """

    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay of the two moments."""
    eps: Positive = 1e-8
    """Added to the root of the second moment."""

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """One optimiser over all groups.

        Raises:
            MissingDependency: pytorch-optimizer is not installed.
        """
        return [_pytorch_optimizer().FlashAdamW(_plain(groups), betas=self.betas, eps=self.eps)]


@dataclass(frozen=True, config=STRICT)
class Adafactor:
    """Second moments factored into a row and a column; `d` clips the update, small weights move relative to eps2."""

    beta2_decay: Annotated[float, Field(lt=0)] = -0.8
    """The second moment's decay at step t is 1 − t^beta2_decay."""
    eps1: Positive | None = None
    """Added to the squared gradient; null takes the number format's own."""
    eps2: Positive = 1e-3
    """Smallest root mean square that a weight's step is relative to."""
    d: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    """Largest root mean square of an update before the learning rate."""

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """One optimiser over all groups."""
        import torch

        eps = (self.eps1, self.eps2)
        return [torch.optim.Adafactor(_plain(groups), beta2_decay=self.beta2_decay, eps=eps, d=self.d)]


@dataclass(frozen=True, config=STRICT)
class GaLore:
    """AdamW in a low-rank subspace of each hidden matrix's gradient, found anew every so many steps."""

    rank: Count = 128
    """Rank of the subspace; matrices with a side no longer than it are left whole."""
    update_every: Count = 200
    """Steps between two decompositions."""
    scale: Positive = 0.25
    """Scale of the update that is projected back."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay of the two moments."""
    eps: Positive = 1e-6
    """Added to the root of the second moment."""

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """One optimiser; hidden matrices larger than `rank` are projected, everything else is plain AdamW.

        Raises:
            MissingDependency: pytorch-optimizer is not installed.
        """
        low = {
            "rank": self.rank,
            "update_proj_gap": self.update_every,
            "scale": self.scale,
            "projection_type": "std",
        }
        parts = []
        for group in groups:
            projected = [p for p in group.parameters if group.hidden and min(p.shape) > self.rank]
            chosen = {id(p) for p in projected}
            rest = [p for p in group.parameters if id(p) not in chosen]
            parts += [group.section(projected) | low] if projected else []
            parts += [group.section(rest)] if rest else []
        return [_pytorch_optimizer().GaLore(parts, betas=self.betas, eps=self.eps)]


@dataclass(frozen=True, config=STRICT)
class Lion:
    """The sign of an interpolated momentum: every weight moves by the learning rate."""

    betas: tuple[Beta, Beta] = (0.9, 0.99)
    """Interpolation of the update, and decay of the momentum."""

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """One optimiser over all groups.

        Raises:
            MissingDependency: pytorch-optimizer is not installed.
        """
        return [_pytorch_optimizer().Lion(_plain(groups), betas=self.betas)]


@dataclass(frozen=True, config=STRICT)
class Muon:
    """Orthogonalised momentum for hidden matrices; AdamW for embeddings, head and vectors.

    The update of a matrix is scaled to the root mean square that AdamW's has, so one learning rate serves both.
    """

    momentum: Beta = 0.95
    """Decay of the momentum."""
    nesterov: bool = True
    """Look one step ahead."""
    ns_steps: Annotated[int, Field(ge=1, le=20)] = 5
    """Newton-Schulz iterations."""
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    """AdamW's."""
    eps: Positive = 1e-8
    """AdamW's."""

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """Muon, and AdamW where something is left for it."""
        import torch

        hidden, others = [g for g in groups if g.hidden], [g for g in groups if not g.hidden]
        built: list[torch.optim.Optimizer] = []
        if hidden:
            options: dict[str, Any] = {"momentum": self.momentum, "nesterov": self.nesterov, "ns_steps": self.ns_steps}
            built.append(torch.optim.Muon(_plain(hidden), adjust_lr_fn="match_rms_adamw", **options))
        if others:
            built.append(torch.optim.AdamW(_plain(others), betas=self.betas, eps=self.eps))
        return built


@dataclass(frozen=True, config=STRICT)
class SGD:
    """w ← w − lr · g, or of g's momentum."""

    momentum: Beta = 0.0
    """Decay of the momentum; 0 keeps none."""
    nesterov: bool = False
    """Look one step ahead; needs momentum."""

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        return self

    def build(self, groups: Sequence[Group]) -> list[torch.optim.Optimizer]:
        """One optimiser over all groups."""
        import torch

        return [torch.optim.SGD(_plain(groups), momentum=self.momentum, nesterov=self.nesterov)]


def _plain(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [group.section(group.parameters) for group in groups]


def _pytorch_optimizer() -> Any:
    try:
        import pytorch_optimizer
    except ImportError:
        raise MissingDependency("pytorch-optimizer", extra="optim") from None
    return pytorch_optimizer
