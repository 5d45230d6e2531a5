"""The outer loop of DiLoCo over one run's weights: a `Sync` for the training loop.

The outer copy and its momentum are kept on the CPU in fp32 (fp64 for weights in fp64), flat, one pair a fragment.

Shapes: N weights of a fragment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from postgrad.core.canonical import content_id
from postgrad.core.errors import ConfigError, OutsideFailure
from postgrad.train.sync.choice import SyncSettings
from postgrad.train.sync.replicas import Replicas


class OuterSettings(SyncSettings, Protocol):
    """What the outer loop asks of its settings: `diloco.DiLoCo` says what each means."""

    @property
    def address(self) -> str | None:
        """host:port of the first replica; None where there is no other."""
        ...

    @property
    def timeout(self) -> float:
        """Seconds to wait for another replica."""
        ...

    @property
    def lr(self) -> float:
        """Outer learning rate."""
        ...

    @property
    def momentum(self) -> float:
        """Outer Nesterov momentum."""
        ...

    @property
    def averages(self) -> bool:
        """Whether an outer step is the mean of the weights."""
        ...

    @property
    def fragments(self) -> int:
        """Parts that the weights are synced in."""
        ...

    def due(self, fragment: int, step: int) -> bool:
        """Whether `fragment` has its outer step after optimiser step `step` (from 0)."""
        ...

    def shared(self) -> dict[str, Any]:
        """The settings that all replicas must have alike, as plain JSON."""
        ...


class Fragment:
    """A run of the weights with outer state of its own."""

    def __init__(self, parameters: Sequence[nn.Parameter], settings: OuterSettings) -> None:
        self._parameters, self._averages = parameters, settings.averages
        kept = reduce(torch.promote_types, (p.dtype for p in parameters), torch.float32)
        self.outer_N = torch.empty(sum(p.numel() for p in parameters), dtype=kept)
        self.take_weights()
        nesterov = settings.momentum > 0
        self._optimizer = torch.optim.SGD([self.outer_N], lr=settings.lr, momentum=settings.momentum, nesterov=nesterov)

    @torch.no_grad()
    def step(self, replicas: Replicas) -> None:
        """One outer step; this replica's weights become the outer ones."""
        weights_N = self._weights()
        if self._averages:
            self.outer_N.copy_(replicas.mean(weights_N))
        else:
            self.outer_N.grad = replicas.mean(self.outer_N - weights_N)
            self._optimizer.step()
            self.outer_N.grad = None
        self.put_weights()

    @torch.no_grad()
    def take_weights(self) -> None:
        """The outer copy is the weights as they are."""
        self.outer_N.copy_(self._weights())

    @torch.no_grad()
    def put_weights(self) -> None:
        """The weights are the outer copy."""
        parts = torch.split(self.outer_N, [p.numel() for p in self._parameters])
        for parameter, part_N in zip(self._parameters, parts, strict=True):
            parameter.copy_(part_N.view(parameter.shape))

    @property
    def momentum_N(self) -> Tensor | None:
        """None before the first step and without momentum."""
        momentum_N: Tensor | None = self._optimizer.state.get(self.outer_N, {}).get("momentum_buffer")
        return momentum_N

    @torch.no_grad()
    def restore(self, outer_N: Tensor, momentum_N: Tensor | None) -> None:
        """Take back the outer state; the weights are restored by whoever keeps them."""
        self.outer_N.copy_(outer_N)
        self._optimizer.state.clear()
        if momentum_N is not None:
            self._optimizer.state[self.outer_N] = {"momentum_buffer": momentum_N.clone()}

    def _weights(self) -> Tensor:
        parts = [p.detach().reshape(-1).to("cpu", self.outer_N.dtype) for p in self._parameters]
        return torch.cat(parts)


class OuterLoop:
    """Keeps one replica with the others; see `diloco`."""

    name = "sync"

    def __init__(
        self, settings: OuterSettings, parameters: Mapping[str, nn.Parameter], *, steps: int, rank: int = 0
    ) -> None:
        self._settings, self._steps, self._rank = settings, steps, rank
        self._shapes = {name: list(p.shape) for name, p in parameters.items()}
        self._fragments = [Fragment(part, settings) for part in runs(list(parameters.values()), settings.fragments)]
        self._replicas: Replicas | None = None
        self._rounds = 0

    def agree(self, steps: Sequence[int]) -> int | None:
        """Meet the others: the newest of the checkpoints at `steps` that every replica has, None for a new start.

        Raises:
            ConfigError: replicas do not train the same weights with the same settings.
            OutsideFailure: they did not all come.
        """
        s = self._settings
        self._replicas = Replicas(s.address, replica=s.replica, count=s.replicas, rank=self._rank, timeout=s.timeout)
        told = {
            "steps": list(steps),
            "shared": s.shared() | {"loop.steps": self._steps, "weights": content_id(self._shapes)},
        }
        everyone = self._replicas.gathered(told)
        for replica, theirs in enumerate(everyone):
            for name, value in theirs["shared"].items():
                if value != everyone[0]["shared"][name]:
                    raise ConfigError(
                        f"replicas must be alike, but replica {replica} has another '{name}' than the first",
                        got=value,
                        expected=everyone[0]["shared"][name],
                    )
        return _common([set(theirs["steps"]) for theirs in everyone])

    @property
    def together(self) -> bool:
        """Whether there is another replica."""
        return self._settings.replicas > 1

    def before_save(self, step: int) -> None:
        """Wait for all, so that they always have a checkpoint in common."""
        self._same_step(step)

    def begin(self) -> None:
        """A new run: all replicas start from the first one's weights."""
        for fragment in self._fragments:
            fragment.take_weights()
            fragment.outer_N.copy_(self._met.first(fragment.outer_N))
            fragment.put_weights()

    def after_step(self, step: int) -> None:
        """The outer step of every fragment that is due after optimiser step `step`."""
        last = step + 1 == self._steps
        due = [f for k, f in enumerate(self._fragments) if last or self._settings.due(k, step)]
        if not due:
            return
        self._same_step(step)
        for fragment in due:
            fragment.step(self._met)
        self._rounds += 1

    def finish(self) -> None:
        """All replicas have saved their last checkpoint."""
        self._met.part()

    def tensors(self) -> dict[str, Tensor]:
        """Outer copies and momenta, "fragment/name"."""
        outer = {f"{k}/outer": fragment.outer_N for k, fragment in enumerate(self._fragments)}
        momenta = {f"{k}/momentum": m for k, f in enumerate(self._fragments) if (m := f.momentum_N) is not None}
        return outer | momenta

    def state(self) -> dict[str, Any]:
        """How many syncs there were."""
        return {"rounds": self._rounds}

    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """Take back what `tensors` and `state` gave."""
        self._rounds = int(state["rounds"])
        for k, fragment in enumerate(self._fragments):
            fragment.restore(tensors[f"{k}/outer"], tensors.get(f"{k}/momentum"))

    def _same_step(self, step: int) -> None:
        if any(other != step for other in self._met.gathered(step)):
            raise OutsideFailure(f"replicas are at different steps, this one at {step}; start all of them again")

    @property
    def _met(self) -> Replicas:
        assert self._replicas is not None, "agree() comes first"
        return self._replicas


def _common(steps: Sequence[set[int]]) -> int | None:
    """The newest step that all have; None for a new start, where nobody has more than the weights as they were.

    Raises:
        ConfigError: some have trained, and there is no step that all have.
    """
    shared = set.intersection(*steps)
    if not shared and any(own - {0} for own in steps):
        raise ConfigError(
            "the replicas' run folders have no checkpoint in common",
            got="; ".join(f"replica {k}: {', '.join(map(str, sorted(own))) or 'none'}" for k, own in enumerate(steps)),
            do="give every replica its own folder of this run, or a new one to all",
        )
    return max(shared, default=None)


def runs(parameters: Sequence[nn.Parameter], n: int) -> list[list[nn.Parameter]]:
    """`parameters` in `n` runs of about equal size, none empty.

    Raises:
        ConfigError: there are fewer weights than runs.
    """
    if len(parameters) < n:
        raise ConfigError("sync.fragments is more than there are weights", got=n, expected=f"at most {len(parameters)}")
    whole = max(1, sum(p.numel() for p in parameters))
    split: list[list[nn.Parameter]] = [[] for _ in range(n)]
    ends = accumulate(p.numel() for p in parameters)
    place = 0
    for index, (parameter, end) in enumerate(zip(parameters, ends, strict=True)):
        middle = end - parameter.numel() / 2
        left = len(parameters) - index
        if split[place] and (n * middle >= whole * (place + 1) or left <= n - place - 1):  # the later ones need one too
            place += 1
        split[place].append(parameter)
    return split
