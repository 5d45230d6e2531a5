"""References in a recipe of stages: `${stage.key}` stands for a value of an earlier stage's result.

${train.artifact}                        the value itself, whatever its type, when it is the whole text
records in ${build.records}              as text inside a longer text
${evaluate.scores.bfcl/simple_python.mean}   a path of keys, or of list positions
${recipe} ${run}                         the recipe's folder; the run folder
$${...}                                  no reference: one dollar sign less
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from postgrad.core.errors import ConfigError
from postgrad.run.nearest import nearest

_REFERENCE = re.compile(r"\$?\$\{([^{}]*)\}")


def references(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every reference in plain data, as (path to the text that holds it, what it refers to)."""
    if isinstance(value, str):
        for match in _REFERENCE.finditer(value):
            if not match.group().startswith("$$"):
                yield (), match.group(1)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (((key, *path), name) for path, name in references(item))
    elif isinstance(value, Sequence):
        for place, item in enumerate(value):
            yield from (((place, *path), name) for path, name in references(item))


def resolved(value: Any, scope: Mapping[str, Any]) -> Any:
    """Plain data with every reference replaced by what `scope` (name -> value) holds for it.

    Raises:
        ConfigError: a reference names something that is not there; the nearest name is told.
    """
    return _mapped(value, lambda name: look_up(name, scope))


def resolved_or_null(value: Any, scope: Mapping[str, Any]) -> Any:
    """Like `resolved`, but a reference into a name that `scope` lacks (a stage that did not run) becomes null."""
    return _mapped(value, lambda name: look_up(name, scope) if name.partition(".")[0] in scope else None)


def resolved_in_part(value: Any, scope: Mapping[str, Any]) -> Any:
    """Like `resolved`, but a reference into a name that `scope` lacks stays as it is written."""
    return _mapped(value, lambda name: look_up(name, scope) if name.partition(".")[0] in scope else f"${{{name}}}")


def look_up(name: str, scope: Mapping[str, Any]) -> Any:
    """Follow a dotted name through mappings and lists.

    Raises:
        ConfigError: a part of it is not there.
    """
    value: Any = scope
    for part in name.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            known = [str(key) for key in value] if isinstance(value, Mapping) else []
            raise ConfigError(f"reference ${{{name}}}: there is no '{part}'", do=nearest(part, known))
    return value


def _mapped(value: Any, find: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole and not value.startswith("$$"):
            return find(whole.group(1))
        return _REFERENCE.sub(lambda match: _as_text(match, find), value)
    if isinstance(value, Mapping):
        return {key: _mapped(item, find) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, find) for item in value]
    return value


def _as_text(match: re.Match[str], find: Callable[[str], Any]) -> str:
    return match.group()[1:] if match.group().startswith("$$") else str(find(match.group(1)))
