"""`postgrad show --memory RECIPE`: what the training of a recipe takes, before it runs; no weights are loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from postgrad.core.errors import ConfigError
from postgrad.run.config import load, validate
from postgrad.run.launch import worker
from postgrad.run.recipes import find_recipe
from postgrad.run.yaml import read_yaml
from postgrad.verbs.train_config import TrainVerb, build_method, training

_MADE = re.compile(r"\$\{([^.}]+)\.artifact\}")

ROWS = ("weights", "gradients", "optimizer", "copies", "activations", "working_set", "total")


def memory(recipe: str) -> dict[str, Any]:
    """The training stages of a recipe, or the one training that it is, each with its footprint.

    Raises:
        ConfigError: there is no such recipe, or nothing in it trains.
    """
    path = find_recipe(recipe)
    data = read_yaml(path)
    if not isinstance(data, dict) or "stages" not in data:
        return {"kind": "memory", "path": str(path), "stages": [_stage("train", load(TrainVerb, path, {}))]}
    stages = [stage for stage in data["stages"] if stage.get("verb") == "train"]
    if not stages:
        raise ConfigError("no stage of this recipe trains", got=str(path))
    models = {stage["name"]: stage.get("with", {}).get("model") for stage in stages}
    return {"kind": "memory", "path": str(path), "stages": [_of_cycle(stage, models, path) for stage in stages]}


def _of_cycle(stage: dict[str, Any], models: dict[str, Any], path: Path) -> dict[str, Any]:
    """A stage of a cycle. A model that an earlier stage trains has the shape of the one that it starts from."""
    name, fields = stage["name"], dict(stage.get("with", {}))
    passed = set[str]()
    while (made := _MADE.fullmatch(str(fields.get("model", "")))) and made[1] in models.keys() - passed:
        passed.add(made[1])
        fields["model"] = models[made[1]]
    if "${" in str(fields.get("model", "")):
        return {"name": name, "uncounted": f"its model is not known before the cycle runs: {fields['model']}"}
    return _stage(name, validate(TrainVerb, fields, source=f"{path}, stage '{name}'"))


def _stage(name: str, config: TrainVerb) -> dict[str, Any]:
    from postgrad.train.footprint import footprint

    planned = training(config, build_method(config.method))
    _, workers = worker()
    found = footprint(config.model, config.adapter, planned, workers=workers).plain()
    return {"name": name, "model": config.model, "workers": workers, **found}


def show(result: dict[str, Any]) -> RenderableType:
    """A table a stage."""
    return Group(*(_table(stage) for stage in result["stages"]))


def _table(stage: dict[str, Any]) -> RenderableType:
    if "weights" not in stage:
        return Text(f"{stage['name']}: {stage['uncounted']}")
    share = f"{stage['trained'] / 1e6:.4g} of {stage['parameters'] / 1e6:.4g} million weights trained"
    table = Table("held", "MiB", title=f"{stage['name']}: {stage['model']}, {share}", title_justify="left")
    for row in ROWS:
        value = stage[row]
        table.add_row(row.replace("_", " "), "unknown" if value is None else f"{value / 2**20:,.1f}")
    parts: list[RenderableType] = [table]
    if stage["uncounted"]:
        parts.append(Text(f"not counted: {stage['uncounted']}"))
    else:
        forest, budget = stage["forest_flops"] / 1e9, stage["token_budget"]
        parts.append(Text(f"{forest:,.1f} GFLOP for a full forest of {budget} tokens, {forest / budget:.3f} a token"))
    return Group(*parts)
