"""In which precision a run's forward passes are."""

from __future__ import annotations

import torch


def uses_bf16(dtype: str, device: torch.device) -> bool:
    """Whether to run in bfloat16. `auto` never asks a clock: the answer must be the same when a run resumes.

    On CPUs it is fp32: with fast bf16 products a step takes less than half as long, and without them up to a hundred
    times as long, so a run that goes on elsewhere must not find out; `bfloat16` asks for it.
    """
    if dtype == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return dtype == "bfloat16"
