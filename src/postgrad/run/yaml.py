"""YAML without its traps: a key written twice is an error, errors name line and column, and numbers are what they seem.

`1e-4` is a number; `1:30` (90 in YAML 1.1), `010` (8) and `2024-01-01` (a date) are text, which a number field refuses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from postgrad.core.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """The safe loader, strict about doubled keys and lenient about exponents without a point."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    _refuse_doubled(node)
    loader.flatten_mapping(node)  # what `<<` brings comes first, so that a key written here wins over it
    return {
        _name(loader, key_node): loader.construct_object(value_node, deep=True) for key_node, value_node in node.value
    }


def _refuse_doubled(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key_node, _ in node.value:
        if key_node.value in seen:
            problem = f"key '{key_node.value}' is given twice"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        if isinstance(key_node.value, str):
            seen.add(key_node.value)


def _name(loader: _Loader, node: yaml.Node) -> str:
    """`on:` and `1:` are names here, as they were typed."""
    key = loader.construct_object(node, deep=True)
    return key if isinstance(key, str) else str(node.value)


_INT, _FLOAT, _TIME = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag not in (_INT, _FLOAT, _TIME)]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, re.compile(r"^[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F]+|0b[01]+)$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"^[-+]?([0-9][0-9_]*\.?[0-9]*[eE][-+]?[0-9]+|[0-9][0-9_]*\.[0-9]*|\.[0-9]+([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping; an empty file is an empty mapping.

    Raises:
        ConfigError: the file is missing, unreadable, broken, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("recipe not found", got=str(path), expected="a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the recipe: {error}", got=str(path)) from None
    value = parse_yaml(text, source=str(path))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"a recipe is a mapping, not a {type(value).__name__}", got=str(path), expected="key: value")
    return value


def parse_yaml(text: str, *, source: str) -> Any:
    """Parse YAML text; `source` names it in errors.

    Raises:
        ConfigError: broken YAML or a doubled key, with line and column.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
        raise ConfigError(f"{place}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: {error}") from None


def parse_scalar(text: str) -> Any:
    """Read an option's text as YAML; what is no YAML (`a: b: c`, `*x`) is the text itself."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        return text
