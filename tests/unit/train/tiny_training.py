"""A policy of a few thousand weights, a source that is a pure function of the step, and a run that only remembers.

The policy is a real causal transformer that sees by the forest's exit rule, so identities between packings hold for
it as for a model of billions. Its reference is a frozen copy made at birth.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem, PolicyGradientItem, PreferenceItem, Span, Unit
from postgrad.core.forest import Forest
from postgrad.train.config import TrainConfig

VOCABULARY = 29
WIDTH = 16


class TinyModel(nn.Module):
    def __init__(self, *, layers: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(64, WIDTH)
        qkv = [nn.Linear(WIDTH, 3 * WIDTH) for _ in range(layers)]
        mlp = [nn.Linear(WIDTH, WIDTH) for _ in range(layers)]
        self.layers = nn.ModuleList(nn.ModuleDict({"qkv": q, "mlp": m}) for q, m in zip(qkv, mlp, strict=True))
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(dropout)
        self.unembed = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def hidden_TD(self, forest: Forest) -> Tensor:
        x_TD = self.embed(torch.from_numpy(forest.tokens_T)) + self.position(torch.from_numpy(forest.positions_T))
        mask_TT = torch.from_numpy(forest.mask_TT())
        for layer in self.layers:
            q, k, v = (part[None, None] for part in layer["qkv"](x_TD).chunk(3, dim=-1))
            x_TD = x_TD + scaled_dot_product_attention(q, k, v, attn_mask=mask_TT)[0, 0]
            x_TD = x_TD + self.dropout(silu(layer["mlp"](x_TD)))
        return self.norm(x_TD)


class TinyPolicy:
    name = "tiny"

    def __init__(self, *, seed: int = 0, dropout: float = 0.0, dtype: torch.dtype = torch.float32) -> None:
        torch.manual_seed(seed)
        self.model = TinyModel(dropout=dropout).to(dtype)
        self._frozen = copy.deepcopy(self.model).requires_grad_(False).eval()
        self._active = self.model
        self.reference_passes = 0

    def hidden_TD(self, forest: Forest) -> Tensor:
        self.reference_passes += self._active is self._frozen
        return self._active.hidden_TD(forest)

    def head(self, hidden_ND: Tensor) -> Tensor:
        logits = self._active.unembed(hidden_ND)
        return logits if logits.dtype == torch.float64 else logits.float()

    @contextmanager
    def reference(self) -> Iterator[None]:
        self._active = self._frozen
        try:
            yield
        finally:
            self._active = self.model

    def weights(self) -> dict[str, Tensor]:
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}


class Twinned(TinyPolicy):
    """A tiny policy that copies can be made of; `twins` counts them."""

    twins = 0

    def twin(self) -> TinyPolicy:
        self.twins += 1
        twin = copy.copy(self)
        twin.model = copy.deepcopy(self.model).eval().requires_grad_(False)
        twin._active = twin.model
        return twin


def random_tokens(rng: np.random.Generator, n: int) -> tuple[int, ...]:
    return tuple(int(token) for token in rng.integers(0, VOCABULARY, n))


def span(branch: int, prompt: Sequence[int], action: Sequence[int]) -> Span:
    return Span(branch, tuple(range(len(prompt), len(prompt) + len(action))))


def random_unit(kind: str, rng: np.random.Generator, *, prompt: Sequence[int] | None = None) -> Unit:
    """One unit that feeds one channel; actions have 2 to 5 tokens."""
    prompt = random_tokens(rng, 4) if prompt is None else prompt
    a, b = random_tokens(rng, int(rng.integers(2, 6))), random_tokens(rng, int(rng.integers(2, 6)))
    own = span(0, prompt, a)
    if kind == "cross_entropy":
        return Unit(((*prompt, *a),), (CrossEntropyItem(own, float(rng.uniform(0.5, 2))),))
    if kind == "policy_gradient":
        behaviour = -rng.uniform(2, 4, len(a)).astype(np.float32)
        return Unit(((*prompt, *a),), (PolicyGradientItem(own, float(rng.normal()), behaviour, max_length=8),))
    if kind == "divergence":
        hinted = (*prompt, *random_tokens(rng, 2))
        item = DivergenceItem(own, span(1, hinted, a), float(rng.uniform(0.5, 2)))
        return Unit(((*prompt, *a), (*hinted, *a)), (item,))
    assert kind == "preference"
    item = PreferenceItem(own, span(1, prompt, b), float(rng.uniform(0.5, 2)))
    return Unit(((*prompt, *a), (*prompt, *b)), (item,))


KINDS = ("cross_entropy", "policy_gradient", "divergence", "preference")
ALL_CHANNELS = {
    "cross_entropy": {"weight": 1.0},
    "policy_gradient": {"weight": 0.7, "kl_coefficient": 0.1},
    "divergence": {"weight": 0.5},
    "preference": {"weight": 0.3},
}


def mixed_units(seed: int, *, each: int = 2, kinds: Sequence[str] = KINDS) -> list[Unit]:
    """`each` units of every kind; half of them share one prompt."""
    rng = np.random.default_rng(seed)
    shared = random_tokens(rng, 4)
    return [random_unit(kind, rng, prompt=shared if k % 2 else None) for kind in kinds for k in range(each)]


@dataclass
class StepSource:
    """`make(step)`, and a count of the steps asked for, as an example of a source with state."""

    make: Callable[[int], Sequence[Unit]] = mixed_units
    asked: int = 0

    def units(self, step: int) -> Sequence[Unit]:
        self.asked += 1
        return self.make(step)

    def state(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def restore(self, state: dict[str, Any]) -> None:
        self.asked = state["asked"]


@dataclass
class MemoryRun:
    path: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def log(self, *, step: int, **values: Any) -> None:
        self.lines.append({"step": step, **values})

    def rewind(self, step: int) -> None:
        self.lines = [line for line in self.lines if line["step"] <= step]


def config(*, steps: int = 3, channels: dict[str, dict[str, Any]] | None = None, **loop: Any) -> TrainConfig:
    optim = {"lr": 0.01, "schedule": "linear", "warmup_steps": min(2, steps), "weight_decay": 0.1}
    sections = {"optim": optim | loop.pop("optim", {}), "loop": {"steps": steps, "save_every": 1000, **loop}}
    return TrainConfig.model_validate(sections | {"channels": ALL_CHANNELS if channels is None else channels})
