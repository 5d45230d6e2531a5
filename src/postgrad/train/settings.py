"""A plug-in's own settings: the keys of a recipe's section to the fields of a frozen class, every mistake named."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError

from postgrad.core.errors import ConfigError
from postgrad.core.strict import built
from postgrad.run.nearest import nearest

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
"""Configuration of such a class, a pydantic dataclass."""

Beta = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


def build_settings(kind: Any, fields: Mapping[str, Any], *, path: str, also: tuple[str, ...] = ()) -> Any:
    """An instance of `kind` with `fields`; `path` is the section's place in the recipe, `also` its other known keys.

    Raises:
        ConfigError: an unknown key or a value that does not fit.
    """
    known = field_names(kind)
    for field in fields:
        if field not in known:
            raise ConfigError(f"unknown key '{path}.{field}'", do=nearest(field, [*also, *known]))
    try:
        return built(kind, fields)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in (path, *problem["loc"]))
        if problem["type"] == "value_error":  # a rule of the class over several fields
            raise ConfigError(f"'{place}': {problem['ctx']['error']}") from None
        expected = problem["msg"].removeprefix("Input should be ")
        raise ConfigError(f"'{place}'", got=problem["input"], expected=expected) from None


def field_names(kind: Any) -> list[str]:
    """The fields that a recipe may give."""
    return [field.name for field in dataclasses.fields(kind)]


def complete(settings: Any) -> dict[str, Any]:
    """Every field's value, defaults written out, as a recipe would say it."""
    values = dataclasses.asdict(settings)  # a section inside becomes a mapping
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
