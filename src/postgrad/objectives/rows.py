"""How a tile of aligned tokens becomes losses and slopes, by where the teacher is: in the forest, or logged.

Shapes: N aligned tokens, C tokens of a tile, K named tokens, B outcomes, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from postgrad.objectives.aligned import Aligned
from postgrad.objectives.channel import Scored
from postgrad.objectives.jsd import FLOOR, entropy, jsd, logprobs, renormalised, spread, with_tail
from postgrad.objectives.tiles import RowLoss


@dataclass(frozen=True)
class Comparison:
    """How two distributions are compared: what `divergence.Divergence` says of it, with its defaults.

    Attributes:
        beta: of the generalized Jensen-Shannon divergence.
        temperature: divides both logits.
        support: the outcomes compared.
        top_k: how many tokens are named where not all are.
        top_of_student: whether those are the student's likeliest, and not the teacher's.
        renormalise: whether the tokens that are not named are left out, and not one outcome together.
        entropy: a threshold in nats, or `soft`; see `weighed_jsd`.
    """

    beta: float
    temperature: float
    support: Literal["full", "top_k", "sampled"]
    top_k: int
    top_of_student: bool
    renormalise: bool
    entropy: Literal["soft"] | float | None


class Rows(Protocol):
    """Tokens whose teacher is of one kind; `where` marks them among all. `teacher_entropy` is summed while it runs."""

    where: NDArray[np.bool_]
    student_ND: Tensor
    teacher_entropy: float

    def loss(self, how: Comparison) -> RowLoss:
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

    def loss(self, how: Comparison) -> RowLoss:
        """By support; tables of different widths are compared on the columns that both have."""
        compare = {"full": self._full, "top_k": self._top_k, "sampled": self._sampled}[how.support]

        def row_loss(student_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            teacher_CV = self.teacher(rows)
            width = min(student_CV.shape[1], teacher_CV.shape[1])
            own_CV = logprobs(student_CV[:, :width], how.temperature)
            other_CV = logprobs(teacher_CV[:, :width], how.temperature)
            self.teacher_entropy += float(entropy(other_CV).sum())
            losses_C, slopes_CV = compare(how, own_CV, other_CV, rows)
            slopes_CV.div_(how.temperature)
            missing = student_CV.shape[1] - width
            return losses_C, pad(slopes_CV, (0, missing)) if missing else slopes_CV

        return row_loss

    def value(self, losses_N: Tensor) -> float:
        """The losses themselves, or for sampled tokens their estimate."""
        return float(losses_N.sum()) if self._estimate is None else self._estimate

    def _full(self, how: Comparison, own_CV: Tensor, other_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        return weighed_jsd(how, own_CV, other_CV, whole_CV=other_CV)

    def _top_k(self, how: Comparison, own_CV: Tensor, other_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        whose_CV = own_CV if how.top_of_student else other_CV
        ids_CK = whose_CV.topk(min(how.top_k, whose_CV.shape[1])).indices
        if how.renormalise:
            own_CB, other_CB = (renormalised(all_CV.gather(1, ids_CK)) for all_CV in (own_CV, other_CV))
        else:
            own_CB, other_CB = (with_tail(all_CV, ids_CK) for all_CV in (own_CV, other_CV))
        losses_C, slopes_CB = weighed_jsd(how, own_CB, other_CB, whole_CV=other_CV)
        return losses_C, spread(own_CV, torch.ones_like(ids_CK), ids_CK, slopes_CB)

    def _sampled(self, how: Comparison, own_CV: Tensor, other_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
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

    def loss(self, how: Comparison) -> RowLoss:
        """The student over the same outcomes."""

        def row_loss(student_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            own_CV = logprobs(student_CV, how.temperature)
            ids_CK, named_CK, known_CK = self.ids_NK[rows], self.named_NK[rows], self.logprobs_NK[rows].to(own_CV)
            if how.renormalise:
                named_own_CK = own_CV.gather(1, ids_CK).masked_fill(~named_CK, FLOOR * 2)
                own_CB = renormalised(named_own_CK)
                tempered_CK = (known_CK / how.temperature).masked_fill_(~named_CK, FLOOR * 2)
                other_CB = renormalised(tempered_CK)
            else:
                own_CB = with_tail(own_CV, ids_CK)
                own_CB[:, :-1].masked_fill_(~named_CK, FLOOR)
                other_CB = torch.cat([known_CK, self.tails_N[rows, None].to(own_CV)], dim=1)
            self.teacher_entropy += float(entropy(other_CB).sum())
            losses_C, slopes_CB = jsd(own_CB, other_CB, how.beta)
            return losses_C, spread(own_CV, named_CK, ids_CK, slopes_CB).div_(how.temperature)

        return row_loss

    def value(self, losses_N: Tensor) -> float:
        """The losses themselves."""
        return float(losses_N.sum())


def weighed_jsd(how: Comparison, own_CB: Tensor, other_CB: Tensor, *, whole_CV: Tensor) -> tuple[Tensor, Tensor]:
    """The divergence with its slope; with `entropy`, two of them weighed by that of the teacher's `whole_CV`.

    Of the K named tokens alone the entropy is at most ln(K + 1): a threshold above it would never be passed.
    """
    if how.entropy is None:
        return jsd(own_CB, other_CB, how.beta)
    entropies_C = entropy(whole_CV)
    if how.entropy == "soft":
        cover_C = (entropies_C / math.log(whole_CV.shape[1])).clamp(0, 1)
        seek_C = 1 - cover_C
    else:
        cover_C = (entropies_C > how.entropy).to(own_CB.dtype)
        seek_C = torch.ones_like(cover_C)
    seek, cover = jsd(own_CB, other_CB, 1.0), jsd(own_CB, other_CB, 0.0)
    losses_C = seek_C * seek[0] + cover_C * cover[0]
    return losses_C, seek_C[:, None] * seek[1] + cover_C[:, None] * cover[1]
