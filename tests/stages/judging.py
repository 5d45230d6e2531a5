"""A gate: passes from a threshold on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from postgrad.run.config import Config


class CONFIG(Config):
    value: float
    threshold: float = 0


def run(config: CONFIG, out: Path) -> dict[str, Any]:
    passed = config.value >= config.threshold
    return {"decision": "promote" if passed else "iterate", "passed": passed, "reasons": [f"{config.value}"]}
