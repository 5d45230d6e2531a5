"""Whole runs of two steps on the tiny model: a recipe names an objective, its advantage and what shapes the reward."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from postgrad.verbs import train
from postgrad.verbs.train_config import TrainVerb

COIN = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 4, "max_new_tokens": 6}
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dapo": (
        {"objective": "dapo"},
        {"advantage": "grpo", "credit": {"idle": "resample", "overlong_cache": 3, "resample_rounds": 2}},
    ),
    "remax": ({"objective": "remax"}, {"advantage": "remax", "group_size": 1}),
    "reinforce++": (
        {"objective": "reinforce++"},
        {"advantage": "reinforce++", "credit": {"discount": 0.9, "kl_coefficient": 0.1}},
    ),
    "gspo with terms": (
        {"objective": "gspo", "kl_coefficient": 0.01, "kl_estimator": "k2", "entropy_coefficient": 0.01},
        {"advantage": "rloo", "credit": {"idle": "score"}},
    ),
    "gfpo": ({"objective": "gfpo", "dual_clip": 3.0}, {"advantage": "gfpo", "credit": {"keep": 3}}),
    "corrected": ({"objective": "cispo", "correction": "tis"}, {"advantage": "opo", "credit": {"overlong_cache": 2}}),
}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_recipe_trains_with_the_objective_that_it_names(name: str, tmp_path: Path) -> None:
    channel, rollouts = RUNS[name]
    config = TrainVerb.model_validate(
        {
            "model": "tiny-random",
            "adapter": {"rank": 4},
            "method": {"name": "composer", "rollouts": COIN | rollouts},
            "channels": {"policy_gradient": channel},
            "loop": {"steps": 2},
        }
    )
    result = train.run(config, tmp_path / "run")
    lines = [json.loads(line) for line in Path(result["metrics"]).read_text().splitlines()]
    assert len(lines) == 2
    assert any(line["gradient_norm"] > 0 for line in lines)
    for line in lines:
        assert all(math.isfinite(value) for value in line.values() if isinstance(value, float))
        assert line.get("policy_gradient/ratio", 1) == pytest.approx(1, abs=1e-3)  # sampled by the policy itself
    terms = {"reference_kl": "kl_coefficient", "entropy": "entropy_coefficient", "mismatch": "correction"}
    assert all((f"policy_gradient/{metric}" in lines[0]) == (setting in channel) for metric, setting in terms.items())
