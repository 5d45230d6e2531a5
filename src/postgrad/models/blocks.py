"""Attention over a forest on CPUs, block by block: no (T, T) mask is held, and keys that nobody sees are left out.

A block of queries sees the keys before its end whose subtrees reach into it. Those are taken together and attended to
with torch's own fused kernel and the rule as a mask of that block alone, forward and backward. So a packed forest costs
the sum of its trees, a trace costs half of a dense mask (nothing after a query is touched), and a branch costs its
path. What is kept for the backward pass is what the kernel keeps of the whole: queries, keys, values, the result and a
number a query.

The mask that models hand through is `packed_mask`, the tokens' exits with the blocks made of them. transformers calls
`block_attention` by name (`BLOCKS`) for models that the self-check switched to it; with any other mask it is
transformers' SDPA. Dropout and values of another width than keys run on a dense mask that is made here.
Not covered: soft-capping and attention sinks (the self-check leaves such models on dense masks).

Shapes: T tokens of the forest, H heads, K keys of a block, Q queries of a block, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from postgrad.core.forest import Forest, IntsT

BLOCKS = "postgrad_blocks"
SHORT, LONG, DEEP = 128, 256, 2048
"""Queries of a block: fewer leave more keys out, more keep the kernel busier, which pays from so deep a tree on."""


@dataclass(frozen=True)
class Block:
    """Queries `first` to `last` (exclusive), the keys that any of them sees, and which pairs are hidden (Q, K)."""

    first: int
    last: int
    keys_K: Tensor | slice
    hidden_QK: Tensor


class PackedMask(Tensor):
    """Exits and the other columns of the rule as an integer tensor (1, 1, 1, T), with the blocks made of them."""

    blocks: Sequence[Block]


def packed_mask(
    forest: Forest, *, window: int | None = None, chunk: int | None = None, device: str = "cpu"
) -> PackedMask:
    """The forest's mask for `block_attention`.

    Args:
        forest: T tokens.
        window: only the last `window` positions of the query's branch, its own included.
        chunk: only positions of the query's own chunk of so many.
        device: where the attention runs.
    """
    exits_111T = torch.from_numpy(forest.exits_T)[None, None, None].to(device)
    mask: PackedMask = exits_111T.as_subclass(PackedMask)
    size = LONG if forest.positions_T.max() >= DEEP else SHORT
    ends = [(first, min(first + size, len(forest))) for first in range(0, len(forest), size)]
    mask.blocks = [_block(forest, *end, window=window, chunk=chunk, device=device) for end in ends]
    return mask


def _block(forest: Forest, first: int, last: int, *, window: int | None, chunk: int | None, device: str) -> Block:
    queries_Q1 = np.arange(first, last)[:, None]
    keys_K = np.flatnonzero(forest.exits_T[:last] > first)
    seen_QK = (keys_K <= queries_Q1) & (queries_Q1 < forest.exits_T[keys_K])
    places_T = forest.positions_T
    if window is not None:
        seen_QK &= places_T[queries_Q1] - places_T[keys_K] < window
    if chunk is not None:
        seen_QK &= places_T[queries_Q1] // chunk == places_T[keys_K] // chunk
    used_K = seen_QK.any(axis=0)
    return Block(first, last, _index(keys_K[used_K], device), torch.from_numpy(~seen_QK[:, used_K]).to(device))


def _index(keys_K: IntsT, device: str) -> Tensor | slice:
    """A slice where the keys lie side by side."""
    if keys_K[-1] - keys_K[0] + 1 == len(keys_K):
        return slice(int(keys_K[0]), int(keys_K[-1]) + 1)
    return torch.from_numpy(keys_K).to(device)


def block_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **settings: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention (1, T, H, D) of queries (1, H, T, D), as transformers asks; keys and values may have fewer heads."""
    scale, dropout = settings.get("scaling"), settings.get("dropout", 0.0)
    if not isinstance(attention_mask, PackedMask) or not hasattr(attention_mask, "blocks"):
        found: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **settings
        )
        return found
    if dropout or settings.get("position_bias") is not None or value.shape[-1] != query.shape[-1]:
        dense = _dense(attention_mask.blocks, query)
        dense_found: tuple[Tensor, Tensor | None] = sdpa_attention_forward(module, query, key, value, dense, **settings)
        return dense_found
    if settings.get("softcap") is not None or settings.get("s_aux") is not None:
        raise ValueError("block attention knows neither soft-capping nor sinks")  # the self-check then says so
    if torch.is_autocast_enabled(query.device.type):  # as it casts for torch's own attention: rotations leave fp32
        lower = torch.get_autocast_dtype(query.device.type)
        query, key, value = (part.to(lower) for part in (query, key, value))
    attend: Any = _BlockAttention.apply
    attended: Tensor = attend(query, key, value, attention_mask.blocks, scale)
    return attended.transpose(1, 2).contiguous(), None


def _dense(blocks: Sequence[Block], query: Tensor) -> Tensor:
    """The mask (1, 1, T, T) to add."""
    length = query.shape[2]
    mask_TT = query.new_full((length, length), -torch.inf)
    for block in blocks:
        mask_TT[block.first : block.last, block.keys_K] = _additive(block, query.dtype)
    return mask_TT[None, None]


def _additive(block: Block, dtype: torch.dtype) -> Tensor:
    mask_QK = torch.zeros(block.hidden_QK.shape, dtype=dtype, device=block.hidden_QK.device)
    return mask_QK.masked_fill_(block.hidden_QK, -torch.inf)


class _BlockAttention(torch.autograd.Function):
    """The fused CPU kernel on every block, and its own backward pass on every block."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, blocks: Sequence[Block], scale: float | None
    ) -> Tensor:
        attended = torch.empty_like(query)
        sums = []
        for block in blocks:
            rows = slice(block.first, block.last)
            part, sum_HQ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                query[:, :, rows],
                _heads(key[:, :, block.keys_K], query),
                _heads(value[:, :, block.keys_K], query),
                attn_mask=_additive(block, query.dtype)[None, None],
                scale=scale,
            )
            attended[:, :, rows] = part
            sums.append(sum_HQ)
        ctx.save_for_backward(query, key, value, attended, *sums)
        ctx.blocks, ctx.scale = blocks, scale
        return attended

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, attended, *sums = ctx.saved_tensors
        slope = upstream[0]
        to_query, to_key, to_value = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
        for block, sum_HQ in zip(ctx.blocks, sums, strict=True):
            rows, keys = slice(block.first, block.last), block.keys_K
            of_query, of_key, of_value = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                slope[:, :, rows],
                query[:, :, rows],
                _heads(key[:, :, keys], query),
                _heads(value[:, :, keys], query),
                attended[:, :, rows],
                sum_HQ,
                0.0,
                False,
                attn_mask=_additive(block, query.dtype)[None, None],
                scale=ctx.scale,
            )
            to_query[:, :, rows] = of_query
            for total, part in ((to_key, of_key), (to_value, of_value)):
                grouped = part.unflatten(1, (total.shape[1], -1)).sum(dim=2)
                if isinstance(keys, slice):
                    total[:, :, keys] += grouped
                else:
                    total.index_add_(2, keys, grouped)
        return to_query, to_key, to_value, None, None


def _heads(part: Tensor, query: Tensor) -> Tensor:
    """Every group's head as often as it has queries' heads."""
    return part.repeat_interleave(query.shape[1] // part.shape[1], dim=1)


def on_blocks(model: nn.Module) -> bool:
    """Whether `model` is switched to attention by blocks."""
    config: Any = model.config
    return bool(config._attn_implementation == BLOCKS)


AttentionInterface.register(BLOCKS, block_attention)
AttentionMaskInterface.register(BLOCKS, sdpa_mask)
