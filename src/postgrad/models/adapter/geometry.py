"""The shape of what an adapter learned, layer by layer: how many directions the update uses, and how large it is.

With the update D = s B A (for PiSSA and LoftQ less what it was at the start) and its singular values v_1 >= v_2 ...:

    norm           |D|_F, the root of the sum of squares
    relative       |D|_F / |W|_F
    spectral       v_1
    stable_rank    |D|_F^2 / v_1^2
    realised_rank  exp(-sum p_i log p_i) with p_i = v_i / sum v      (Roy and Vetterli, 2007)
    rank           how many v_i exceed 1e-4 v_1

An update spread evenly over r directions has r in all three ranks; one that uses a single direction has 1. DoRA's
magnitudes are told apart as `magnitude`, |m - m_0| / |m_0|.

The singular values come from the small factors: D = B' A' with B' = Q R and A'^T = P S gives those of R S^T.

Not covered: full fine-tuning.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from peft import PeftModel
from peft.utils.integrations import dequantize_module_weight
from torch import Tensor

from postgrad.models.adapter.attach import adapted_layers
from postgrad.models.adapter.start import Start

MEASURES = ("rank", "realised_rank", "stable_rank", "norm", "relative", "spectral")
COUNTED = 1e-4


@torch.no_grad()
def geometry(model: PeftModel, start: Start) -> dict[str, Any]:
    """Plain JSON: `trained` weights, the mean and the range of each measure, and `layers` with each one's own."""
    layers = {name: _layer(name, layer, start) for name, layer in adapted_layers(model).items()}
    summary: dict[str, Any] = {"trained": sum(p.numel() for p in model.parameters() if p.requires_grad)}
    for measure in MEASURES:
        values = [layer[measure] for layer in layers.values()]
        summary[measure] = {"mean": sum(values) / len(values), "least": min(values), "most": max(values)}
    return summary | {"layers": layers}


def _layer(name: str, layer: Any, start: Start) -> dict[str, float]:
    weight = float(dequantize_module_weight(layer.get_base_layer()).float().norm())
    left_OR, right_RI = _factors(layer)
    first = _first_factors(name, layer, start)
    if first is not None:
        left_OR, right_RI = torch.cat([left_OR, -first[0]], dim=1), torch.cat([right_RI, first[1]], dim=0)
    found = measured(left_OR, right_RI) | {"configured": float(_configured(layer))}
    found["relative"] = found["norm"] / weight if weight else 0.0
    if "default" in getattr(layer, "lora_magnitude_vector", {}):
        now = layer.lora_magnitude_vector["default"].weight
        before = start.values.get(_full(name, "lora_magnitude_vector.default.weight"), now).to(now.device)
        found["magnitude"] = float((now - before).norm() / before.norm())
    return found


def measured(left_OR: Tensor, right_RI: Tensor) -> dict[str, float]:
    """The measures of the product of two factors."""
    _, upper_RR = torch.linalg.qr(left_OR.double())
    _, lower_RR = torch.linalg.qr(right_RI.double().T)
    values = torch.linalg.svdvals(upper_RR @ lower_RR.T)
    largest, total = float(values.max()), float(values.sum())
    norm = float(values.square().sum().sqrt())
    if largest == 0.0:
        return dict.fromkeys(("rank", "realised_rank", "stable_rank", "norm", "spectral"), 0.0)
    parts = values[values > 0] / total
    return {
        "rank": float((values > COUNTED * largest).sum()),
        "realised_rank": math.exp(-float((parts * parts.log()).sum())),
        "stable_rank": (norm / largest) ** 2,
        "norm": norm,
        "spectral": largest,
    }


def _factors(layer: Any) -> tuple[Tensor, Tensor]:
    """The update as a product (O, R) (R, I), the scale inside."""
    if hasattr(layer, "vera_lambda_b"):
        left_OR = layer.vera_lambda_b["default"][:, None] * layer.vera_B["default"][: layer.out_features]
        return left_OR, layer.vera_lambda_d["default"][:, None] * layer.vera_A["default"][:, : layer.in_features]
    if hasattr(layer, "lora_E"):
        scale = layer.scaling["default"] / (layer.ranknum["default"] + 1e-5)
        return scale * layer.lora_B["default"], layer.lora_E["default"] * layer.lora_A["default"]
    return layer.scaling["default"] * layer.lora_B["default"].weight, layer.lora_A["default"].weight


def _first_factors(name: str, layer: Any, start: Start) -> tuple[Tensor, Tensor] | None:
    """The same at the start, where that was kept and no zero."""
    left = start.values.get(_full(name, "lora_B.default.weight"))
    if left is None:
        return None
    right = start.values.get(_full(name, "lora_A.default.weight"), layer.lora_A["default"].weight)
    return layer.scaling["default"] * left.to(right.device), right.to(right.device)


def _full(name: str, parameter: str) -> str:
    """A parameter's name in the `PeftModel`."""
    return f"base_model.model.{name}.{parameter}"


def _configured(layer: Any) -> int:
    return int(layer.r["default"])
