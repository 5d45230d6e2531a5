"""`Sample`: one completion as it was drawn, by whatever drew it. No torch is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Sample:
    """One completion: tokens with the stop token if it was sampled, their log-probabilities in nats."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]
