"""Every number of an adapter changes what is trained.

`CASES` has the variant in which a field's other value must lead to other logits after a few steps. A field or an option
without a case fails the first test.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from typing import Any, get_args, get_type_hints

import pytest
import torch

from postgrad.models.adapter import AdapterConfig
from postgrad.models.adapter.variants import VARIANTS
from postgrad.models.policy import load_policy
from unit.models.adapter.trained import logits, train

ADALORA = {"variant": "adalora", "rank": 2, "options": {"interval": 1, "warmup": 0.0, "final": 0.0}}
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "rank": ({}, 2),
    "alpha": ({}, 8.0),
    "dropout": ({}, 0.5),
    "last_layers": ({}, 1),
    "seed": ({}, 1),
    "vera.d_initial": ({"variant": "vera"}, 0.5),
    "pissa.iterations": ({"variant": "pissa", "options": {"iterations": 1}}, 2),
    "loftq.bits": ({"variant": "loftq"}, 3),
    "loftq.iterations": ({"variant": "loftq"}, 1),
    "loftq.block": ({"variant": "loftq"}, 16),
    "adalora.initial_rank": (ADALORA, 8),
    "adalora.warmup": (ADALORA, 0.5),
    "adalora.final": (ADALORA, 0.5),
    "adalora.interval": (ADALORA, 2),
    "adalora.beta1": (ADALORA, 0.05),
    "adalora.beta2": (ADALORA, 0.05),
    "adalora.orthogonal": (ADALORA, 5.0),
    "layerdrop.rate": ({"variant": "layerdrop", "options": {"rate": 0.9}}, 0.1),
}


def numeric(owner: Any, hints: dict[str, Any]) -> list[str]:
    found = []
    for name in owner:
        parts = [hints[name], *get_args(hints[name])]
        if any(part in (int, float) for part in parts):
            found.append(name)
    return found


def test_every_number_has_a_case() -> None:
    names = set(numeric(AdapterConfig.model_fields, get_type_hints(AdapterConfig)))
    for variant in VARIANTS.values():
        own = [field.name for field in dataclasses.fields(variant)]
        names |= {f"{variant.name}.{name}" for name in numeric(own, get_type_hints(variant))}
    assert names == set(CASES)


@cache
def base_logits(settings: str, steps: int) -> torch.Tensor:
    """Logits with the settings that several fields start from, found the same twice."""
    first, again = (trained_logits(json.loads(settings), steps) for _ in range(2))
    assert torch.equal(first, again), "the case does not measure the field"
    return first


def trained_logits(settings: dict[str, Any], steps: int) -> torch.Tensor:
    torch.manual_seed(0)
    policy = load_policy("tiny-random", adapter=AdapterConfig.model_validate({"rank": 4} | settings))
    train(policy, steps=steps)
    return logits(policy)


@pytest.mark.parametrize("field", CASES)
def test_a_number_changes_what_is_trained(field: str) -> None:
    settings, value = CASES[field]
    _, _, option = field.partition(".")
    changed = settings | ({"options": settings.get("options", {}) | {option: value}} if option else {field: value})
    steps = 20 if field == "adalora.beta2" else 4  # it decides which ranks go only where importances are close
    assert not torch.equal(base_logits(json.dumps(settings), steps), trained_logits(changed, steps))
