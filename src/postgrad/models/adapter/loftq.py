"""LoftQ on any device (arXiv:2310.08659): W ~ Q + s B A, with Q in few bits and s B A of low rank for the rest.

    Q_t       = quantise(W - s B_{t-1} A_{t-1})      t = 1 ... T, the first product being 0
    s B_t A_t = the r largest singular triplets of W - Q_t

Q is in normal floats (arXiv:2305.14314, appendix E): the 2^b values are quantiles of a normal distribution scaled to
[-1, 1], zero among them; a block of weights in a row shares its largest absolute value as scale. With b = 4 they are
NF4. PEFT's own LoftQ needs bitsandbytes and CUDA. The weights are held dequantised, so nothing runs faster: what is
gained is that the adapter is trained for the very weights that a quantised deployment will have.

Quantising Q again gives Q, so the codes can be read off the weights when the adapter is saved.

Shapes: O outputs, I inputs, K blocks, C codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from torch import Tensor

from postgrad.core.errors import TrainingFault
from postgrad.models.adapter.variants import LoftQ


@dataclass(frozen=True)
class Quantised:
    """A weight as codes and scales; `shape` is the weight's own."""

    codes_KB: Tensor
    scales_K: Tensor
    shape: tuple[int, ...]

    def weight(self, bits: int) -> Tensor:
        """The weight that the codes stand for, in fp32."""
        table_C = normal_floats(bits).to(self.scales_K.device)
        flat = (table_C[self.codes_KB.long()] * self.scales_K[:, None]).flatten()
        count = int(torch.Size(self.shape).numel())
        return flat[:count].reshape(self.shape)


@lru_cache(maxsize=8)
def normal_floats(bits: int) -> Tensor:
    """The 2^bits values, ascending, fp32: half of them positive, one less negative, and zero."""
    half, count = 2 ** (bits - 1), 2**bits
    outer = 1 - (1 / (2 * count) + 1 / (2 * (count - 1))) / 2  # between the outermost middles of 2^b and 2^b - 1 bins
    up = torch.special.ndtri(torch.linspace(outer, 0.5, half + 1, dtype=torch.float64)[:-1])
    down = -torch.special.ndtri(torch.linspace(outer, 0.5, half, dtype=torch.float64)[:-1])
    values = torch.cat([up, down, torch.zeros(1, dtype=torch.float64)]).sort().values
    return (values / values.abs().max()).float()


def quantise(weight: Tensor, *, bits: int, block: int, dtype: torch.dtype = torch.float32) -> Quantised:
    """The nearest values to `weight`, block by block in its own order; the last block is filled up with zeros.

    Scales are rounded to `dtype`, in which the weight will be held, so that quantising again gives the same.
    """
    flat = weight.detach().float().flatten()
    padded = torch.nn.functional.pad(flat, (0, -len(flat) % block)).reshape(-1, block)
    scales_K = padded.abs().amax(dim=1).to(dtype).float()
    table_C = normal_floats(bits).to(flat.device)
    middles = (table_C[1:] + table_C[:-1]) / 2
    normed = padded / torch.where(scales_K > 0, scales_K, torch.ones_like(scales_K))[:, None]
    return Quantised(torch.bucketize(normed, middles).to(torch.uint8), scales_K, tuple(weight.shape))


@torch.no_grad()
def start_loftq(model: PeftModel, config: LoftQ) -> None:
    """Quantise every adapted weight of `model` in place and set its A and B (and DoRA's magnitudes) accordingly."""
    for layer in model.get_base_model().modules():
        if isinstance(layer, BaseTunerLayer):
            _start_layer(layer, config)


def _start_layer(layer: BaseTunerLayer, config: LoftQ) -> None:
    base = layer.get_base_layer()
    crossed = bool(layer.fan_in_fan_out)  # GPT-2 holds its weights as (I, O)
    weight_OI = (base.weight.T if crossed else base.weight).detach().float()
    scale, rank = layer.scaling["default"], layer.r["default"]
    product_OI = torch.zeros_like(weight_OI)
    for _ in range(config.iterations):
        quantised = quantise(weight_OI - product_OI, bits=config.bits, block=config.block, dtype=base.weight.dtype)
        rounded_OI = quantised.weight(config.bits).to(base.weight.dtype).float()
        u_OR, s_R, v_RI = torch.linalg.svd(weight_OI - rounded_OI, full_matrices=False)
        root_R = (s_R[:rank] / scale).sqrt()
        b_OR, a_RI = u_OR[:, :rank] * root_R, root_R[:, None] * v_RI[:rank]
        product_OI = scale * b_OR @ a_RI
    base.weight.copy_(rounded_OI.T if crossed else rounded_OI)
    layer.lora_A["default"].weight.copy_(_padded(a_RI, rank))
    layer.lora_B["default"].weight.copy_(_padded(b_OR.T, rank).T)
    if "default" in layer.lora_magnitude_vector:
        norms_O = torch.linalg.norm(rounded_OI + product_OI, dim=1)
        layer.lora_magnitude_vector["default"].weight.copy_(norms_O)


def _padded(factor_RX: Tensor, rank: int) -> Tensor:
    """A factor of a matrix with fewer than `rank` singular values, filled up with zeros."""
    return torch.nn.functional.pad(factor_RX, (0, 0, 0, rank - factor_RX.shape[0]))


def codes_of(weight: Tensor, config: LoftQ, *, crossed: bool) -> Quantised:
    """The codes of a weight that `start_loftq` has quantised.

    Raises:
        TrainingFault: the weight is none of these, so something has changed it.
    """
    stored = weight.T.contiguous() if crossed else weight
    quantised = quantise(stored, bits=config.bits, block=config.block, dtype=weight.dtype)
    if not torch.equal(quantised.weight(config.bits).to(weight.dtype), stored):
        raise TrainingFault("a quantised weight has changed during training; LoftQ keeps it frozen")
    return quantised
