from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from postgrad.train.config import OptimConfig, TrainConfig
from postgrad.train.optim import build_optimizer, learning_rate


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 0.75, 0.5, 0.25]),
        ("cosine", [0.5, 1, 1, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2]),
    ],
)
def test_schedule_by_hand(schedule: str, expected: list[float]):
    """Two warm-up steps of six: 1/2, 1, then f at 0, 1/4, 2/4, 3/4 of the rest."""
    config = OptimConfig(lr=2.0, warmup_steps=2, schedule=schedule)
    rates = [learning_rate(step, steps=6, config=config) for step in range(6)]
    assert rates == pytest.approx([2 * f for f in expected])


def test_vectors_are_exempt_from_decay():
    """One step with zero gradient moves a weight only by lr · decay · weight: 1 − 0.1 · 0.5."""
    matrix, vector = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2))
    optimizer = build_optimizer([matrix, vector], OptimConfig(lr=0.1, weight_decay=0.5))
    matrix.grad, vector.grad = torch.zeros(2, 2), torch.zeros(2)
    optimizer.step()
    assert matrix.tolist() == [[pytest.approx(0.95)] * 2] * 2
    assert vector.tolist() == [1, 1]


def test_a_warm_up_longer_than_the_run_is_refused():
    with pytest.raises(ValidationError, match="warmup_steps is 5, expected at most"):
        TrainConfig.model_validate({"optim": {"warmup_steps": 5}, "loop": {"steps": 4}})
