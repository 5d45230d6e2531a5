"""FlexAttention over a forest: the exit rule as a block mask, so that no (T, T) mask and no masked product is made.

The block mask is read off the exits, block by block, without evaluating the rule T² times. For a block of queries below
a block of keys, with e the keys' exits:

    some pair is visible    iff  max(e) > first query        (a key's subtree reaches into the queries)
    every pair is visible   iff  min(e) > last query

and on the diagonal the kernel evaluates the rule itself. Windows and chunks only ever take visibility away: a block out
of reach is left out, and one that they may cut counts as partly visible.

transformers calls `forest_attention` by name (`NAME`) for models that were switched to it; without a block mask it is
its SDPA, so decoding and the flat layout are as before. On CPUs torch's FlexAttention has no backward pass: there it is
used without gradients only. Not covered: attention sinks, dropout.

Shapes: T tokens of the forest, B blocks, H heads, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from postgrad.core.forest import Forest, IntsT

NAME = "postgrad_forest"
BLOCK = 128


def block_mask(
    forest: Forest, *, window: int | None = None, chunk: int | None = None, device: str = "cpu"
) -> BlockMask:
    """The forest's mask for FlexAttention.

    Args:
        forest: T tokens.
        window: only the last `window` positions of the query's branch, its own included.
        chunk: only positions of the query's own chunk of so many.
        device: where the attention runs.
    """
    visible_BB, whole_BB = _blocks(forest, window=window, chunk=chunk)
    partly, partly_at = _rows(visible_BB & ~whole_BB, device=device)
    fully, fully_at = _rows(whole_BB, device=device)
    rule = _rule(forest, window=window, chunk=chunk, device=device)
    length = (len(forest), len(forest))
    return BlockMask.from_kv_blocks(
        partly, partly_at, fully, fully_at, BLOCK_SIZE=BLOCK, mask_mod=rule, seq_lengths=length
    )


def _blocks(forest: Forest, *, window: int | None, chunk: int | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each block of queries and each of keys: whether some pair may be visible, and whether all pairs are."""
    size = len(forest)
    firsts = np.arange(0, size, BLOCK)
    lasts = np.minimum(firsts + BLOCK, size) - 1
    longest, shortest = np.maximum.reduceat(forest.exits_T, firsts), np.minimum.reduceat(forest.exits_T, firsts)
    below = firsts[:, None] > lasts[None, :]
    visible_BB = np.eye(len(firsts), dtype=np.bool_) | (below & (longest[None, :] > firsts[:, None]))
    even = (lasts - firsts + 1) == BLOCK  # a block that is not full is left to the rule
    whole_BB = below & (shortest[None, :] > lasts[:, None]) & even[:, None]
    for limit, places_T in ((window, forest.positions_T), (1 if chunk else None, forest.positions_T // (chunk or 1))):
        if limit is not None:
            low, high = np.minimum.reduceat(places_T, firsts), np.maximum.reduceat(places_T, firsts)
            visible_BB &= low[:, None] - high[None, :] < limit
            whole_BB &= high[:, None] - low[None, :] < limit
    return visible_BB, whole_BB


def _rows(table_BB: NDArray[np.bool_], *, device: str) -> tuple[Tensor, Tensor]:
    """Per row how many columns are true (1, 1, B), and all column numbers, those first (1, 1, B, B)."""
    order_BB = np.argsort(~table_BB, axis=1, kind="stable")
    counts_B, order = (torch.from_numpy(x.astype(np.int32))[None, None] for x in (table_BB.sum(axis=1), order_BB))
    return counts_B.to(device), order.to(device)


def _rule(forest: Forest, *, window: int | None, chunk: int | None, device: str) -> Callable[..., Tensor]:
    """`forest.mask_TT` for one pair of indices; padded to whole blocks, which see nothing and are not seen."""
    exits, positions = (_padded(column_T).to(device) for column_T in (forest.exits_T, forest.positions_T))

    def visible(_: Tensor, __: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = (key <= query) & (query < exits[key])
        if window is not None:
            seen = seen & (positions[query] - positions[key] < window)
        if chunk is not None:
            seen = seen & (positions[query] // chunk == positions[key] // chunk)
        return seen

    return visible


def _padded(column_T: IntsT) -> Tensor:
    return torch.from_numpy(np.pad(column_T, (0, -len(column_T) % BLOCK)).astype(np.int32))


def forest_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **settings: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention (1, T, H, D) of a query (1, H, T, D), as transformers asks; a block mask goes through FlexAttention."""
    if not isinstance(attention_mask, BlockMask):
        found: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **settings
        )
        return found
    softcap: float | None = settings.get("softcap")

    def capped(score: Tensor, *_: Tensor) -> Tensor:
        assert softcap is not None
        return softcap * torch.tanh(score / softcap)

    grouped = query.shape[1] != key.shape[1]
    attended: Tensor = _kernel(query.device.type)(
        query,
        key,
        value,
        score_mod=None if softcap is None else capped,
        block_mask=attention_mask,
        scale=settings.get("scaling"),
        enable_gqa=grouped,
    )
    return attended.transpose(1, 2).contiguous(), None


@cache
def _kernel(kind: str) -> Callable[..., Any]:
    """Compiled on GPUs, where the point of it is; eager on CPUs, which need no compiler for it then."""
    if kind == "cuda":
        compiled: Callable[..., Any] = torch.compile(flex_attention, dynamic=True)
        return compiled
    return flex_attention


def usable(model: nn.Module) -> bool:
    """Whether `model` is switched to FlexAttention and it can do what is asked for now."""
    config: Any = model.config
    device: Any = model.device
    return bool(config._attn_implementation == NAME and not (device.type == "cpu" and torch.is_grad_enabled()))


AttentionInterface.register(NAME, forest_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
