"""From the words of a command line to dotted overrides, a recipe and positional values.

    --section.key VALUE      --section.key=VALUE      --flag (yes/no fields)      -o VALUE (the verb's short options)

Dashes and underscores in keys are the same. An option given twice fills a list field, and is an error elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from postgrad.core.errors import ConfigError
from postgrad.run.schema import is_bool, is_list, is_number, type_name

ALONE = "alone"
"""In a field's `json_schema_extra`: the value that its option means where none follows it."""
_YES_NO = {"true", "false", "yes", "no", "on", "off"}


class Arguments(NamedTuple):
    """Dotted path -> text (a list of texts where given several times), and the words that are no option."""

    overrides: dict[str, Any]
    words: list[str]


def parse(tokens: Sequence[str], fields: Mapping[str, FieldInfo], short: Mapping[str, str]) -> Arguments:
    """Sort the words of a command line.

    Raises:
        ConfigError: an option without a value, given twice, or of an unknown short form.
    """
    overrides: dict[str, Any] = {}
    words: list[str] = []
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if not _is_option(token):
            words.append(token)
            continue
        name, has_value, value = token.partition("=")
        key = _key(name, short)
        field = fields.get(key)
        if not has_value:
            value = _next_value(rest, name=name, field=field)
        if not value.strip() and field is not None and _is_never_empty(field.annotation):
            # `--budget "$LIMIT"` with LIMIT unset must not be no budget
            what = "a number" if is_number(field.annotation) else type_name(field.annotation).removesuffix(" | null")
            raise ConfigError(f"option {name} needs a value", got="an empty text", do=f"give {what}, or leave it out")
        _add(overrides, key, value, field)
    return Arguments(overrides, words)


def _is_never_empty(annotation: Any) -> bool:
    """Numbers, and names of a list that is known: an empty text would silently mean the default."""
    return is_number(annotation) or "|" in type_name(annotation).replace(" | ", "")


def _is_option(token: str) -> bool:
    """`-1` and `-.5` are numbers, `-` is a word."""
    return token.startswith("-") and len(token) > 1 and not token[1].isdigit() and token[1] != "."


def _key(name: str, short: Mapping[str, str]) -> str:
    if name.startswith("--"):
        return name[2:].replace("-", "_")
    if name in short:
        return short[name]
    raise ConfigError("unknown option", got=name, expected=", ".join(short) or "options that begin with --")


def _next_value(rest: list[str], *, name: str, field: FieldInfo | None) -> str:
    """The word after the option; a yes/no field takes one only when it reads as yes or no."""
    following = rest[0] if rest and not _is_option(rest[0]) else None
    if field is not None and is_bool(field.annotation) and (following is None or following.lower() not in _YES_NO):
        return "true"
    more = field.json_schema_extra if field is not None else None
    if following is None and isinstance(more, dict) and ALONE in more:
        return str(more[ALONE])
    if following is None:
        raise ConfigError(f"option {name} needs a value", do=f"write {name} VALUE, or {name}=VALUE")
    return rest.pop(0)


def _add(overrides: dict[str, Any], key: str, value: str, field: FieldInfo | None) -> None:
    if key not in overrides:
        overrides[key] = value
    elif field is not None and is_list(field.annotation):
        earlier = overrides[key]
        overrides[key] = [*(earlier if isinstance(earlier, list) else [earlier]), value]
    else:
        raise ConfigError(f"option --{key} is given twice", got=f"{overrides[key]} and {value}", do="give it once")
