"""FlexAttention over a forest: the block mask is the forest's mask, and hidden states are those of dense masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest, build_forest
from postgrad.models.flex import BLOCK, NAME, block_mask
from postgrad.models.forward import tree_hidden_TD
from postgrad.models.policy import load_policy
from postgrad.models.selfcheck import choose_layout
from postgrad.models.split import SplitModel
from unit.models.families import family

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def random_forest(seed: int, size: int, *, vocabulary: int = 90) -> Forest:
    """Branches that leave the one before at a random depth, or start a tree of their own; `size` tokens or more."""
    rng = np.random.default_rng(seed)
    branches: list[tuple[int, ...]] = []
    while True:
        shared = branches[-1][: int(rng.integers(0, len(branches[-1]) + 1))] if branches else ()
        tail = rng.integers(3, vocabulary, int(rng.integers(1, max(2, size // 3))))
        branches.append((*shared, *map(int, tail)))
        forest = build_forest([Unit(tuple(branches))])
        if len(forest) >= size:
            return forest


def dense(forest: Forest, **limits: int) -> np.ndarray:
    """The block mask as a dense one: what the kernel would compute, block by block."""
    mask = block_mask(forest, **limits)
    n = len(forest)
    seen = np.zeros((n, n), dtype=bool)
    blocks = -(-n // BLOCK)
    index = torch.arange(blocks * BLOCK)
    rule = mask.mask_mod(torch.tensor(0), torch.tensor(0), index[:, None], index[None, :]).numpy()[:n, :n]
    for numbers, columns, full in (
        (mask.kv_num_blocks, mask.kv_indices, False),
        (mask.full_kv_num_blocks, mask.full_kv_indices, True),
    ):
        for row in range(blocks):
            for column in columns[0, 0, row, : numbers[0, 0, row]].tolist():
                place = np.s_[row * BLOCK : (row + 1) * BLOCK, column * BLOCK : (column + 1) * BLOCK]
                seen[place] = True if full else rule[place]
    return seen


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [5, 128, 129, 700])
def test_the_block_mask_is_the_forests_mask(seed: int, size: int):
    forest = random_forest(seed, size)
    assert np.array_equal(dense(forest), forest.mask_TT())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [1, 7, 130, 400])
def test_windows_and_chunks(seed: int, width: int):
    forest = random_forest(seed, 600)
    assert np.array_equal(dense(forest, window=width), forest.mask_TT(window=width))
    chunk_T = forest.positions_T // width
    assert np.array_equal(dense(forest, chunk=width), forest.mask_TT() & (chunk_T[:, None] == chunk_T[None, :]))


def test_blocks_that_see_nothing_are_left_out():
    """Two trees of 256 tokens: of 16 blocks the 4 pairs over the trees and the 6 above the diagonal are none of ours.

    Left are 4 on the diagonal and one below it a tree, which a chain sees whole.
    """
    forest = build_forest([Unit(((1, *[3] * 255), (2, *[3] * 255)))])
    mask = block_mask(forest)
    assert mask.kv_num_blocks.sum() == 4
    assert mask.full_kv_num_blocks.sum() == 2


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["llama", "gemma2", "gemma3_text", "mistral", "llama4_text"])
def test_hidden_states_are_those_of_dense_masks(name: str, device: str):
    """Windows, chunks, soft-capping, grouped heads; 140 tokens, so that there is more than one block."""
    model = SplitModel(family(name).to(device))
    layout = choose_layout(model)
    forest = random_forest(1, 140)
    with torch.no_grad():
        expected = tree_hidden_TD(model, forest, scheme=layout.scheme)
        model.model.config._attn_implementation = NAME
        found = tree_hidden_TD(model, forest, scheme=layout.scheme)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_the_self_check_switches_and_gradients_on_a_cpu_fall_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("POSTGRAD_ATTENTION", "flex")
    flex = load_policy("tiny-random")
    assert flex.layout_reason.endswith("FlexAttention block masks")
    monkeypatch.setenv("POSTGRAD_ATTENTION", "dense")
    plain = load_policy("tiny-random")
    assert plain.layout_reason.endswith("dense masks, as POSTGRAD_ATTENTION says")
    forest = random_forest(2, 200)
    with torch.no_grad():
        torch.testing.assert_close(flex.hidden_TD(forest), plain.hidden_TD(forest), rtol=1e-4, atol=1e-4)
    flex.hidden_TD(forest).sum().backward()
    plain.hidden_TD(forest).sum().backward()
    for ours, theirs in zip(flex.model.parameters(), plain.model.parameters(), strict=True):
        assert ours.grad is not None
        assert torch.equal(ours.grad, theirs.grad)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "why"),
    [("gpt2", "FlexAttention block masks failed (AttributeError"), ("gemma2", "the model runs eager attention")],
)
def test_families_that_cannot_keep_dense_masks(name: str, why: str, monkeypatch: pytest.MonkeyPatch):
    """GPT-2's code asks a mask for its number of axes; soft-capped scores are not what SDPA computes when decoding."""
    monkeypatch.setenv("POSTGRAD_ATTENTION", "flex")
    model = SplitModel(family(name))
    before = model.model.config._attn_implementation
    layout = choose_layout(model)
    assert layout.kind == "tree"
    assert f"dense masks, as {why}" in layout.reason
    assert model.model.config._attn_implementation == before


def test_what_the_policy_says(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("POSTGRAD_ATTENTION", raising=False)
    reason = load_policy("tiny-random").layout_reason
    assert reason.endswith("attention by blocks")
    monkeypatch.setenv("POSTGRAD_ATTENTION", "fast")
    with pytest.raises(ConfigError, match="bad POSTGRAD_ATTENTION; got 'fast'; expected auto, dense, flex or blocks"):
        load_policy("tiny-random")
