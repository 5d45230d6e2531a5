"""Attention by blocks is attention under the forest's rule: values, gradients, windows; what it leaves to others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from postgrad.core.annotation import Unit
from postgrad.core.forest import Forest, build_forest
from postgrad.models import blocks
from postgrad.models.blocks import block_attention, packed_mask
from postgrad.models.policy import Policy, load_policy

HEADS, GROUPS, WIDTH = 4, 2, 8


def random_forest(seed: int, *, trees: int = 3, turns: int = 4) -> Forest:
    """Trees that branch at every turn, of tokens that are never equal by chance."""
    draw = np.random.default_rng(seed)
    fresh = iter(range(10, 10**6))
    units = []
    for _ in range(trees):
        context: tuple[int, ...] = ()
        branches = []
        for _ in range(turns):
            context += tuple(next(fresh) for _ in range(draw.integers(1, 12)))
            branches += [(*context, *(next(fresh) for _ in range(draw.integers(1, 6)))) for _ in range(2)]
            context = branches[-1]
        units.append(Unit(tuple(branches)))
    return build_forest(units)


def inputs(length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = [(1, HEADS, length, WIDTH), (1, GROUPS, length, WIDTH), (1, GROUPS, length, WIDTH)]
    made = [torch.randn(shape, generator=draw, dtype=torch.float64).requires_grad_() for shape in shapes]
    return made[0], made[1], made[2], torch.randn(1, length, HEADS, WIDTH, generator=draw, dtype=torch.float64)


def by_hand(query: Tensor, key: Tensor, value: Tensor, seen_TT: np.ndarray[Any, Any], scale: float) -> Tensor:
    """softmax(scale q·k over what is seen) v, written out."""
    key, value = (part.repeat_interleave(HEADS // GROUPS, dim=1) for part in (key, value))
    scores = (query @ key.transpose(2, 3)) * scale
    weights = scores.masked_fill(~torch.from_numpy(seen_TT), -torch.inf).softmax(dim=-1)
    return (weights @ value).transpose(1, 2)


LIMITS: dict[str, dict[str, int]] = {"all": {}, "window": {"window": 7}, "chunk": {"chunk": 5}}


def seen(forest: Forest, limits: dict[str, int]) -> np.ndarray[Any, Any]:
    seen_TT = forest.mask_TT(window=limits.get("window"))
    if "chunk" in limits:
        chunk_T = forest.positions_T // limits["chunk"]
        seen_TT &= chunk_T[:, None] == chunk_T[None, :]
    return seen_TT


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("size", [1, 5, 16, 1000])
def test_values_and_gradients_are_those_of_the_rule(size: int, limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one query, of some, and one block for all; grouped heads; a scale that is not the default."""
    monkeypatch.setattr(blocks, "SHORT", size)
    forest = random_forest(size)
    query, key, value, slope = inputs(len(forest))
    expected = by_hand(query, key, value, seen(forest, LIMITS[limits]), 0.3)
    wanted = torch.autograd.grad((expected * slope).sum(), (query, key, value))
    mask = packed_mask(forest, **LIMITS[limits])
    found, weights = block_attention(nn.Module(), query, key, value, mask, scaling=0.3)
    assert weights is None
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    gradients = torch.autograd.grad((found * slope).sum(), (query, key, value))
    for ours, theirs in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_a_block_holds_the_keys_that_it_sees_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trees of 6 tokens, blocks of 4: the second block has keys 0-5 of the first tree and 6, 7; the third 6-11."""
    monkeypatch.setattr(blocks, "SHORT", 4)
    forest = build_forest([Unit((tuple(range(10, 16)),)), Unit((tuple(range(20, 26)),))])
    held = packed_mask(forest).blocks
    assert [block.keys_K for block in held] == [slice(0, 4), slice(0, 8), slice(6, 12)]
    assert [(~block.hidden_QK).sum().item() for block in held] == [1 + 2 + 3 + 4, 5 + 6 + 1 + 2, 3 + 4 + 5 + 6]


def test_masks_are_kept_for_the_next_layer_where_a_forest_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 12 in blocks of 4 has 16 + 32 + 48 = 96 pairs."""
    monkeypatch.setattr(blocks, "SHORT", 4)
    chain = build_forest([Unit((tuple(range(12)),))])
    found = []
    for pairs, kept in ((95, False), (96, True)):
        monkeypatch.setattr(blocks, "KEPT_PAIRS", pairs)
        second = packed_mask(chain).blocks[1]
        found.append(second.additive(torch.float32, 2))
        assert (second.additive(torch.float32, 2) is found[-1]) is kept
    assert torch.equal(*found)
    rows_QK = [[0.0] * (5 + query) + [-torch.inf] * (3 - query) for query in range(4)]
    assert torch.equal(found[0], torch.tensor(rows_QK * 2))


def test_a_deep_tree_has_larger_blocks() -> None:
    deep = build_forest([Unit((tuple(range(10, 10 + blocks.DEEP + 1)),))])
    flat = build_forest([Unit((tuple(range(10, 10 + blocks.DEEP)),))])
    assert packed_mask(deep).blocks[0].last == blocks.LONG
    assert packed_mask(flat).blocks[0].last == blocks.SHORT


def test_dropout_runs_on_the_dense_mask() -> None:
    forest = random_forest(9)
    query, key, value, _ = inputs(len(forest))
    mask, module = packed_mask(forest), SimpleNamespace(num_key_value_groups=HEADS // GROUPS, is_causal=True)
    found, _ = block_attention(module, query, key, value, mask, scaling=0.3, dropout=1e-12)  # type: ignore[arg-type]
    expected = by_hand(query, key, value, forest.mask_TT(), 0.3)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="soft-capping"):
        block_attention(nn.Module(), query, key, value, mask, softcap=30.0)


def test_a_policy_on_blocks_has_the_gradients_of_one_on_dense_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte tokens, so that trees share prefixes as they do in training."""
    draw = np.random.default_rng(4)
    shared = tuple(draw.integers(3, 250, 150).tolist())
    branches = [(*shared[:cut], *draw.integers(3, 250, 20).tolist()) for cut in (40, 90, 150, 150)]
    forest = build_forest([Unit(tuple(branches)), Unit((tuple(draw.integers(3, 250, 70).tolist()),))])

    def policy(attention: str) -> Policy:
        monkeypatch.setenv("POSTGRAD_ATTENTION", attention)
        return load_policy("tiny-random")

    ours, dense = policy("auto"), policy("dense")
    assert ours.layout_reason.endswith("attention by blocks")
    hidden = [one.hidden_TD(forest) for one in (ours, dense)]
    torch.testing.assert_close(*hidden, rtol=1e-4, atol=1e-5)
    slope_TD = torch.randn(hidden[0].shape, generator=torch.Generator().manual_seed(0))
    for found in hidden:
        (found * slope_TD).sum().backward()
    for a, b in zip(ours.model.parameters(), dense.model.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-4 * float(b.grad.abs().max()))


def test_under_autocast_it_is_as_near_to_fp32_as_dense_masks_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Projections come in bfloat16 and rotations in fp32: the kernel gets one type, as torch's own attention does."""
    forest = random_forest(5)
    hidden = {}
    for attention in ("auto", "dense"):
        monkeypatch.setenv("POSTGRAD_ATTENTION", attention)
        policy = load_policy("tiny-random")
        hidden["exact"] = policy.hidden_TD(forest).detach()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = policy.hidden_TD(forest)
        found.sum().backward()
        hidden[attention] = found.detach()
    errors = {attention: float((hidden[attention] - hidden["exact"]).norm()) for attention in ("auto", "dense")}
    assert 0 < errors["auto"] < 1.5 * errors["dense"] < 0.05 * float(hidden["exact"].norm())
