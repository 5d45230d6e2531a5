"""Divergence: pull the student's next-token distributions p to a teacher's q over the same tokens.

    sum = Σ_i w_i Σ_t D_t,   count = student tokens of items with w_i ≠ 0

D is the generalized Jensen-Shannon divergence with its ends (`jsd`), over

    full       all V columns, in tiles (`tiles`)
    top_k      the k likeliest tokens of teacher or student, and one bucket for the others (tail: bucket), or nothing
               for the others (tail: renormalise)
    sampled    the sampled token alone: sg(log p(y) − log q(y)) · log p(y), whose gradient on samples of p is that of
               KL(p‖q); the metric `per_token` is log p(y) − log q(y), the value's estimate

The teacher is the policy or a copy of it in another context, another model (`teaching`), or was logged with its top k.
The temperature divides both logits and there is no factor T² unless `rescale` asks for it.

`entropy` weighs two divergences by the teacher's entropy H(q) (arXiv 2603.07079): a number τ gives
KL(p‖q) + [H(q) > τ] KL(q‖p); `soft` gives (1−w) KL(p‖q) + w KL(q‖p) with w = H(q) / ln V.
`gate` passes an item by whose mean JSD at β = 1/2 is not between the two numbers: a hint that changes nothing, or one
that distorts. Such an item stays in the count. `ratio_limit` C multiplies a token by min(p(y)/μ(y), C), detached,
where the item brings the sampler's μ (SDPO: 2).

Student and teacher must be the same tokens; the channel refuses others. In an equal context a live teacher is the very
same node of the forest and gives exactly 0.

Shapes: N aligned tokens, C tokens of a tile, K named tokens, D hidden size, V vocabulary.
Not covered: teachers with another vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

from postgrad.core.annotation import DivergenceItem
from postgrad.core.errors import ConfigError
from postgrad.objectives.aligned import Aligned
from postgrad.objectives.channel import STRICT, Mean, Metrics, Placed, Scored
from postgrad.objectives.jsd import jsd, logprobs
from postgrad.objectives.rows import Comparison, LoggedRows, Rows, TaughtRows
from postgrad.objectives.teaching import Teacher, teacher_logits
from postgrad.objectives.tiles import TILE, row_slices, tiled_loss, with_gradient

Positive = Annotated[float, Field(gt=0)]
TOP_K = 100


@dataclass(frozen=True, config=STRICT)
class Divergence:
    """Divergence to a detached teacher, mean per token, in nats.

    Attributes:
        beta: 0 is KL(q‖p), 1 is KL(p‖q), between them the generalized JSD.
        temperature: divides both logits.
        rescale: whether to multiply by T², as in soft distillation (arXiv 1503.02531).
        support: the outcomes compared.
        top_k: how many tokens are named with top_k; None is 100.
        top_of: whose likeliest; None is the teacher's.
        tail: what becomes of the other tokens; None is `bucket`.
        teacher: who teaches.
        entropy: a threshold in nats, or `soft`; needs beta 1.
        gate: lowest and highest mean JSD of an item.
        ratio_limit: C of the importance ratio.
        tile: most logits held at one time; None is 2²¹, or more beside a head that is trained.
    """

    item: ClassVar[type[DivergenceItem]] = DivergenceItem
    advice: ClassVar[str] = (
        "teacher and student agree exactly (check that the hint changes the teacher's context), "
        "or the gate let nothing by"
    )

    beta: Annotated[float, Field(ge=0, le=1)] = 0.5
    temperature: Positive = 1.0
    rescale: bool = False
    support: Literal["full", "top_k", "sampled"] = "full"
    top_k: Annotated[int, Field(ge=1)] | None = None
    top_of: Literal["teacher", "student"] | None = None
    tail: Literal["bucket", "renormalise"] | None = None
    teacher: Teacher = Teacher()
    entropy: Literal["soft"] | Annotated[float, Field(ge=0)] | None = None
    gate: tuple[Annotated[float, Field(ge=0)], Positive] | None = None
    ratio_limit: Positive | None = None
    tile: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _means_something(self) -> Divergence:
        if self.support != "top_k":
            for name in ("top_k", "top_of", "tail"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} does nothing for support {self.support}; set support: top_k")
        if self.support == "sampled" and self.beta != 1:
            raise ValueError(f"support sampled estimates KL(p‖q) alone: set beta: 1 (it is {self.beta})")
        if self.entropy is not None and (self.beta != 1 or self.support == "sampled"):
            raise ValueError("entropy weighs KL(p‖q) against KL(q‖p): set beta: 1 and support full or top_k")
        if self.gate is not None and self.gate[0] >= self.gate[1]:
            raise ValueError(f"gate is [lowest, highest], it is {list(self.gate)}")
        if self.rescale and self.temperature == 1:
            raise ValueError("rescale does nothing at temperature 1")
        return self

    @property
    def uses_reference(self) -> bool:
        """Whether a reference policy is needed."""
        return self.teacher.kind == "reference"

    def count(self, items: Sequence[DivergenceItem]) -> int:
        """Tokens of the student."""
        return sum(len(item.student.positions) for item in items if item.weight != 0)

    def loss(self, scored: Scored, items: Sequence[Placed[DivergenceItem]]) -> tuple[Tensor, Metrics]:
        """Σ w · D; metrics `per_token` (the unweighted divergence), `teacher_entropy`, `passed` (share of items).

        Raises:
            ConfigError: the items' teachers cannot serve the settings.
            TrainingFault: student and teacher are not the same tokens.
        """
        aligned = Aligned.of(scored, [placed for placed in items if placed.item.weight != 0])
        weights_N, metrics = self._weights(scored, aligned), dict[str, Mean]()
        loss = scored.hidden_TD[:0].sum()  # a zero that gradients can pass
        if self.gate is not None:
            passed_I = self._passed(scored, aligned)
            weights_N = weights_N * torch.from_numpy(passed_I[aligned.owners_N]).to(weights_N)
            metrics["passed"] = Mean(float(passed_I.sum()), len(passed_I))
        sums = {"per_token": 0.0, "teacher_entropy": 0.0}
        for rows in self._rows(scored, aligned):
            row_loss = rows.loss(self._comparison)
            total, losses_N = tiled_loss(scored.head, rows.student_ND, weights_N[rows.where], row_loss, tile=self.tile)
            loss = loss + total
            sums["per_token"] += rows.value(losses_N)
            sums["teacher_entropy"] += rows.teacher_entropy
        return loss, metrics | {n: Mean(total, len(aligned)) for n, total in sums.items()}

    def per_token(self, student_NV: Tensor, teacher_NV: Tensor) -> Tensor:
        """Divergence over all columns of each row (N,) from logits; differentiable in the student's."""
        teacher_NV = logprobs(teacher_NV.detach(), self.temperature)

        def row_loss(student_CV: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            losses_C, slopes_CV = jsd(logprobs(student_CV, self.temperature), teacher_NV[rows], self.beta)
            return losses_C, slopes_CV.div_(self.temperature)

        return with_gradient(row_loss, student_NV)

    @property
    def _comparison(self) -> Comparison:
        return Comparison(
            beta=self.beta,
            temperature=self.temperature,
            support=self.support,
            top_k=TOP_K if self.top_k is None else self.top_k,
            top_of_student=self.top_of == "student",
            renormalise=self.tail == "renormalise",
            entropy=self.entropy,
        )

    def _weights(self, scored: Scored, aligned: Aligned) -> Tensor:
        """w_i, times T² where asked for, times the importance ratio where asked for."""
        weights_N = scored.constant(aligned.weights_N)
        if self.rescale:
            weights_N = weights_N * self.temperature**2
        if self.ratio_limit is None:
            return weights_N
        behaviour_N = scored.constant(aligned.behaviour_N())
        gaps_N = scored.logprobs(aligned.student_N).detach() - behaviour_N
        return weights_N * gaps_N.clamp(-20, 20).exp().clamp(max=self.ratio_limit)

    @torch.no_grad()
    def _passed(self, scored: Scored, aligned: Aligned) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """1 for every item whose mean JSD lies within the gate."""
        assert self.gate is not None
        if not all(aligned.in_forest_N):
            raise ConfigError("a gate needs the whole distributions of a teacher", got="logged top-k rows")
        student_ND = scored.predicting_ND(aligned.student_N)
        teacher = teacher_logits(self.teacher, scored, aligned.student_N, aligned.teacher_N)
        parts = [np.empty(0)]
        for rows in row_slices(scored.head, student_ND, self.tile or TILE):
            student_CV, teacher_CV = scored.head(student_ND[rows]), teacher(rows)
            width = min(student_CV.shape[1], teacher_CV.shape[1])
            own_CV, other_CV = (logprobs(z_CV[:, :width], self.temperature) for z_CV in (student_CV, teacher_CV))
            parts.append(jsd(own_CV, other_CV, 0.5)[0].double().cpu().numpy())
        sums_I = np.bincount(aligned.owners_N, weights=np.concatenate(parts), minlength=aligned.items)
        means_I = sums_I / np.maximum(1, np.bincount(aligned.owners_N, minlength=aligned.items))
        return ((means_I > self.gate[0]) & (means_I < self.gate[1])).astype(np.float32)

    def _rows(self, scored: Scored, aligned: Aligned) -> list[Rows]:
        """Tokens whose teacher is in the forest, and those whose teacher was logged."""
        found: list[Rows] = []
        where_N = aligned.in_forest_N.copy()
        if self.teacher.kind == "live" and self.teacher.taid is None:
            # In an equal context the teacher is the very same node: exactly 0, where rounding would leave a trace.
            where_N &= aligned.differs_N
        if where_N.any():
            student_N, teacher_N = aligned.student_N[where_N], aligned.teacher_N[where_N]
            logits = teacher_logits(self.teacher, scored, student_N, teacher_N)
            targets_N = torch.from_numpy(scored.forest.tokens_T[student_N]).to(scored.hidden_TD.device)
            found.append(TaughtRows(where_N, scored.predicting_ND(student_N), logits, targets_N))
        logged_N = ~aligned.in_forest_N
        if logged_N.any():
            self._refuse_for_logged()
            found.append(LoggedRows.of(scored, aligned, logged_N))
        return found

    def _refuse_for_logged(self) -> None:
        """Settings that a logged teacher cannot serve.

        Raises:
            ConfigError: one of them.
        """
        if self.support != "top_k" or self.top_of == "student" or self.top_k is not None:
            raise ConfigError(
                "a logged teacher has its own top k and nothing else",
                got=f"support {self.support}, top_of {self.top_of}, top_k {self.top_k}",
                expected="channels.divergence: {support: top_k}, without top_of and top_k",
            )
        if self.entropy is not None:
            raise ConfigError("entropy weighting needs whole distributions", got="logged top-k rows")
        if self.temperature != 1 and self.tail != "renormalise":
            raise ConfigError(
                "the bucket of a logged teacher cannot be tempered",
                got=f"temperature {self.temperature}",
                expected="temperature 1, or tail: renormalise",
            )
