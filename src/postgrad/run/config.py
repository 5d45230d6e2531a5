"""`Config` and `load`: strict configuration, where every key is known or an error.

A recipe is a YAML mapping; options of the command line are dotted paths into it and win over the file; defaults fill
the rest. Nothing is guessed: an unknown key is refused with the nearest valid name, a key written twice is refused,
and a value of a wrong type is told by its dotted path, its file and what was expected.
Not covered: includes, anchors across files, environment variables in values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError

from postgrad.core.errors import ConfigError
from postgrad.core.strict import Strict
from postgrad.run.problems import explain, problems_of
from postgrad.run.schema import fields_of, is_list, type_name

ConfigT = TypeVar("ConfigT", bound="Config")

_TEXT_PROBLEMS = {"string_type", "path_type", "literal_error"}


class Config(Strict):
    """Base of every configuration section: frozen, no unknown keys, attribute docstrings are the help texts."""

    model_config = ConfigDict(populate_by_name=True)

    def resolved(self) -> dict[str, Any]:
        """Every value, defaults included, as plain JSON data under the names that a recipe uses."""
        return self.model_dump(mode="json", by_alias=True)


def load(Model: type[ConfigT], recipe: Path | None = None, overrides: Mapping[str, Any] | None = None) -> ConfigT:
    """Read `recipe`, put `overrides` over it and check the whole against `Model`.

    Args:
        Model: the configuration class.
        recipe: a YAML file, or None for defaults and overrides alone.
        overrides: dotted path -> value. Text is read as YAML (`"8"` is a number, `"[a, b]"` a list) unless the field
            wants text; a list of texts fills a list field.

    Raises:
        ConfigError: a file that is missing or no YAML mapping, a key that is unknown, doubled or conflicting, a value
            of the wrong type.
    """
    from postgrad.run.yaml import read_yaml  # a help page, which reads none, need not load YAML's rules

    data = read_yaml(recipe) if recipe is not None else {}
    source = str(recipe) if recipe is not None else ""
    texts = dict(overrides or {})
    _refuse_conflicts(texts)
    try:
        return Model.model_validate(_with_overrides(Model, data, texts, verbatim=()))
    except ValidationError as error:
        wants_text = tuple(key for key in texts if _is_text_problem(key, error))
        if not wants_text:
            raise explain(Model, problems_of(error), source=source, overrides=texts) from None
    # A value such as `--name 2024` reads as a number where the field holds text: keep what was typed.
    return validate(Model, _with_overrides(Model, data, texts, verbatim=wants_text), source=source, overrides=texts)


def validate(
    Model: type[ConfigT], data: Mapping[str, Any], *, source: str, overrides: Mapping[str, Any] | None = None
) -> ConfigT:
    """Check plain data against `Model`; `source` says where it came from in errors.

    Raises:
        ConfigError: it does not fit.
    """
    try:
        return Model.model_validate(data)
    except ValidationError as error:
        raise explain(Model, problems_of(error), source=source, overrides=overrides or {}) from None


def check(
    Model: type[Config], data: Mapping[str, Any], *, source: str, open_paths: Collection[tuple[int | str, ...]]
) -> None:
    """Check data of which the values at `open_paths` are not known yet.

    Raises:
        ConfigError: something else in it does not fit.
    """
    try:
        Model.model_validate(data)
    except ValidationError as error:
        problems = problems_of(error, open_paths=open_paths)
        if problems:
            raise explain(Model, problems, source=source, overrides={}) from None


def _is_text_problem(key: str, error: ValidationError) -> bool:
    """Whether pydantic wanted text at the dotted path `key`."""
    path = tuple(key.split("."))
    return any(
        problem["type"] in _TEXT_PROBLEMS and tuple(str(part) for part in problem["loc"])[: len(path)] == path
        for problem in error.errors()
    )


def _as_typed(Model: type[Config], key: str, value: Any) -> Any:
    """The text that was typed; in a list where nothing but a list fits, so that a wrong item is told as one."""
    field = fields_of(Model).get(key)
    if not isinstance(value, str) or field is None or not is_list(field.annotation):
        return value
    if value.lstrip().startswith("["):
        return _parsed(Model, key, value)
    return value if " | " in type_name(field.annotation).removesuffix(" | null") else [value]


def _refuse_conflicts(overrides: Mapping[str, Any]) -> None:
    """`--lora 8 --lora.rank 4`: one of them would be lost without a word."""
    for key in overrides:
        inner = next((other for other in overrides if other.startswith(f"{key}.")), None)
        if inner is not None:
            raise ConfigError(f"options --{key} and --{inner} conflict", do="give one of them")


def _with_overrides(
    Model: type[Config], data: dict[str, Any], overrides: Mapping[str, Any], *, verbatim: tuple[str, ...]
) -> dict[str, Any]:
    """A copy of `data` with every override in its place."""
    merged: dict[str, Any] = _copied(data)
    for key, value in overrides.items():
        parsed = _as_typed(Model, key, value) if key in verbatim else _parsed(Model, key, value)
        _put(merged, key, parsed)
    return merged


def _parsed(Model: type[Config], key: str, value: Any) -> Any:
    """Text as YAML; for a list field one scalar is a list of one and several texts are its items."""
    from postgrad.run.yaml import parse_scalar

    if isinstance(value, list):
        return [parse_scalar(item) if isinstance(item, str) else item for item in value]
    parsed = parse_scalar(value) if isinstance(value, str) else value
    field = fields_of(Model).get(key)
    if field is not None and is_list(field.annotation) and parsed is not None and not isinstance(parsed, list):
        return [parsed]
    return parsed


def _copied(value: Any) -> Any:
    """Fresh mappings and lists all the way down, so that the caller's data stays as it was."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted path `key`. Items of a list are addressed by number, or by their `name`."""
    node: Any = data
    *sections, last = key.split(".")
    for section in sections:
        node = _item(node, section, key) if isinstance(node, list) else _section(node, section, key)
    if isinstance(node, list):
        node[_position(node, last, key)] = value
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise ConfigError(f"option --{key}: '{last}' has no section above it", got=node, expected="a mapping")


def _section(node: Any, section: str, key: str) -> Any:
    if not isinstance(node, dict):
        raise ConfigError(f"option --{key}: '{section}' has no section above it", got=node, expected="a mapping")
    if node.get(section) is None:
        node[section] = {}
    return node[section]


def _item(items: list[Any], name: str, key: str) -> Any:
    return items[_position(items, name, key)]


def _position(items: list[Any], name: str, key: str) -> int:
    names = [str(item["name"]) if isinstance(item, dict) and "name" in item else None for item in items]
    dashed = [one and one.replace("-", "_") for one in names]  # options write both as "_"
    if name.replace("-", "_") in dashed:
        return dashed.index(name.replace("-", "_"))
    if name.isdecimal() and int(name) < len(items):
        return int(name)
    known = ", ".join(name for name in names if name) or f"a number below {len(items)}"
    raise ConfigError(f"option --{key}: no such item", got=name, expected=known)
