"""What `postgrad train --help` lists beside its keys: methods, channels and recipes; and the keys of one method.

Nothing is imported that needs torch: methods and channels are outlined from their source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.canonical import plain_json
from postgrad.core.errors import ConfigError
from postgrad.methods import METHODS
from postgrad.objectives import CHANNELS
from postgrad.run.outline import headline, outline
from postgrad.run.recipes import find_recipe, recipe_names
from postgrad.verbs.helping import Topic, key_rows

_MORE = Topic("Everything else", [("postgrad train --help", "model, adapter, optim, loop, memory, sync, save, device")])


def topics(words: Sequence[str]) -> tuple[list[Topic], bool]:
    """The lists; or, where a word names a method or a recipe, that method's keys in place of the verb's own."""
    method = next((name for name in map(_method_of, words) if name), None)
    return ([*_keys(method), *_set_by_recipes(words), _MORE], True) if method else (_lists(), False)


def _lists() -> list[Topic]:
    methods = [(name, headline(target)) for name, target in METHODS.items()]
    channels = [(name, headline(target)) for name, target in CHANNELS.items()]
    recipes = [(name, line) for name, line in map(_recipe_row, recipe_names()) if line]
    return [
        Topic("Methods (--method.name; `postgrad train METHOD --help` lists a method's keys)", methods),
        Topic("Channels, the losses that methods feed (--channels.NAME.KEY)", channels),
        Topic("Recipes (postgrad train RECIPE)", recipes),
    ]


def _keys(name: str) -> list[Topic]:
    from postgrad.run.plugins import resolve

    method: Any = resolve("method", name, METHODS)
    topics = [Topic(f"Method {name}: {headline(METHODS[name])}", key_rows(method, prefix="method."))]
    for channel in method.model_construct().weights():
        told = outline(CHANNELS[channel])
        rows = [
            (f"--channels.{channel}.{line.path} {line.type}", f"{line.description} ({line.default})".strip())
            for line in told.fields
        ]
        topics.append(Topic(f"Channel {channel}: {headline(CHANNELS[channel])}", rows))
    return topics


def _set_by_recipes(words: Sequence[str]) -> list[Topic]:
    """What recipes among the words set: a method's defaults are not what a recipe of the same name trains with."""
    from postgrad.run.yaml import read_yaml

    found = []
    for word in words:
        try:
            data = read_yaml(find_recipe(word))
        except ConfigError:
            continue
        found.append(Topic(f"Recipe {word}, which `postgrad train {word}` runs, sets", _leaves(data, "--")))
    return found


def _leaves(data: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    rows = []
    for key, value in data.items():
        inner = isinstance(value, dict) and value
        rows += _leaves(value, f"{prefix}{key}.") if inner else [(f"{prefix}{key}", plain_json(value))]
    return rows


def _method_of(word: str) -> str | None:
    """The method that a word names, itself or by a recipe."""
    if word in METHODS:
        return word
    try:
        file = find_recipe(word)
    except ConfigError:
        return None
    from postgrad.run.yaml import read_yaml

    section = read_yaml(file).get("method")
    name = section.get("name") if isinstance(section, dict) else None
    return name if name in METHODS else None


def _recipe_row(name: str) -> tuple[str, str]:
    """A recipe and the first sentence of the comment that it begins with; none for a recipe of stages."""
    text = find_recipe(name).read_text(encoding="utf-8")
    if "\nstages:" in text:
        return name, ""
    comment = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# "))
    return name, " ".join(comment).partition(". ")[0].rstrip(".")
