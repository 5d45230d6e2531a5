"""`postgrad show --memory`: a recipe that trains, a cycle with training stages, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from postgrad.core.errors import ConfigError
from postgrad.verbs import show
from postgrad.verbs.show import ShowConfig, run

TRAIN = {
    "model": "tiny-random",
    "adapter": {"rank": 4},
    "method": {"name": "sft", "records": "records.jsonl"},
    "loop": {"token_budget": 256},
}


def recipe(folder: Path, data: object) -> str:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(data))
    return str(path)


def shown(result: dict) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(show.show(result))
    return console.file.getvalue()


def test_a_training_recipe(tmp_path: Path) -> None:
    result = run(ShowConfig(memory=recipe(tmp_path, TRAIN)), tmp_path)
    [stage] = result["stages"]
    parts = ("weights", "gradients", "optimizer", "copies", "activations", "working_set")
    assert stage["total"] == sum(stage[name] for name in parts)
    assert stage["optimizer"] == 2 * stage["gradients"] == 8 * stage["trained"]
    assert stage["token_flops"] == stage["forest_flops"] // 256
    text = shown(result)
    assert "train: tiny-random" in text
    assert "GFLOP for a full forest of 256 tokens" in text


def test_a_cycle_follows_models_that_its_stages_make(tmp_path: Path) -> None:
    second = TRAIN | {"model": "${first.artifact}"}
    third = TRAIN | {"model": "${elsewhere}"}
    stages = [
        {"name": "before", "verb": "evaluate", "with": {"model": "tiny-random"}},
        {"name": "first", "verb": "train", "with": TRAIN},
        {"name": "second", "verb": "train", "with": second},
        {"name": "third", "verb": "train", "with": third},
    ]
    result = run(ShowConfig(memory=recipe(tmp_path, {"name": "turn", "stages": stages})), tmp_path)
    first, second_found, unknown = result["stages"]
    assert first["total"] == second_found["total"] > 0
    assert unknown["uncounted"] == "its model is not known before the cycle runs: ${elsewhere}"
    assert "third: its model is not known" in shown(result)


def test_what_has_no_training_is_told(tmp_path: Path) -> None:
    stages = [{"name": "before", "verb": "evaluate", "with": {}}]
    with pytest.raises(ConfigError, match="no stage of this recipe trains"):
        run(ShowConfig(memory=recipe(tmp_path, {"name": "x", "stages": stages})), tmp_path)
    with pytest.raises(ConfigError, match="recipe not found; got 'sftt'"):
        run(ShowConfig(memory="sftt"), tmp_path)
    with pytest.raises(ConfigError, match="--memory takes a recipe and nothing else; got 'runs/a'"):
        run(ShowConfig(memory="sft", what=["runs/a"]), tmp_path)
