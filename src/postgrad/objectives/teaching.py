"""Who teaches: the teacher of a divergence as configuration, and its logits as a blend of views of one forest.

    live          the policy itself, in the teacher's context; no further pass
    reference     the reference policy (as training found it, or the base with the adapter off)
    frozen        a copy of the policy as training found it
    ema           a copy that follows: φ ← (1 − rate) φ + rate θ after every optimiser step (SDPO: 0.05)
    trust_region  logits (1 − rate) z_frozen + rate z_live (the regularised teacher of the SDPO reference code)
    model         another local model with the same tokenizer

A live teacher that nothing holds back can diverge with its student; the others are held back.

TAID (arXiv 2501.16937) puts a target between student and teacher, q* = softmax((1−τ) z_student + τ z_teacher), both
detached, and moves τ from `start` to `end` over the run:

    δ = (L_{n−1} − L_n)/L_{n−1};   m ← b m + (1−b) δ;   τ ← min(end, max(linear, τ + a σ(m) (1−τ)))

So every teacher's logits are a blend over views. All copies are made from the live weights; training
keeps them and writes them into its checkpoints.

Shapes: N tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass as plain_dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass
from torch import Tensor

from postgrad.objectives.channel import STRICT, IntsN, Scored, View

Kind = Literal["live", "reference", "frozen", "ema", "trust_region", "model"]
Unit = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, config=STRICT)
class Taid:
    """τ and how it moves; `step` is a and `momentum` is b. With a = 0 it is the straight line."""

    start: Unit = 0.4
    end: Unit = 1.0
    step: Annotated[float, Field(ge=0)] = 5e-4
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.99

    @model_validator(mode="after")
    def _rises(self) -> Taid:
        if self.start > self.end:
            raise ValueError(f"start ({self.start}) is above end ({self.end})")
        if self.step == 0 and self.momentum != 0.99:
            raise ValueError("momentum does nothing where step is 0")
        return self


@dataclass(frozen=True, config=STRICT)
class Teacher:
    """A teacher; `rate` is for ema and trust_region, `model` names the model of kind model."""

    kind: Kind = "live"
    rate: Annotated[float, Field(gt=0, lt=1)] | None = None
    model: str | None = None
    taid: Taid | None = None

    @model_validator(mode="after")
    def _means_something(self) -> Teacher:
        if self.rate is not None and self.kind not in ("ema", "trust_region"):
            raise ValueError(f"rate does nothing for {self.kind}; it is for ema and trust_region")
        if (self.model is not None) != (self.kind == "model"):
            raise ValueError("kind: model and the model's name go together")
        return self

    @property
    def speed(self) -> float:
        """The rate, 0.05 unless given."""
        return 0.05 if self.rate is None else self.rate


@plain_dataclass(frozen=True)
class _Live:
    scored: Scored

    def predicting_ND(self, nodes_N: IntsN) -> Tensor:
        return self.scored.predicting_ND(nodes_N).detach()

    def head(self, hidden_ND: Tensor) -> Tensor:
        return self.scored.head(hidden_ND)


@plain_dataclass(frozen=True)
class TeacherLogits:
    """Logits of the teacher, rows at a time: each part (share, hidden, head) takes its share of what came before.

    z ← z + share (z_part − z), which gives z itself, to the last bit, where all parts agree.
    """

    parts: Sequence[tuple[float, Tensor, Callable[[Tensor], Tensor]]]

    @torch.no_grad()
    def __call__(self, rows: slice) -> Tensor:
        """Logits (C, V) of the rows."""
        (_, hidden_ND, head), *others = self.parts
        total_CV = head(hidden_ND[rows])
        for share, hidden_ND, head in others:
            logits_CV = head(hidden_ND[rows])
            width = min(total_CV.shape[1], logits_CV.shape[1])  # tables padded to different widths
            total_CV = total_CV[:, :width].lerp(logits_CV[:, :width], share)
        return total_CV


def teacher_logits(teacher: Teacher, scored: Scored, student_N: IntsN, teacher_N: IntsN) -> TeacherLogits:
    """The teacher's logits for `teacher_N`; under TAID blended with the student's for `student_N`."""
    first = "frozen" if teacher.kind == "trust_region" else teacher.kind
    views = [(1.0, _view(first, scored), teacher_N)]
    if teacher.kind == "trust_region":
        views.append((teacher.speed, _Live(scored), teacher_N))
    if teacher.taid is not None:
        tau = scored.teaching.tau if scored.teaching else None
        views.append((1 - (teacher.taid.start if tau is None else tau), _Live(scored), student_N))
    return TeacherLogits([(c, view.predicting_ND(nodes), view.head) for c, view, nodes in views if c != 0])


def _view(name: str, scored: Scored) -> View:
    if name == "live":
        return _Live(scored)
    assert scored.teaching is not None, f"a forest scored without the run's teachers has no view '{name}'"
    return scored.teaching.view(name)
