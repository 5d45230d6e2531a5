"""Every training recipe is run for two steps on the tiny model, from its own file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from postgrad import cycle
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.run.config import load
from postgrad.run.recipes import find_recipe, recipe_names
from postgrad.signals.rows.records import write_records
from postgrad.verbs import train
from postgrad.verbs.train_config import TrainVerb
from recipes.taught import TAUGHT, taught_settings

CHANNELS = TAUGHT | {
    "ladder/a1-rl": {"policy_gradient"},
    "ladder/a2-sdpo": {"policy_gradient", "divergence"},
    "ladder/a3-replay": {"policy_gradient", "preference"},
    "ladder/a4-all": {"policy_gradient", "divergence", "preference"},
    "sft": {"cross_entropy"},
    "sft/rehearsal": {"cross_entropy", "divergence"},
    "cpt": {"cross_entropy"},
    "es": set(),
    "dpo": {"preference"},
    "sdpo": {"divergence"},
}
ASK, GOOD, BAD = Message.of("user", "say b"), Message.of("assistant", "b"), Message.of("assistant", "a")
ROWS = [Record((ASK,), GOOD, rejected=BAD), Record((ASK,), BAD, hint="say b, not a"), Record((ASK,), GOOD)]


def settings(tmp_path: Path, recipe: str) -> dict[str, Any]:
    """The overrides that make a recipe small: tiny model, a coin to win, short completions."""
    if recipe in TAUGHT:
        return taught_settings(tmp_path, recipe)
    records = tmp_path / "records.jsonl"
    write_records(records, ROWS)
    small = {"model": "tiny-random", "loop.steps": 2, "adapter.last_layers": 1}
    if recipe == "cpt":
        (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 20)
        rows = {"method.paths": [str(tmp_path / "text.txt")], "method.length": 32, "method.overlap": 8}
        return {"model": "tiny-random", "loop.steps": 2, "optim.warmup_steps": 1, "optim.decay_steps": 1} | rows
    if recipe == "es":
        return small | {
            "method.environment": "recipes.coin:Coin",
            "method.max_new_tokens": 6,
            "method.evolve.pairs": 2,
            "method.evolve.sigma": 0.5,
        }
    if recipe == "sft/rehearsal":
        small |= {"method.rehearsal.records": str(records), "method.rehearsal.batch_size": 1}
    if not recipe.startswith("ladder/"):
        return small | {"method.records": str(records), "method.batch_size": 1}
    coin = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 4, "max_new_tokens": 6}
    small |= {f"method.rollouts.{name}": value for name, value in coin.items()}
    return small | ({"method.replay.records": str(records)} if recipe != "ladder/a1-rl" else {})


def test_every_packaged_recipe_is_tested() -> None:
    assert set(recipe_names()) == {"demo", *CHANNELS}


@pytest.mark.parametrize("recipe", sorted(CHANNELS))
def test_a_recipe_feeds_its_channels_and_leaves_an_artifact(recipe: str, tmp_path: Path) -> None:
    config = load(TrainVerb, find_recipe(recipe), settings(tmp_path, recipe))
    result = train.run(config, tmp_path / "run")
    lines = [json.loads(line) for line in Path(result["metrics"]).read_text().splitlines()]
    assert len(lines) == 2
    fed = {name.partition("/")[2] for name in lines[0] if name.startswith("count/")}
    assert fed == CHANNELS[recipe]
    assert all(lines[0][f"count/{channel}"] > 0 for channel in fed)
    assert (Path(result["artifact"]) / "postgrad.json").exists()
    assert train.run(config, tmp_path / "run")["artifact"] == result["artifact"]  # nothing is trained twice


def test_the_ladder_starts_from_folders_that_the_demo_leaves() -> None:
    plan = {one["folder"] for one in cycle.check(load(cycle.CycleConfig, find_recipe("demo")))}
    for recipe in CHANNELS:
        named = set(re.findall(r"runs/demo/([\w-]+)/", find_recipe(recipe).read_text(encoding="utf-8")))
        assert named <= plan


def test_a_misspelt_key_of_a_method_stops_a_cycle_before_its_first_stage() -> None:
    with pytest.raises(ConfigError, match="did you mean 'alpha'"):
        cycle.check(load(cycle.CycleConfig, find_recipe("demo"), {"stages.compose.with.method.alhpa": "0.3"}))


def test_records_that_change_under_a_run_are_refused(tmp_path: Path) -> None:
    config = load(TrainVerb, find_recipe("sft"), settings(tmp_path, "sft"))
    train.run(config, tmp_path / "run")
    write_records(tmp_path / "records.jsonl", ROWS[:2])
    with pytest.raises(DataError, match="the records changed"):
        train.run(config, tmp_path / "run")


def test_half_of_an_objective_is_refused() -> None:
    config = load(TrainVerb, find_recipe("ladder/a1-rl"), {"channels.policy_gradient.objective": "grpo"})
    with pytest.raises(ConfigError, match="objective grpo is defined with advantage grpo"):
        train.plan(config)


def test_beta_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"beta > 0 needs replay\.records"):
        load(TrainVerb, find_recipe("ladder/a1-rl"), {"method.beta": 0.5})


def test_a_weighted_channel_without_rows_is_refused(tmp_path: Path) -> None:
    overrides = settings(tmp_path, "ladder/a4-all")
    write_records(tmp_path / "records.jsonl", [ROWS[0]])
    config = load(TrainVerb, find_recipe("ladder/a4-all"), overrides)
    with pytest.raises(DataError, match="can feed channel 'divergence'"):
        train.run(config, tmp_path / "run")


def test_a_second_weight_for_a_channel_is_a_conflict(tmp_path: Path) -> None:
    overrides = settings(tmp_path, "ladder/a4-all") | {"channels.preference.weight": 0.9}
    config = load(TrainVerb, find_recipe("ladder/a4-all"), overrides)
    with pytest.raises(ConfigError, match=r"channels\.preference\.weight conflicts"):
        train.plan(config)


def test_a_kl_term_needs_the_idle_completions(tmp_path: Path) -> None:
    config = load(TrainVerb, find_recipe("ladder/a1-rl"), {"channels.policy_gradient.kl_coefficient": 0.1})
    with pytest.raises(ConfigError, match="idle: score"):
        train.plan(config)


def test_a_benchmark_is_never_trained_on(tmp_path: Path) -> None:
    overrides = settings(tmp_path, "ladder/a1-rl") | {
        "method.rollouts.environment": "bfcl",
        "method.rollouts.split": "simple_python",
    }
    config = load(TrainVerb, find_recipe("ladder/a1-rl"), overrides)
    with pytest.raises(ConfigError, match="may not be trained on"):
        train.run(config, tmp_path / "run")
