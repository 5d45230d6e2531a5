"""The aligned tokens of a divergence, and how a tile of them becomes losses and slopes, by where the teacher is.

Shapes: N aligned tokens, I items, C tokens of a tile, K named tokens, B outcomes, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from postgrad.core.annotation import DivergenceItem, LoggedTeacher, Span
from postgrad.core.errors import ConfigError, TrainingFault
from postgrad.objectives.channel import IntsN, Placed, Scored, joined
from postgrad.objectives.jsd import FLOOR, entropy, jsd, logprobs, renormalised, spread, with_tail
from postgrad.objectives.tiles import RowLoss

if TYPE_CHECKING:
    from postgrad.objectives.divergence import Divergence

TOP_K = 100


@dataclass(frozen=True)
class Aligned:
    """Tokens of all items in order.

    Attributes:
        items: how many items.
        owners_N: the item of each token.
        weights_N: its item's weight.
        student_N: the student's nodes.
        teacher_N: the teacher's nodes; -1 where the teacher was logged.
        differs_N: whether the two are predicted from different nodes.
        logged: the logged teachers, in order.
        behaviours: the sampler's log-probabilities, item by item.
    """

    items: int
    owners_N: IntsN
    weights_N: NDArray[np.float32]
    student_N: IntsN
    teacher_N: IntsN
    differs_N: NDArray[np.bool_]
    logged: tuple[LoggedTeacher, ...]
    behaviours: tuple[NDArray[np.float32] | None, ...]

    @classmethod
    def of(cls, scored: Scored, placed: Sequence[Placed[DivergenceItem]]) -> Aligned:
        """Lay the items' tokens side by side.

        Raises:
            TrainingFault: an item's student and teacher are not the same tokens.
        """
        lengths = np.array([len(p.item.student.positions) for p in placed], dtype=np.int64)
        student_N = joined([scored.nodes(p.unit, p.item.student) for p in placed])
        teacher_N = joined([_teacher_nodes(scored, p) for p in placed])
        tokens_T, parents_T = scored.forest.tokens_T, scored.forest.parents_T
        inside_N = teacher_N >= 0
        if (tokens_T[student_N[inside_N]] != tokens_T[teacher_N[inside_N]]).any():
            raise TrainingFault("channel 'divergence': student and teacher are not the same tokens")
        return cls(
            items=len(placed),
            owners_N=np.repeat(np.arange(len(placed)), lengths),
            weights_N=np.repeat(np.array([p.item.weight for p in placed], dtype=np.float32), lengths),
            student_N=student_N,
            teacher_N=teacher_N,
            differs_N=parents_T[student_N] != np.where(inside_N, parents_T[teacher_N], -1),
            logged=tuple(p.item.teacher for p in placed if isinstance(p.item.teacher, LoggedTeacher)),
            behaviours=tuple(p.item.behaviour_T for p in placed),
        )

    def __len__(self) -> int:
        return len(self.student_N)

    @property
    def in_forest_N(self) -> NDArray[np.bool_]:
        """Whether the teacher is in the forest."""
        return self.teacher_N >= 0

    def behaviour_N(self) -> NDArray[np.float32]:
        """The sampler's log-probabilities.

        Raises:
            ConfigError: an item has none.
        """
        parts = [part for part in self.behaviours if part is not None]
        if len(parts) < len(self.behaviours):
            raise ConfigError(
                "channels.divergence.ratio_limit needs the sampler's log-probabilities",
                got="rows that were not sampled by the policy",
                do="leave ratio_limit out",
            )
        return np.concatenate([np.empty(0, np.float32), *parts])


def _teacher_nodes(scored: Scored, placed: Placed[DivergenceItem]) -> IntsN:
    teacher = placed.item.teacher
    return scored.nodes(placed.unit, teacher) if isinstance(teacher, Span) else np.full(len(teacher), -1)


class Rows(Protocol):
    """Tokens whose teacher is of one kind; `where` marks them among all. `teacher_entropy` is summed while it runs."""

    where: NDArray[np.bool_]
    student_ND: Tensor
    teacher_entropy: float

    def loss(self, settings: Divergence) -> RowLoss:
        """Losses and slopes of a tile."""
        ...

    def value(self, losses_N: Tensor) -> float:
        """The divergence that `per_token` reports, summed."""
        ...


@dataclass
class TaughtRows:
    """The teacher's whole distribution is at hand, as logits."""

    where: NDArray[np.bool_]
    student_ND: Tensor
    teacher: Callable[[slice], Tensor]
    targets_N: Tensor
    teacher_entropy: float = 0.0
    _estimate: float | None = field(default=None, repr=False)

    def loss(self, settings: Divergence) -> RowLoss:
        """By support; tables of different widths are compared on the columns that both have."""
        compare = {"full": self._full, "top_k": self._top_k, "sampled": self._sampled}[settings.support]

        def row_loss(student_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            teacher_CV = self.teacher(rows)
            width = min(student_CV.shape[1], teacher_CV.shape[1])
            own_CV = logprobs(student_CV[:, :width], settings.temperature)
            other_CV = logprobs(teacher_CV[:, :width], settings.temperature)
            self.teacher_entropy += float(entropy(other_CV).sum())
            losses_C, slopes_CV = compare(settings, own_CV, other_CV, rows)
            slopes_CV.div_(settings.temperature)
            return losses_C, pad(slopes_CV, (0, student_CV.shape[1] - width)) if width < student_CV.shape[
                1
            ] else slopes_CV

        return row_loss

    def value(self, losses_N: Tensor) -> float:
        """The losses themselves, or for sampled tokens their estimate."""
        return float(losses_N.sum()) if self._estimate is None else self._estimate

    def _full(self, settings: Divergence, own_CV: Tensor, other_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        return weighed_jsd(settings, own_CV, other_CV, whole_CV=other_CV)

    def _top_k(self, settings: Divergence, own_CV: Tensor, other_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        whose_CV = own_CV if settings.top_of == "student" else other_CV
        ids_CK = whose_CV.topk(min(settings.top_k or TOP_K, whose_CV.shape[1])).indices
        if settings.tail == "renormalise":
            own_CB, other_CB = (renormalised(all_CV.gather(1, ids_CK)) for all_CV in (own_CV, other_CV))
        else:
            own_CB, other_CB = (with_tail(all_CV, ids_CK) for all_CV in (own_CV, other_CV))
        losses_C, slopes_CB = weighed_jsd(settings, own_CB, other_CB, whole_CV=other_CV)
        return losses_C, spread(own_CV, torch.ones_like(ids_CK), ids_CK, slopes_CB)

    def _sampled(self, settings: Divergence, own_CV: Tensor, other_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        targets_C1 = self.targets_N[rows, None]
        own_C1, other_C1 = own_CV.gather(1, targets_C1), other_CV.gather(1, targets_C1)
        gaps_C1 = own_C1 - other_C1
        self._estimate = (self._estimate or 0.0) + float(gaps_C1.sum())
        slopes_CV = (own_CV.exp() * -gaps_C1).scatter_add_(1, targets_C1, gaps_C1)
        return (gaps_C1 * own_C1)[:, 0], slopes_CV


@dataclass
class LoggedRows:
    """The teacher's K likeliest tokens and the rest as one number, as they were written down."""

    where: NDArray[np.bool_]
    student_ND: Tensor
    ids_NK: Tensor
    named_NK: Tensor
    logprobs_NK: Tensor
    tails_N: Tensor
    teacher_entropy: float = 0.0

    @classmethod
    def of(cls, scored: Scored, aligned: Aligned, where_N: NDArray[np.bool_]) -> LoggedRows:
        """Logged teachers, padded to one K; a place without a token repeats the row's first and weighs nothing."""
        widest = max(teacher.ids_NK.shape[1] for teacher in aligned.logged)

        def padded(tables: Sequence[NDArray[np.generic]], fill: float) -> Tensor:
            wide = [np.pad(t, ((0, 0), (0, widest - t.shape[1])), constant_values=fill) for t in tables]
            return torch.from_numpy(np.concatenate(wide)).to(scored.hidden_TD.device)

        ids_NK = padded([teacher.ids_NK for teacher in aligned.logged], -1)
        named_NK = ids_NK >= 0
        known_NK = padded([teacher.logprobs_NK for teacher in aligned.logged], FLOOR)
        return cls(
            where_N,
            scored.predicting_ND(aligned.student_N[where_N]),
            torch.where(named_NK, ids_NK, ids_NK[:, :1]),
            named_NK,
            torch.where(named_NK, known_NK, FLOOR).clamp(min=FLOOR),
            scored.constant(np.concatenate([teacher.tails_N for teacher in aligned.logged])).clamp(min=FLOOR),
        )

    def loss(self, settings: Divergence) -> RowLoss:
        """The student over the same outcomes."""

        def row_loss(student_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            own_CV = logprobs(student_CV, settings.temperature)
            ids_CK, named_CK, known_CK = self.ids_NK[rows], self.named_NK[rows], self.logprobs_NK[rows].to(own_CV)
            if settings.tail == "renormalise":
                named_own_CK = own_CV.gather(1, ids_CK).masked_fill(~named_CK, FLOOR * 2)
                own_CB = renormalised(named_own_CK)
                tempered_CK = (known_CK / settings.temperature).masked_fill_(~named_CK, FLOOR * 2)
                other_CB = renormalised(tempered_CK)
            else:
                own_CB = with_tail(own_CV, ids_CK)
                own_CB[:, :-1].masked_fill_(~named_CK, FLOOR)
                other_CB = torch.cat([known_CK, self.tails_N[rows, None].to(own_CV)], dim=1)
            self.teacher_entropy += float(entropy(other_CB).sum())
            losses_C, slopes_CB = jsd(own_CB, other_CB, settings.beta)
            return losses_C, spread(own_CV, named_CK, ids_CK, slopes_CB).div_(settings.temperature)

        return row_loss

    def value(self, losses_N: Tensor) -> float:
        """The losses themselves."""
        return float(losses_N.sum())


def weighed_jsd(settings: Divergence, own_CB: Tensor, other_CB: Tensor, *, whole_CV: Tensor) -> tuple[Tensor, Tensor]:
    """The divergence with its slope; with `entropy`, two of them weighed by that of the teacher's `whole_CV`.

    Of the K named tokens alone the entropy is at most ln(K + 1): a threshold above it would never be passed.
    """
    if settings.entropy is None:
        return jsd(own_CB, other_CB, settings.beta)
    entropies_C = entropy(whole_CV)
    if settings.entropy == "soft":
        cover_C = (entropies_C / math.log(whole_CV.shape[1])).clamp(0, 1)
        seek_C = 1 - cover_C
    else:
        cover_C = (entropies_C > settings.entropy).to(own_CB.dtype)
        seek_C = torch.ones_like(cover_C)
    seek, cover = jsd(own_CB, other_CB, 1.0), jsd(own_CB, other_CB, 0.0)
    losses_C = seek_C * seek[0] + cover_C * cover[0]
    return losses_C, seek_C[:, None] * seek[1] + cover_C[:, None] * cover[1]
