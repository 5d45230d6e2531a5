"""Normal floats and LoftQ's start."""

from __future__ import annotations

import pytest
import torch

from postgrad.models.adapter import AdapterConfig
from postgrad.models.adapter.attach import adapted_layers
from postgrad.models.adapter.loftq import normal_floats, quantise
from postgrad.models.policy import load_policy

NF4 = [
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
]
"""As printed in the QLoRA paper, appendix E."""


def test_four_bits_are_the_published_nf4() -> None:
    torch.testing.assert_close(normal_floats(4), torch.tensor(NF4), atol=2e-7, rtol=0)


@pytest.mark.parametrize("bits", range(2, 9))
def test_the_values_are_as_many_as_bits_allow_with_both_ends_and_zero(bits: int) -> None:
    values = normal_floats(bits)
    assert len(values.unique()) == 2**bits
    assert torch.equal(values, values.sort().values)
    assert values[-1] == 1.0
    assert 0.0 in values


def test_a_block_by_hand() -> None:
    """Scale 2: [2, -1, 0.1, 0] is [1, -0.5, 0.05, 0] on NF4's scale.

    The nearest are 1, -0.525 (0.025 away; -0.395 is 0.105 away), 0.0796 (0.0296 away; 0 is 0.05 away) and 0.
    """
    quantised = quantise(torch.tensor([[2.0, -1.0], [0.1, 0.0]]), bits=4, block=4)
    assert quantised.codes_KB.tolist() == [[15, 2, 8, 7]]
    assert quantised.scales_K.tolist() == [2.0]
    expected = torch.tensor([[2.0, 2 * NF4[2]], [2 * NF4[8], 0.0]])
    torch.testing.assert_close(quantised.weight(4), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("bits", "block"), [(2, 7), (4, 64), (8, 33)])
def test_quantising_again_changes_nothing(bits: int, block: int, dtype: torch.dtype) -> None:
    weight = torch.randn(13, 29, generator=torch.Generator().manual_seed(0))
    once = quantise(weight, bits=bits, block=block, dtype=dtype).weight(bits).to(dtype)
    twice = quantise(once, bits=bits, block=block, dtype=dtype).weight(bits).to(dtype)
    assert torch.equal(once, twice)
    assert not torch.equal(once.float(), weight)


def test_a_block_of_zeros_stays_zero() -> None:
    assert not quantise(torch.zeros(3, 3), bits=4, block=4).weight(4).any()


def error_at_start(**options: int) -> float:
    """|W - Q - s B A| over all adapted layers, relative to |W|."""
    plain = dict(load_policy("tiny-random").network.named_modules())
    policy = load_policy("tiny-random", adapter=AdapterConfig(variant="loftq", rank=4, options=options))
    squares = total = 0.0
    for name, layer in adapted_layers(policy.model).items():
        started = layer.get_base_layer().weight + layer.get_delta_weight("default")
        squares += float((plain[name].weight - started).square().sum())
        total += float(plain[name].weight.square().sum())
    return (squares / total) ** 0.5


def test_the_start_is_nearer_to_the_weights_than_their_quantisation() -> None:
    """A and B take up part of what quantising lost, and alternating takes up more."""
    parts = load_policy("tiny-random").network.named_modules()
    weights = [part.weight.detach() for name, part in parts if name.endswith("_proj")]
    lost = sum(float((w - quantise(w, bits=3, block=64).weight(3)).square().sum()) for w in weights)
    alone = (lost / sum(float(w.square().sum()) for w in weights)) ** 0.5
    once, often = error_at_start(bits=3, iterations=1), error_at_start(bits=3, iterations=5)
    assert often < once < 0.95 * alone


def test_more_bits_lose_less() -> None:
    errors = [error_at_start(bits=bits, iterations=1) for bits in (2, 4, 8)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
