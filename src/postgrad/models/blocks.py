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
SHORT, LONG, DEEP = 64, 128, 2048
"""Queries of a block: fewer leave more keys out, more keep the kernel busier, which pays from so deep a tree on."""
KEPT_PAIRS = 1 << 21
"""Pairs of a forest whose masks are kept for the next layer: 8 MB in fp32 for every query head of a key head."""


@dataclass(frozen=True)
class Block:
    """Queries `first` to `last` (exclusive), the keys that any of them sees, and which pairs are hidden (Q, K)."""

    first: int
    last: int
    keys_K: Tensor | slice
    hidden_QK: Tensor
    _kept: dict[tuple[torch.dtype, int], Tensor] | None

    def additive(self, dtype: torch.dtype, heads: int = 1) -> Tensor:
        """The mask (heads * Q, K) to add for queries of so many heads, one head after the other."""
        if self._kept is not None and (dtype, heads) in self._kept:
            return self._kept[dtype, heads]
        mask_QK = torch.zeros(self.hidden_QK.shape, dtype=dtype, device=self.hidden_QK.device)
        made = mask_QK.masked_fill_(self.hidden_QK, -torch.inf).repeat(heads, 1)
        if self._kept is not None:
            self._kept[dtype, heads] = made
        return made


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
    seen = [_seen(forest, *end, window=window, chunk=chunk) for end in ends]
    keep = sum(seen_QK.size for _, seen_QK in seen) <= KEPT_PAIRS
    mask.blocks = [
        Block(*end, _index(keys_K, device), torch.from_numpy(~seen_QK).to(device), {} if keep else None)
        for end, (keys_K, seen_QK) in zip(ends, seen, strict=True)
    ]
    return mask


def _seen(
    forest: Forest, first: int, last: int, *, window: int | None, chunk: int | None
) -> tuple[IntsT, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The keys that any query of a block sees, and which query sees which."""
    queries_Q1 = np.arange(first, last)[:, None]
    keys_K = np.flatnonzero(forest.exits_T[:last] > first)
    seen_QK = (keys_K <= queries_Q1) & (queries_Q1 < forest.exits_T[keys_K])
    places_T = forest.positions_T
    if window is not None:
        seen_QK &= places_T[queries_Q1] - places_T[keys_K] < window
    if chunk is not None:
        seen_QK &= places_T[queries_Q1] // chunk == places_T[keys_K] // chunk
    used_K = seen_QK.any(axis=0)
    return keys_K[used_K], seen_QK[:, used_K]


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
        mask_TT[block.first : block.last, block.keys_K] = block.additive(query.dtype)
    return mask_TT[None, None]


class _BlockAttention(torch.autograd.Function):
    """The fused CPU kernel on every block, and its own backward pass on every block.

    Queries of the heads that share a head of keys go in as further queries of that one, so keys are never copied.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, blocks: Sequence[Block], scale: float | None
    ) -> Tensor:
        attended, heads = torch.empty_like(query), query.shape[1] // key.shape[1]
        sums = []
        for block in blocks:
            rows = slice(block.first, block.last)
            part, sum_KQ = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                _folded(query[:, :, rows], key),
                key[:, :, block.keys_K],
                value[:, :, block.keys_K],
                attn_mask=block.additive(query.dtype, heads)[None, None],
                scale=scale,
            )
            attended[:, :, rows] = _unfolded(part, query)
            sums.append(sum_KQ)
        ctx.save_for_backward(query, key, value, attended, *sums)
        ctx.blocks, ctx.scale = blocks, scale
        return attended

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, attended, *sums = ctx.saved_tensors
        slope, heads = upstream[0], query.shape[1] // key.shape[1]
        to_query, to_key, to_value = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
        for block, sum_KQ in zip(ctx.blocks, sums, strict=True):
            rows, keys = slice(block.first, block.last), block.keys_K
            of_query, of_key, of_value = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                _folded(slope[:, :, rows], key),
                _folded(query[:, :, rows], key),
                key[:, :, keys],
                value[:, :, keys],
                _folded(attended[:, :, rows], key),
                sum_KQ,
                0.0,
                False,
                attn_mask=block.additive(query.dtype, heads)[None, None],
                scale=ctx.scale,
            )
            to_query[:, :, rows] = _unfolded(of_query, query)
            for total, part in ((to_key, of_key), (to_value, of_value)):
                if isinstance(keys, slice):
                    total[:, :, keys] += part
                else:
                    total.index_add_(2, keys, part)
        return to_query, to_key, to_value, None, None


def _folded(part: Tensor, key: Tensor) -> Tensor:
    """(1, H, Q, D) as (1, heads of keys, H / heads of keys * Q, D)."""
    return part.reshape(1, key.shape[1], -1, part.shape[-1])


def _unfolded(part: Tensor, query: Tensor) -> Tensor:
    """The way back."""
    return part.reshape(1, query.shape[1], -1, part.shape[-1])


def on_blocks(model: nn.Module) -> bool:
    """Whether `model` is switched to attention by blocks."""
    config: Any = model.config
    return bool(config._attn_implementation == BLOCKS)


AttentionInterface.register(BLOCKS, block_attention)
AttentionMaskInterface.register(BLOCKS, sdpa_mask)
