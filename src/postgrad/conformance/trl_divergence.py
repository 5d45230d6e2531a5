"""TRL's generalized JSD on one token."""

from __future__ import annotations

import importlib

import torch


def trl_jsd(
    student: tuple[float, ...], teacher: tuple[float, ...], *, beta: float, temperature: float = 1.0
) -> list[float]:
    """Value and gradient of `GKDTrainer.generalized_jsd_loss`, by the student's logits."""
    kind = importlib.import_module("trl.experimental.gkd.gkd_trainer").GKDTrainer
    student_11V = torch.tensor([[student]], dtype=torch.float64, requires_grad=True)
    teacher_11V = torch.tensor([[teacher]], dtype=torch.float64)
    labels_11 = torch.tensor([[0]])
    loss = kind.generalized_jsd_loss(student_11V, teacher_11V, labels=labels_11, beta=beta, temperature=temperature)
    (gradient_11V,) = torch.autograd.grad(loss, student_11V)
    return [float(loss.detach()), *gradient_11V[0, 0].tolist()]
