"""The teachers of a run: copies of the policy that training keeps for the divergence, and TAID's target.

Copies are made from the live weights when the run starts (the trainable ones are copied, the frozen ones shared), are
moved after every optimiser step where they follow, and are written into checkpoints. A teacher's pass computes the part
of a forest that its tokens need and nothing else, without gradient and without dropout.

Shapes: T tokens of a forest, N nodes, D hidden size, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest, ancestors
from postgrad.models.evaluating import evaluating
from postgrad.models.policy import load_policy
from postgrad.objectives.channel import IntsN, Teaching
from postgrad.objectives.teaching import Taid, Teacher
from postgrad.train.channels import WeightedChannel
from postgrad.train.contracts import TrainablePolicy

COPIES = {"frozen": ("frozen",), "trust_region": ("frozen",), "ema": ("ema",)}
"""Kind of teacher -> the copies that it needs."""


class Reader(Protocol):
    """What reads a forest: a policy or a copy of one."""

    @property
    def model(self) -> nn.Module:
        """The network."""
        ...

    def hidden_TD(self, forest: Forest) -> Tensor:
        """Final hidden states of all tokens."""
        ...

    def head(self, hidden_ND: Tensor) -> Tensor:
        """Logits (N, V) in fp32."""
        ...


@runtime_checkable
class Copyable(Protocol):
    """A policy that copies can be made of."""

    def twin(self) -> Reader:
        """A frozen copy of the policy as it is now."""
        ...


class Teachers:
    """Everything that the divergence of one run asks its teachers for; a `Companion` of the loop."""

    name = "teachers"

    def __init__(self, policy: TrainablePolicy, teacher: Teacher, *, steps: int, channel: str = "divergence") -> None:
        self._policy, self._teacher, self._channel = policy, teacher, channel
        self._copies: dict[str, Reader] = {}
        self._model = _other_model(policy, teacher.model) if teacher.model else None
        self._blend = None if teacher.taid is None else Blend(teacher.taid, steps=steps)

    def begin(self) -> None:
        """Make the copies, unless they are there."""
        for name in COPIES.get(self._teacher.kind, ()):
            if name not in self._copies:
                assert isinstance(self._policy, Copyable), "a policy without twin() cannot be its own frozen teacher"
                self._copies[name] = self._policy.twin()

    def teaching(self, forest: Forest) -> Teaching:
        """What a scored forest hands to the divergence."""

        def view(name: str) -> _View:
            if name == "reference":
                return _Reference(self._policy, forest)
            reader = self._model if name == "model" else self._copies.get(name)
            assert reader is not None, f"no teacher '{name}': begin() was not called"
            return _View(reader, forest)

        return Teaching(view, None if self._blend is None else self._blend.tau)

    def observe(self, losses: Mapping[str, float]) -> None:
        """Take note of the channels' losses in this step."""
        if self._blend is not None:
            self._blend.observe(losses[self._channel])

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Let the averaged copy follow: φ ← (1 − rate) φ + rate θ."""
        if self._blend is not None:
            self._blend.move(step)
        if "ema" in self._copies:
            copies = dict(self._copies["ema"].model.named_parameters())
            for name, parameter in self._trained():
                copies[name].lerp_(parameter.to(copies[name].dtype), self._teacher.speed)

    def tensors(self) -> dict[str, Tensor]:
        """The copied weights, "copy/weight"."""
        self.begin()
        names = [name for name, _ in self._trained()]
        return {
            f"{copy}/{name}": dict(reader.model.named_parameters())[name].detach()
            for copy, reader in self._copies.items()
            for name in names
        }

    def state(self) -> dict[str, Any]:
        """TAID's numbers."""
        return {} if self._blend is None else self._blend.state()

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """Take back what `tensors` and `state` gave."""
        self.begin()
        for copy, reader in self._copies.items():
            copies = dict(reader.model.named_parameters())
            for name, _ in self._trained():
                copies[name].copy_(tensors[f"{copy}/{name}"])
        if self._blend is not None:
            self._blend.restore(state)

    def _trained(self) -> list[tuple[str, nn.Parameter]]:
        return [(name, p) for name, p in self._policy.model.named_parameters() if p.requires_grad]


def build_teachers(policy: TrainablePolicy, channels: Sequence[WeightedChannel], *, steps: int) -> Teachers | None:
    """The teachers that the run's channels name; None where none does.

    Raises:
        ConfigError: a teacher model that cannot be loaded or whose tokenizer is another.
    """
    named = {c.name: t for c in channels if isinstance(t := getattr(c.objective, "teacher", None), Teacher)}
    wanted = {name: teacher for name, teacher in named.items() if teacher != Teacher()}
    if len(wanted) > 1:
        raise ConfigError("more than one channel names a teacher", got=", ".join(wanted), expected="one")
    for name, teacher in wanted.items():
        return Teachers(policy, teacher, steps=steps, channel=name)
    return None


class Blend:
    """TAID's τ over a run of `steps` (arXiv 2501.16937)."""

    def __init__(self, taid: Taid, *, steps: int) -> None:
        self._taid, self._steps = taid, steps
        self.tau = taid.start
        self._momentum = 0.0
        self._before, self._now = math.nan, math.nan

    def observe(self, loss: float) -> None:
        """The loss that the next `move` goes by."""
        self._now = loss

    def move(self, step: int) -> None:
        """τ for the step after `step`."""
        taid = self._taid
        if math.isfinite(self._before) and math.isfinite(self._now) and self._before > 0:
            change = (self._before - self._now) / self._before
            self._momentum = taid.momentum * self._momentum + (1 - taid.momentum) * change
        adaptive = self.tau + taid.step / (1 + math.exp(-self._momentum)) * (1 - self.tau)
        linear = taid.start + (taid.end - taid.start) * min(1.0, (step + 1) / self._steps)
        self.tau = min(taid.end, max(linear, adaptive if taid.step else 0.0))
        if math.isfinite(self._now):
            self._before = self._now
        self._now = math.nan

    def state(self) -> dict[str, Any]:
        """τ, the momentum, the last loss."""
        return {
            "tau": self.tau,
            "momentum": self._momentum,
            "before": self._before if math.isfinite(self._before) else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        self.tau, self._momentum = float(state["tau"]), float(state["momentum"])
        self._before = math.nan if state["before"] is None else float(state["before"])


@dataclass(frozen=True)
class _View:
    """A copy's or another model's reading of `forest`."""

    reader: Reader
    forest: Forest

    @torch.no_grad()
    def predicting_ND(self, nodes_N: IntsN) -> Tensor:
        needed, places_N = ancestors(self.forest, self.forest.parents_T[nodes_N])
        leaves = int((self.forest.exits_T == np.arange(len(self.forest)) + 1).sum())
        if len(needed) >= len(self.forest) - leaves:
            # All but leaves: in the student's own contexts the same pass gives the same bits where weights are equal.
            needed, places_N = self.forest, self.forest.parents_T[nodes_N]
        hidden_TD = self.reader.hidden_TD(needed)
        return hidden_TD.index_select(0, torch.from_numpy(places_N).to(hidden_TD.device))

    @torch.no_grad()
    def head(self, hidden_ND: Tensor) -> Tensor:
        return self.reader.head(hidden_ND)


@dataclass(frozen=True)
class _Reference(_View):
    """The reference policy's: the policy's own network inside `reference()`."""

    reader: TrainablePolicy

    def predicting_ND(self, nodes_N: IntsN) -> Tensor:
        with evaluating(self.reader.model), self.reader.reference():
            return super().predicting_ND(nodes_N)

    def head(self, hidden_ND: Tensor) -> Tensor:
        with self.reader.reference():
            return super().head(hidden_ND)


def _other_model(policy: Any, name: str) -> Reader:
    """Load the teacher model beside the policy.

    Raises:
        ConfigError: its tokenizer is another.
    """
    teacher = load_policy(name, device=str(policy.device))
    refuse_other_tokenizer(policy.tokenizer, teacher.tokenizer, teacher_name=name)
    teacher.model.requires_grad_(False)
    return teacher


def refuse_other_tokenizer(student: Any, teacher: Any, *, teacher_name: str) -> None:
    """Distributions can be compared only over one vocabulary.

    Raises:
        ConfigError: the two tokenizers do not give every text the same ids.
    """
    ours, theirs = student.get_vocab(), teacher.get_vocab()
    if ours == theirs:
        return
    other = next(token for token in sorted(ours.keys() | theirs.keys()) if ours.get(token) != theirs.get(token))
    raise ConfigError(
        f"the teacher '{teacher_name}' has another tokenizer than the student",
        got=f"id {theirs.get(other, 'none')} for {other!r}",
        expected=f"id {ours.get(other, 'none')}",
        do="take a teacher of the same family, or distil its texts with method sft",
    )
