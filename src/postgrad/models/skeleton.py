"""What a pass over a model costs, found out without weights: the model's own code on tensors that have only shapes.

The skeleton of a model is built from its configuration on torch's meta device, with its adapter, and run forward and
backward. Whatever autograd keeps on the way is counted, once per storage, weights left out; so are the operations of
matrix products. No formula per family is needed, and a family with unusual layers counts as it is. Attention is
counted as our kernels by blocks have it: queries, keys, values, the result and a number a query are kept, and of a
chain of tokens half of all pairs is computed.

Not covered: models whose code looks at values (routing that loops over experts): these raise `NotCounted`.
Shapes: T tokens, H heads, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from postgrad.core.errors import DataError
from postgrad.models.adapter.attach import attach
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.folder import base_of
from postgrad.models.load import is_adapter
from postgrad.models.recompute import compute_again
from postgrad.models.resolve import TINY_RANDOM, require_reachable, resolve_model
from postgrad.models.selfcheck import FOREIGN_ERRORS
from postgrad.models.tiny import tiny_model

NAME = "postgrad_counted"
NEED_VALUES = {"pissa", "loftq", "qlora"}
"""Variants that start from the values of weights; what they train has the shapes of LoRA's."""


class NotCounted(Exception):
    """The model's code cannot run without values; the message says why."""


@dataclass(frozen=True)
class PassCost:
    """One forward and backward pass over a row of tokens.

    Attributes:
        kept: bytes that autograd holds when the forward pass has ended.
        largest: bytes that the layer with most of them holds.
        forward: operations of matrix products in the forward pass, attention over T²/2 pairs included.
        flops: those of both passes.
    """

    kept: int
    largest: int
    forward: int
    flops: int


def skeleton(name: str, adapter: AdapterConfig | None) -> nn.Module:
    """The model `name` without weights, its adapter on it; trainable is what training would train.

    Raises:
        ConfigError: an unknown model, or an adapter that fits nothing.
        DataError: its configuration does not load.
    """
    source = resolve_model(name)
    if is_adapter(source):
        source = resolve_model(base_of(source))
    with torch.device("meta"):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(_configuration(source), dtype=torch.float32)
        model.tie_weights()
        model.eval()
        adapted: nn.Module = model if adapter is None else attach(model, _shaped(adapter), base=name)
        return adapted


def _configuration(source: Path | str) -> Any:
    if source == TINY_RANDOM:
        return tiny_model().config
    if isinstance(source, str):
        require_reachable(source)
    try:
        return AutoConfig.from_pretrained(str(source))
    except (OSError, ValueError) as error:
        raise DataError(f"the model's configuration does not load: {error}", got=str(source)) from None


def _shaped(adapter: AdapterConfig) -> AdapterConfig:
    """The adapter with what needs values left out."""
    kept = [name for name in adapter.variant if name not in NEED_VALUES] or ["lora"]
    options = {} if set(adapter.variant) & NEED_VALUES else adapter.options
    return adapter.model_copy(update={"variant": tuple(kept), "options": options})


def pass_cost(model: nn.Module, tokens: int, *, checkpoint_every: int = 0) -> PassCost:
    """Cost of a pass of `tokens` through the body of a skeleton.

    Raises:
        NotCounted: the model's code needs values.
        ConfigError: layers that shall be computed again, in a family that cannot.
    """
    get = getattr(model, "get_base_model", None)
    network: Any = model if get is None else get()
    if checkpoint_every:
        compute_again(model, every=checkpoint_every)
    network.config._attn_implementation = NAME
    ids_1T = torch.zeros((1, tokens), dtype=torch.long, device="meta")
    mask_11TT = torch.zeros((1, 1, tokens, tokens), device="meta")
    layer_types = getattr(network.config.get_text_config(decoder=True), "layer_types", None)
    mask: Any = dict.fromkeys({"full_attention", *layer_types}, mask_11TT) if layer_types else mask_11TT
    ledger = _Kept(model)
    _Attention.flops = 0
    counter = FlopCounterMode(display=False)
    network.train()
    try:
        with counter, ledger.watching(network):
            hidden_1TD = network.base_model(
                input_ids=ids_1T, attention_mask=mask, use_cache=False, return_dict=True
            ).last_hidden_state
        products, forward = counter.get_total_flops(), counter.get_total_flops() + _Attention.flops
        if hidden_1TD.requires_grad:
            with counter:  # counts anew
                torch.autograd.backward([hidden_1TD], [torch.zeros_like(hidden_1TD)])
            products += counter.get_total_flops()
    except FOREIGN_ERRORS as error:
        raise NotCounted(f"{type(error).__name__}: {' '.join(str(error).split())[:120]}") from error
    finally:
        network.eval()
        for parameter in model.parameters():
            parameter.grad = None
    return PassCost(ledger.total, ledger.largest, forward, products + _Attention.flops)


class _Kept:
    """Bytes that autograd keeps, by storage; those of weights and buffers are there anyway."""

    def __init__(self, model: nn.Module) -> None:
        self._seen = {_storage(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self.total = self.largest = 0

    @contextmanager
    def watching(self, network: nn.Module) -> Iterator[None]:
        """Count inside; layer by layer for the largest."""
        lists = [m for m in network.modules() if isinstance(m, nn.ModuleList)]
        layers = max(lists, key=lambda m: sum(p.numel() for p in m.parameters()), default=nn.ModuleList())
        before: list[int] = []
        hooks = [layer.register_forward_pre_hook(lambda *_: before.append(self.total)) for layer in layers]
        hooks += [layer.register_forward_hook(lambda *_: self._end(before.pop())) for layer in layers]
        try:
            with torch.autograd.graph.saved_tensors_hooks(self._pack, lambda tensor: tensor):
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _pack(self, tensor: Tensor) -> Tensor:
        key = _storage(tensor)
        if key not in self._seen:
            self._seen.add(key)
            self.total += tensor.untyped_storage().nbytes()
        return tensor

    def _end(self, before: int) -> None:
        self.largest = max(self.largest, self.total - before)


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


class _Attention(torch.autograd.Function):
    """Attention that computes nothing, keeps what a fused kernel keeps and counts what it would compute."""

    flops: ClassVar[int] = 0

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        same = query.shape[-1] == value.shape[-1]  # as the query lies, so that heads side by side are no copy
        out = torch.empty_like(query) if same else query.new_empty((*query.shape[:-1], value.shape[-1]))
        ctx.save_for_backward(query, key, value, out, query.new_empty(query.shape[:-1]))
        _Attention.flops += query.shape[1] * query.shape[2] ** 2 * (query.shape[3] + value.shape[3])
        return out

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = ctx.saved_tensors[:3]
        # The scores once more, then the gradients of value, probabilities, query and key.
        _Attention.flops += query.shape[1] * query.shape[2] ** 2 * (3 * query.shape[3] + 2 * value.shape[3])
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _counted(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **_: Any
) -> tuple[Tensor, None]:
    apply: Callable[..., Tensor] = _Attention.apply
    attended = apply(query, key, value)
    return attended.transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, _counted)
AttentionMaskInterface.register(NAME, sdpa_mask)
