"""Where recipes are: a path, or a folder of the packaged recipes (repository root, or inside the wheel)."""

from __future__ import annotations

from pathlib import Path

import postgrad
from postgrad.core.errors import ConfigError
from postgrad.run.nearest import nearest

_PACKAGE = Path(postgrad.__file__).parent
SHELVES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "recipes")
"""Folders that may hold recipes: the wheel's first, then an editable checkout's."""


def find_recipe(name: str) -> Path:
    """The recipe file for a path to it, a folder with a recipe.yaml, or a packaged recipe's name ("demo").

    Raises:
        ConfigError: there is no such recipe.
    """
    for place in (Path(name).expanduser(), *(shelf / name for shelf in SHELVES)):
        if place.is_file():
            return place
        if (place / "recipe.yaml").is_file():
            return place / "recipe.yaml"
    raise ConfigError(
        "recipe not found",
        got=name,
        expected="a YAML file, a folder with a recipe.yaml or a packaged recipe",
        do=nearest(name, recipe_names()),
    )


def recipe_names() -> list[str]:
    """Names of the packaged recipes."""
    found = {path.parent.relative_to(shelf).as_posix() for shelf in SHELVES for path in shelf.rglob("recipe.yaml")}
    return sorted(found)
