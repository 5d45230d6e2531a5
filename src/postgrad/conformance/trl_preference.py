"""TRL's preference losses on the actions of `pair_batch`: its own methods, on an object with only what they read.

The trainers need a model and a dataset; their losses are functions of log-probabilities.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from postgrad.conformance.pair_batch import CHOSEN, MISMATCHED, REFERENCES, REJECTED, logs


def trl_dpo(loss_type: str, *, beta: float = 1.0, label_smoothing: float = 0.0) -> list[float]:
    """Loss and gradient of `DPOTrainer._compute_loss`, by the two chosen and the rejected token."""
    kind = _kind("trl.trainer.dpo_trainer:DPOTrainer")
    trainer = SimpleNamespace(
        **_common(),
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        loss_types=[loss_type],
        loss_weights=[1.0],
        beta=beta,
        label_smoothing=label_smoothing,
        use_weighting=False,
    )
    mask = torch.tensor([[0, 1, 1], [0, 1, 0]])
    ref = torch.tensor(logs(REFERENCES), dtype=torch.float64)
    inputs = _tokens(mask) | {"ref_chosen_logps": 2 * ref, "ref_rejected_logps": ref}

    def loss(logprobs_N: Tensor) -> Tensor:
        rows = torch.stack([logprobs_N[:2], torch.cat([logprobs_N[2:], logprobs_N.new_zeros(1)])])
        found: Tensor = kind._compute_loss(trainer, _model(rows), inputs, False)
        return found

    return _with_gradient(loss)


def trl_kto() -> list[float]:
    """Loss and gradient of `KTOTrainer._compute_loss`."""
    kind = _kind("trl.trainer.kto_trainer:KTOTrainer")
    ref = torch.tensor(logs(REFERENCES), dtype=torch.float64)
    mismatched = torch.tensor(logs(MISMATCHED), dtype=torch.float64)
    trainer = SimpleNamespace(
        **_common(),
        precompute_ref_logps=True,
        calculate_KL=True,
        loss_type="kto",
        beta=1.0,
        desirable_weight=1.0,
        undesirable_weight=1.0,
        _compute_kl_logps=lambda model, batch: mismatched,
    )
    mask = torch.tensor([[0, 1, 1], [0, 1, 0]])
    inputs = _tokens(mask) | {
        "label": torch.tensor([True, False]),
        "ref_logps": torch.cat([2 * ref, ref]),
        "ref_KL_logps": ref,
    }

    def loss(logprobs_N: Tensor) -> Tensor:
        rows = torch.stack([logprobs_N[:2], torch.cat([logprobs_N[2:], logprobs_N.new_zeros(1)])])
        found: Tensor = kind._compute_loss(trainer, _model(rows), inputs, False)
        return found

    return _with_gradient(loss)


def trl_simpo(*, beta: float, margin: float) -> list[float]:
    """Loss and gradient of `CPOTrainer.cpo_loss`, which takes mean log-probabilities for SimPO."""
    kind = _kind("trl.experimental.cpo.cpo_trainer:CPOTrainer")
    trainer = SimpleNamespace(
        alpha=0.0, loss_type="simpo", beta=beta, simpo_gamma=margin, label_smoothing=0.0, **_common()
    )

    def loss(logprobs_N: Tensor) -> Tensor:
        losses, _, _ = kind.cpo_loss(trainer, logprobs_N[:2].mean()[None], logprobs_N[2:])
        total: Tensor = losses.mean()
        return total

    return _with_gradient(loss)


def trl_orpo(*, beta: float) -> list[float]:
    """Loss and gradient of ORPO: the chosen action's mean nll less `ORPOTrainer.odds_ratio_loss`, as it sums them."""
    kind = _kind("trl.experimental.orpo.orpo_trainer:ORPOTrainer")
    trainer = SimpleNamespace(beta=beta, **_common())

    def loss(logprobs_N: Tensor) -> Tensor:
        chosen, rejected = logprobs_N[:2].mean()[None], logprobs_N[2:]
        total: Tensor = -chosen.mean() - kind.odds_ratio_loss(trainer, chosen, rejected)[0].mean()
        return total

    return _with_gradient(loss)


def _kind(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _common() -> dict[str, Any]:
    """What every trainer has, with everything switched off that is no loss."""
    return {
        "accelerator": SimpleNamespace(device=torch.device("cpu"), gather=_same, gather_for_metrics=_same),
        "model": SimpleNamespace(training=True),
        "args": SimpleNamespace(gradient_checkpointing_kwargs=None),
        "aux_loss_enabled": False,
        "_metrics": {"train": defaultdict(list)},
        "_total_train_tokens": 0,
        "_tp_size": 1,
    }


def _tokens(mask: Tensor) -> dict[str, Tensor]:
    return {"input_ids": torch.zeros_like(mask), "attention_mask": torch.ones_like(mask), "completion_mask": mask}


def _model(logprobs_RL: Tensor) -> Callable[..., Any]:
    """A model whose fused head gives these log-probabilities."""
    zeros = torch.zeros_like(logprobs_RL)
    output = SimpleNamespace(
        log_probs=logprobs_RL, entropy=zeros, mean_logits=zeros, is_top1=zeros.bool(), logits=zeros
    )
    return lambda **_: output


def _with_gradient(loss: Callable[[Tensor], Tensor]) -> list[float]:
    leaf_N = torch.tensor(logs([*CHOSEN, *REJECTED]), dtype=torch.float64, requires_grad=True)
    value = loss(leaf_N)
    (gradient_N,) = torch.autograd.grad(value, leaf_N)
    return [float(value.detach()), *gradient_N.tolist()]


def _same(value: Any, **_: Any) -> Any:
    return value
