"""Divergence: pull the student's next-token distributions p to a teacher's q over the same tokens.

The teacher is the same policy in another context (a hint, an error message), in the same forest, detached. The
generalized Jensen-Shannon divergence (arXiv 2306.13649, self-distillation as in OPSD and SDPO), per token:

    0 < β < 1:  β · KL(q‖M) + (1−β) · KL(p‖M),  M = (1−β) p + β q
    β = 0:      KL(q‖p)              β = 1:  KL(p‖q)
    sum = Σ_i w_i Σ_t D_t,   count = student tokens of items with w_i ≠ 0

The value jumps at the ends: the interior goes to 0 there, while D/β → KL(q‖p) and D/(1−β) → KL(p‖q). The interior is
bounded (by ln 2 at β = 1/2), so a channel weight does not carry over from one β to another. The temperature divides
both logits and there is no factor T².

All V columns are used. Logits are made chunk by chunk and made again in the backward pass, so (N, V) is never held.

Shapes: N aligned tokens, C tokens of a chunk, D hidden size, V vocabulary.
Not covered: top-k teachers, teachers with another vocabulary, averaged (EMA) teachers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from postgrad.core.annotation import DivergenceItem
from postgrad.objectives.channel import STRICT, Mean, Metrics, Placed, Scored, joined


@dataclass(frozen=True, config=STRICT)
class Divergence:
    """Generalized JSD to a detached teacher, mean per token, in nats; `chunk` tokens share one head product."""

    item: ClassVar[type[DivergenceItem]] = DivergenceItem
    advice: ClassVar[str] = "teacher and student agree exactly: check that the hint changes the teacher's context"

    beta: Annotated[float, Field(ge=0, le=1)] = 0.5
    temperature: Annotated[float, Field(gt=0)] = 1.0
    chunk: Annotated[int, Field(ge=1)] = 256

    def count(self, items: Sequence[DivergenceItem]) -> int:
        """Tokens of the student."""
        return sum(len(item.student.positions) for item in items if item.weight != 0)

    def loss(self, scored: Scored, items: Sequence[Placed[DivergenceItem]]) -> tuple[Tensor, Metrics]:
        """Σ w · D; metric `per_token`, the unweighted divergence."""
        used = [placed for placed in items if placed.item.weight != 0]
        lengths = [len(p.item.student.positions) for p in used]
        student_N = joined([scored.nodes(p.unit, p.item.student) for p in used])
        teacher_N = joined([scored.nodes(p.unit, p.item.teacher) for p in used])
        # In an equal context the teacher is the very same node: exactly 0, where rounding would leave a false trace.
        differs_N = scored.forest.parents_T[student_N] != scored.forest.parents_T[teacher_N]
        weights_N = scored.constant(np.repeat([p.item.weight for p in used], lengths)[differs_N])
        student_ND = scored.predicting_ND(student_N[differs_N])
        teacher_ND = scored.predicting_ND(teacher_N[differs_N]).detach()

        def chunk_loss(student_CD: Tensor, teacher_CD: Tensor) -> Tensor:
            with torch.no_grad():
                teacher_CV = scored.head(teacher_CD)
            return self.per_token(scored.head(student_CD), teacher_CV)

        chunks = zip(torch.split(student_ND, self.chunk), torch.split(teacher_ND, self.chunk), strict=True)
        losses_N = torch.cat(
            [checkpoint(chunk_loss, s, t, use_reentrant=False, preserve_rng_state=False) for s, t in chunks]
        )
        return (weights_N * losses_N).sum(), {"per_token": Mean(float(losses_N.detach().sum()), len(student_N))}

    def per_token(self, student_NV: Tensor, teacher_NV: Tensor) -> Tensor:
        """Divergence of each row (N,) from logits; gradients flow into whatever is not detached."""
        student_NV = (student_NV / self.temperature).log_softmax(-1)
        teacher_NV = (teacher_NV / self.temperature).log_softmax(-1)
        if self.beta == 0:
            return kl(teacher_NV, student_NV)
        if self.beta == 1:
            return kl(student_NV, teacher_NV)
        mixture_NV = torch.logaddexp(student_NV + math.log1p(-self.beta), teacher_NV + math.log(self.beta))
        return self.beta * kl(teacher_NV, mixture_NV) + (1 - self.beta) * kl(student_NV, mixture_NV)


def kl(log_a_NV: Tensor, log_b_NV: Tensor) -> Tensor:
    """KL(a‖b) of each row, in nats, from log-probabilities."""
    return (log_a_NV.exp() * (log_a_NV - log_b_NV)).sum(-1)
