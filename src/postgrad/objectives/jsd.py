"""Divergences between two distributions of every row, with their gradients in closed form.

The generalized Jensen-Shannon divergence (arXiv 2306.13649) of the student p and the teacher q:

    0 < β < 1:  β · KL(q‖M) + (1−β) · KL(p‖M),  M = (1−β) p + β q
    β = 0:      KL(q‖p)              β = 1:  KL(p‖q)

The value jumps at the ends: the interior goes to 0 there, while D/β → KL(q‖p) and D/(1−β) → KL(p‖q). The interior is
bounded (by ln 2 at β = 1/2), so a weight does not carry over from one β to another.

With p = softmax(z) and the mixture eliminated, the slope at z_v is

    interior  (1−β) p_v (log p_v/m_v − KL(p‖M))      β = 0:  p_v − q_v      β = 1:  p_v (log p_v/q_v − KL(p‖q))

`with_tail` gives the same for K named tokens and one bucket of all others, and `spread` takes its slope to all logits:
a token of the bucket gets the bucket's slope times its share of the bucket. Log-probabilities are held above `FLOOR`,
so an outcome that cannot be is finite and weighs nothing.

Shapes: C rows, V vocabulary, K named tokens, B outcomes (V, K, or K and the bucket).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

FLOOR = -1e4


def logprobs(logits_CV: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-softmax of the tempered logits, held above `FLOOR`; there is no factor T²."""
    tempered_CV = logits_CV / temperature if temperature != 1 else logits_CV
    return tempered_CV.log_softmax(-1).clamp_(min=FLOOR)


def jsd(student_CB: Tensor, teacher_CB: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Divergence (C,) in nats and its slope (C, B) at the student's logits, both from log-probabilities."""
    p_CB = student_CB.exp()
    if beta == 0:
        q_CB = teacher_CB.exp()
        return (q_CB * (teacher_CB - student_CB)).sum(-1), p_CB.sub_(q_CB)
    if beta == 1:
        other_CB, value_C = teacher_CB, None
    else:
        other_CB = torch.logaddexp(student_CB + math.log1p(-beta), teacher_CB + math.log(beta))
        value_C = (teacher_CB.exp() * (teacher_CB - other_CB)).sum(-1)
    gap_CB = student_CB - other_CB
    own_C = (p_CB * gap_CB).sum(-1)
    slope_CB = p_CB.mul_(gap_CB.sub_(own_C[:, None]))
    if value_C is None:
        return own_C, slope_CB
    return beta * value_C + (1 - beta) * own_C, slope_CB.mul_(1 - beta)


def kl(log_a_CB: Tensor, log_b_CB: Tensor) -> Tensor:
    """KL(a‖b) of each row, in nats, from log-probabilities."""
    return (log_a_CB.exp() * (log_a_CB - log_b_CB)).sum(-1)


def entropy(log_a_CB: Tensor) -> Tensor:
    """Entropy of each row, in nats, from log-probabilities."""
    return -(log_a_CB.exp() * log_a_CB).sum(-1)


def with_tail(all_CV: Tensor, ids_CK: Tensor) -> Tensor:
    """Log-probabilities of the named tokens and, last, of all others together (C, K + 1)."""
    rest_C1 = all_CV.scatter(1, ids_CK, -math.inf).logsumexp(-1, keepdim=True).clamp(min=FLOOR)
    return torch.cat([all_CV.gather(1, ids_CK), rest_C1], dim=1)


def renormalised(named_CK: Tensor) -> Tensor:
    """Log-probabilities of the named tokens as if there were no others."""
    return named_CK.log_softmax(-1).clamp(min=FLOOR)


def spread(all_CV: Tensor, named_CK: Tensor, ids_CK: Tensor, slope_CB: Tensor) -> Tensor:
    """Slope at all logits (C, V) from that of the outcomes; B = K means that the others take no part.

    `named_CK` is false where a place names no token.
    """
    k = ids_CK.shape[1]
    if slope_CB.shape[1] > k:
        others_CV = all_CV.scatter(1, ids_CK, -math.inf)
        shares_CV = others_CV.softmax(-1).nan_to_num_()  # no others at all: nothing to share
        slope_CV = shares_CV.mul_(slope_CB[:, k:])
    else:
        slope_CV = torch.zeros_like(all_CV)
    return slope_CV.scatter_add_(1, ids_CK, slope_CB[:, :k] * named_CK)
