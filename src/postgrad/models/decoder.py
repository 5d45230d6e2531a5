"""One batch of sequences being continued: cache, mask and positions, one step at a time.

Prompts of a tree-type model are padded on the left and told apart by mask and positions. They are prefilled a few at a
time, only as long as the longest of the few; it is the cache that is padded to one length, which costs no computing.
For other kinds (recurrent, ALiBi) padding is not safe, so their prompts must have one length, which the sampler sees
to. Rows are picked by index from the cache, which serves both to expand a prefilled prompt into several samples and to
drop finished rows. A model that hands back no cache is computed anew from the start at every step.

Shapes: R rows, L positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache

from postgrad.models.policy import Policy

PREFILL_TOKENS = 2048
"""Prompt tokens that are prefilled in one go, their padding included."""
CACHE_NAMES = ("cache", "past_key_values", "cache_params")
"""What versions and families of transformers call the cache, in a model's arguments and in its output."""


class Decoder:
    """Continues `prompts` in one batch; `logits_RV` are those of the next token of every row, fp32."""

    def __init__(self, policy: Policy, prompts: Sequence[Sequence[int]]) -> None:
        self._policy = policy
        self._padded = policy.layout == "tree"
        length = max(len(prompt) for prompt in prompts)
        assert self._padded or all(len(prompt) == length for prompt in prompts), "these prompts cannot share a batch"
        padding = policy.tokenizer.pad_token_id or 0
        rows = [[padding] * (length - len(prompt)) + list(prompt) for prompt in prompts]
        seen = [[0] * (length - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        self._ids_RL = torch.tensor(rows, device=policy.device)
        self._mask_RL = torch.tensor(seen, device=policy.device)
        self._cache_name = next((name for name in CACHE_NAMES if name in policy.accepts), None)
        # With one kind of mask all layers see everything, whatever window the configuration may name.
        self._cache: Any = DynamicCache() if self._padded and policy.scheme == "plain" else None
        self.logits_RV = self._prefill([len(prompt) for prompt in prompts])

    def step(self, tokens: Sequence[int]) -> None:
        """Append one token per row and compute the next logits."""
        tokens_R1 = torch.as_tensor(tokens, device=self._policy.device)[:, None]
        self._mask_RL = torch.cat([self._mask_RL, torch.ones_like(tokens_R1)], dim=1)
        self._ids_RL = torch.cat([self._ids_RL, tokens_R1], dim=1)
        self.logits_RV = self._forward(self._ids_RL if self._cache is None else tokens_R1, self._mask_RL)

    def pick(self, rows: Sequence[int]) -> None:
        """Go on with these rows, in this order; a row may be named several times or left out."""
        index_R = torch.as_tensor(rows, device=self._policy.device)
        self._mask_RL, self._ids_RL = self._mask_RL[index_R], self._ids_RL[index_R]
        self.logits_RV = self.logits_RV[index_R]
        if self._cache is not None:
            self._cache.reorder_cache(index_R)

    def _prefill(self, lengths: Sequence[int]) -> Tensor:
        """Fill the cache with the prompts, of these lengths."""
        portions = list(_portions(lengths)) if self._cache is not None and self._cache_name is not None else []
        if len(portions) < 2:
            return self._forward(self._ids_RL, self._mask_RL)
        logits, caches = [], []
        for first, last in portions:
            longest = max(lengths[first:last])
            self._cache = DynamicCache()
            logits.append(self._forward(self._ids_RL[first:last, -longest:], self._mask_RL[first:last, -longest:]))
            if self._cache is None:  # it takes a cache and gives none
                return self._forward(self._ids_RL, self._mask_RL)
            caches.append(self._cache)
        self._cache = _stacked(caches, max(lengths))
        return torch.cat(logits)

    @torch.inference_mode()
    def _forward(self, ids_RL: Tensor, mask_RL: Tensor) -> Tensor:
        arguments: dict[str, Any] = {"input_ids": ids_RL, "use_cache": self._cache_name is not None}
        if self._cache is not None and self._cache_name is not None:
            arguments[self._cache_name] = self._cache
        if self._padded:
            positions_RL = (mask_RL.cumsum(dim=1) - 1).clamp(min=0)
            arguments["position_ids"] = positions_RL[:, -ids_RL.shape[1] :]
            arguments["attention_mask"] = mask_RL
        output = self._policy.body(return_dict=True, **arguments)
        self._cache = getattr(output, self._cache_name, None) if self._cache_name else None
        if self._cache is None:
            self._cache_name = None
        return self._policy.head(output.last_hidden_state[:, -1])


def _portions(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) row of what is prefilled together; at least one row each."""
    first = 0
    for row in range(1, len(lengths) + 1):
        if row == len(lengths) or max(lengths[first : row + 1]) * (row + 1 - first) > PREFILL_TOKENS:
            yield first, row
            first = row


@torch.inference_mode()
def _stacked(caches: Sequence[DynamicCache], length: int) -> DynamicCache:
    """The caches of several batches as that of one batch, padded on the left to `length`."""
    whole = DynamicCache()
    for place, layers in enumerate(zip(*(cache.layers for cache in caches), strict=True)):
        keys, values = (
            torch.cat([pad(states, (0, 0, length - states.shape[-2], 0)) for states in parts])
            for parts in zip(*((layer.keys, layer.values) for layer in layers), strict=True)
        )
        whole.update(keys, values, place)
    return whole
