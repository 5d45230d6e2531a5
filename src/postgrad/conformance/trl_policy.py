"""TRL's policy losses on a `Batch`: `GRPOTrainer._compute_loss` as released, on an object with only what it reads.

The trainer itself needs a model, a dataset and a generation loop; its loss is a function of log-probabilities.
Its advantages are computed in the middle of its generation and cannot be called apart, so they have no cases here.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from postgrad.conformance.policy_batch import LIMIT, Batch


def trl_loss(
    batch: Batch, loss_type: str, *, trainer: str = "trl.trainer.grpo_trainer:GRPOTrainer", **settings: Any
) -> list[float]:
    """Loss, then its gradient by the log-probabilities of the tokens."""
    module, _, name = trainer.partition(":")
    kind = getattr(importlib.import_module(module), name)
    rows = [[float(torch.tensor(p).double().log()) for p in row] for row in batch.probabilities]
    logprobs = batch.padded(rows).requires_grad_()
    mask = batch.mask
    fake = _Trainer(logprobs, loss_type, settings)
    inputs = {
        "prompt_ids": torch.zeros(len(mask), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(mask), 1),
        "completion_ids": torch.zeros_like(mask, dtype=torch.long),
        "completion_mask": mask,
        "advantages": torch.tensor([row[0] for row in batch.credits()], dtype=torch.float64),
        "old_per_token_logps": batch.padded(batch.behaviours, 1.0).log(),
        "old_logps": batch.padded(batch.behaviours, 1.0).log().sum(1),
        "ref_per_token_logps": batch.padded(batch.references or batch.probabilities, 1.0).log(),
        "num_items_in_batch": mask.sum(),
    }
    loss = kind._compute_loss(fake, None, inputs)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return [float(loss.detach()), *gradient[batch.padded([[1.0] * n for n in batch.lengths]) > 0].tolist()]


class _Trainer(SimpleNamespace):
    """The attributes that the loss reads, at the values that switch everything else off."""

    def __init__(self, logprobs: Tensor, loss_type: str, settings: dict[str, Any]) -> None:
        arguments: dict[str, Any] = {"delta": None, "use_bias_correction_kl": False, "steps_per_generation": 1}
        arguments |= {"sapo_temperature_pos": 1.0, "sapo_temperature_neg": 1.05}
        super().__init__(
            args=SimpleNamespace(**arguments),
            accelerator=SimpleNamespace(num_processes=1, gather=_same, reduce=_same, sync_gradients=True),
            model=SimpleNamespace(training=True),
            loss_type=loss_type,
            epsilon_low=settings.get("eps_low", 0.2),
            epsilon_high=settings.get("eps_high", 0.2),
            beta=settings.get("beta", 0.0),
            importance_sampling_level=settings.get("level", "token"),
            top_entropy_quantile=1.0,
            off_policy_mask_threshold=None,
            max_completion_length=LIMIT,
            current_gradient_accumulation_steps=1,
            use_vllm=False,
            vllm_importance_sampling_correction=False,
            aux_loss_enabled=False,
            _entropy_bonus_enabled=False,
            _metrics={"train": defaultdict(list)},
        )
        self._logprobs = logprobs

    def _get_per_token_logps_and_entropies(self, *_: Any, **__: Any) -> tuple[Tensor, Tensor, None]:
        return self._logprobs, torch.zeros_like(self._logprobs), None


def _same(value: Any, **_: Any) -> Any:
    return value
