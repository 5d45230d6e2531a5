"""`Channel`: one loss over one kind of item, as a plain sum; and `Scored`: what a forward pass hands it, teachers too.

A channel returns the SUM over its items in one forest and says how much it `count`s. The loop divides the sum by the
count of the whole optimiser step (all forests, all workers), so how units were packed, accumulated or spread cannot
change a loss. For the same reason a metric is a pair (total, n) and never a mean of means.

An item with weight 0 is masked: it is neither in the sum nor in the count.

Shapes: T tokens of the forest, N scored tokens, D hidden size, V vocabulary.
Not covered: losses that need more than one item at a time across forests (batch statistics).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict
from torch import Tensor

from postgrad.core.annotation import Span
from postgrad.core.forest import Forest

IntsN = NDArray[np.int64]
ItemT = TypeVar("ItemT")
ItemT_contra = TypeVar("ItemT_contra", contravariant=True)

# A channel is a frozen pydantic dataclass: its fields are its configuration; a misspelt one and a number
# that is none are errors.
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)


class Mean(NamedTuple):
    """A mean that can still be pooled: `total` summed over `n` things."""

    total: float
    n: float


Metrics = Mapping[str, Mean]


@dataclass(frozen=True)
class Placed(Generic[ItemT]):
    """An item and the place of its unit in the forest."""

    unit: int
    item: ItemT


class View(Protocol):
    """A model's reading of the forest's tokens."""

    def predicting_ND(self, nodes_N: IntsN) -> Tensor:
        """Hidden states that predict the nodes, without gradient."""
        ...

    def head(self, hidden_ND: Tensor) -> Tensor:
        """Its logits (N, V) in fp32."""
        ...


@dataclass(frozen=True)
class Teaching:
    """What the loop knows of teachers: views by name (`reference`, `frozen`, `ema`, `model`), and TAID's τ of now."""

    view: Callable[[str], View]
    tau: float | None = None


@dataclass(frozen=True)
class Scored:
    """A forest after its forward pass.

    Attributes:
        forest: the tokens and who sees whom.
        hidden_TD: final hidden states, with gradient.
        head: hidden states (N, D) to fp32 logits (N, V).
        logprobs: scored nodes (N,) to log p(node | its ancestors), in nats, with gradient.
        reference_logprobs: the same under the reference policy, without gradient.
        teaching: the teachers that training keeps for the divergence.
    """

    forest: Forest
    hidden_TD: Tensor
    head: Callable[[Tensor], Tensor]
    logprobs: Callable[[IntsN], Tensor]
    reference_logprobs: Callable[[IntsN], Tensor]
    teaching: Teaching | None = None

    def nodes(self, unit: int, span: Span) -> IntsN:
        """Indices in the forest of the span's tokens."""
        return self.forest.paths[unit][span.branch][list(span.positions)]

    def predicting_ND(self, nodes_N: IntsN) -> Tensor:
        """Hidden states whose logits predict `nodes_N`: those of their parents."""
        parents_N = torch.from_numpy(self.forest.parents_T[nodes_N]).to(self.hidden_TD.device)
        return self.hidden_TD.index_select(0, parents_N)

    def constant(self, values: Sequence[float] | NDArray[Any]) -> Tensor:
        """Numbers beside the hidden states, in fp32, or in fp64 where those are."""
        dtype = torch.float64 if self.hidden_TD.dtype == torch.float64 else torch.float32
        return torch.as_tensor(np.asarray(values, dtype=np.float64), dtype=dtype, device=self.hidden_TD.device)


class Channel(Protocol[ItemT_contra]):
    """One loss. Class attributes: `item`, the kind it reads; `advice`, what to do when it has no gradient."""

    item: ClassVar[type[Any]]
    advice: ClassVar[str]

    def count(self, items: Sequence[ItemT_contra]) -> int:
        """Share of `items` in the denominator of the optimiser step."""
        ...

    def loss(self, scored: Scored, items: Sequence[Placed[Any]]) -> tuple[Tensor, Metrics]:
        """Sum of the losses of `items` (a scalar, to be divided by the global count) and its metrics."""
        ...


def joined(parts: Sequence[IntsN]) -> IntsN:
    """Concatenate node lists; no part at all gives an empty list."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
