"""Memory and operations of a training run, before it runs: of one worker, from the recipe and a model without weights.

    weights       4 bytes a parameter (fp32), frozen or not
    gradients     4 bytes a trained parameter
    optimiser     what it keeps for a trained parameter, by its name (docs/optimizers.md)
    copies        weights again for the reference of full fine-tuning; trained ones again for a teacher that is a copy
    activations   what autograd keeps of one forest of `loop.token_budget` tokens, counted on the model's own code
    working set   buffers of the largest layer in the backward pass, logits that wait (at least a chunk) and two chunks,
                  and three gradients of the head where that is trained

A forest that is smaller than the budget needs less. Operations are those of a forward and backward pass over a full
forest, of reference passes, and of the head for every token; attention as over one chain.

Not covered: what Python and its libraries take (about 0.5 GB), fragmentation, rollouts, autocast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from postgrad.core.errors import ConfigError
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.score import CHUNK, KEPT_LOGITS
from postgrad.models.skeleton import NotCounted, pass_cost, skeleton
from postgrad.objectives.teaching import Teacher
from postgrad.objectives.tiles import TILE
from postgrad.train.channels import build_channels
from postgrad.train.config import TrainConfig
from postgrad.train.groups import Group, make_groups
from postgrad.train.memory import uses_reference
from postgrad.train.teachers import COPIES

FLOAT = 4


@dataclass(frozen=True)
class Footprint:
    """Bytes of one worker, and operations.

    Attributes:
        parameters: of the model, tied ones once.
        trained: those that are trained.
        weights, gradients, optimizer, copies: bytes.
        activations, working_set: bytes; None where the model could not be counted, and `uncounted` says why.
        forest_flops: operations of one full forest; None likewise.
        token_budget: its tokens.
        uncounted: what is missing, empty where nothing is.
    """

    parameters: int
    trained: int
    weights: int
    gradients: int
    optimizer: int
    copies: int
    activations: int | None
    working_set: int | None
    forest_flops: int | None
    token_budget: int
    uncounted: str = ""

    @property
    def total(self) -> int | None:
        """Most bytes held at one time, None where a part is unknown."""
        if self.activations is None or self.working_set is None:
            return None
        held = self.weights + self.gradients + self.optimizer + self.copies
        return held + self.activations + self.working_set

    def plain(self) -> dict[str, Any]:
        """As JSON, the total and operations per token with it."""
        per_token = None if self.forest_flops is None else self.forest_flops // self.token_budget
        return {**asdict(self), "total": self.total, "token_flops": per_token}


def footprint(model: str, adapter: AdapterConfig | None, config: TrainConfig, *, workers: int = 1) -> Footprint:
    """What training `model` as `config` says takes on each of `workers`.

    Raises:
        ConfigError: an unknown model, an adapter that fits nothing, an optimiser that is not one of ours.
    """
    bones = skeleton(model, adapter)
    named = {name: p for name, p in bones.named_parameters() if p.requires_grad}
    parameters, trained = sum(p.numel() for p in bones.parameters()), sum(p.numel() for p in named.values())
    cut = (lambda n: _cut(bones, n, workers)) if config.memory.shard else (lambda n: n)
    budget = config.loop.token_budget
    states = optimizer_bytes(make_groups(named, config.optim), config.optim.name, config.optim.settings)
    activations: int | None = None
    working_set: int | None = None
    flops: int | None = None
    why = ""
    try:
        plain = pass_cost(bones, budget)
        chosen = plain
        if config.memory.checkpoint_every:
            chosen = pass_cost(bones, budget, checkpoint_every=config.memory.checkpoint_every)
        activations = 0 if config.memory.offload else chosen.kept
        vocabulary, width = _head(bones)
        head_gradients = vocabulary * width if _head_trains(bones) else 0
        kept = min(budget * vocabulary, max(KEPT_LOGITS, CHUNK * vocabulary))
        logits = kept if head_gradients else min(budget * vocabulary, max(TILE, CHUNK * vocabulary))
        working_set = plain.largest + FLOAT * (kept + 2 * logits + 3 * head_gradients)
        reference = uses_reference(config)
        head = (6 if _head_trains(bones) else 4) + 2 + 2 * reference  # the chunk is computed again in the backward pass
        flops = chosen.flops + reference * plain.forward + head * vocabulary * width * budget
    except NotCounted as reason:
        why = str(reason)
    return Footprint(
        parameters=parameters,
        trained=trained,
        weights=cut(FLOAT * parameters),
        gradients=cut(FLOAT * trained),
        optimizer=cut(states),
        copies=_copies(config, adapter, parameters=parameters, trained=trained),
        activations=activations,
        working_set=working_set,
        forest_flops=flops,
        token_budget=budget,
        uncounted=why,
    )


def optimizer_bytes(groups: Iterable[Group], name: str, settings: Mapping[str, Any]) -> int:
    """What an optimiser keeps for `groups`, its step counts left out.

    Raises:
        ConfigError: it is none of `OPTIMIZERS`.
    """
    if name not in KEPT:
        raise ConfigError("the memory of this optimiser is not known", got=name, expected=f"one of {', '.join(KEPT)}")
    return sum(KEPT[name](p, group, settings) for group in groups for p in group.parameters)


def _adamw(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    return 2 * FLOAT * p.numel()


def _adamw8bit(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    return 2 * p.numel() + 2 * 2 * -(-p.numel() // 32)


def _adafactor(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    return FLOAT * (p.numel() if p.ndim < 2 else p.numel() // p.shape[-1] + p.numel() // p.shape[-2])


def _galore(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    rank = int(settings["rank"])
    if not group.hidden or min(p.shape) <= rank:
        return _adamw(p, group, settings)
    return FLOAT * rank * (2 * max(p.shape) + min(p.shape))  # two moments in the subspace, and its basis


def _lion(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    return FLOAT * p.numel()


def _muon(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    return FLOAT * p.numel() * (1 if group.hidden else 2)


def _sgd(p: nn.Parameter, group: Group, settings: Mapping[str, Any]) -> int:
    return FLOAT * p.numel() if settings["momentum"] else 0


KEPT: dict[str, Callable[[nn.Parameter, Group, Mapping[str, Any]], int]] = {
    "adamw": _adamw,
    "adamw8bit": _adamw8bit,
    "adafactor": _adafactor,
    "galore": _galore,
    "lion": _lion,
    "muon": _muon,
    "sgd": _sgd,
}


def _copies(config: TrainConfig, adapter: AdapterConfig | None, *, parameters: int, trained: int) -> int:
    copies = 0
    if uses_reference(config) and (adapter is None or trained == parameters):
        copies += FLOAT * parameters
    if config.channels:
        for channel in build_channels(config.channels)[0]:
            teacher = getattr(channel.objective, "teacher", None)
            if isinstance(teacher, Teacher):
                copies += FLOAT * trained * len(COPIES.get(teacher.kind, ()))
    return copies


def _cut(model: nn.Module, size: int, workers: int) -> int:
    """A worker's share: of layers one part, of everything else the whole."""
    layers = max(
        (m for m in model.modules() if isinstance(m, nn.ModuleList)),
        key=lambda m: sum(p.numel() for p in m.parameters()),
    )
    share = sum(p.numel() for p in layers.parameters()) / sum(p.numel() for p in model.parameters())
    return int(size * (1 - share + share / workers))


def _head(model: nn.Module) -> tuple[int, int]:
    network: Any = getattr(model, "get_base_model", lambda: model)()
    rows, columns = network.get_output_embeddings().weight.shape
    return rows, columns


def _head_trains(model: nn.Module) -> bool:
    network: Any = getattr(model, "get_base_model", lambda: model)()
    return bool(network.get_output_embeddings().weight.requires_grad)
