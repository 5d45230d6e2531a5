"""Pydantic's complaints in one line that a user can act on: which key, where, what is wrong, what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from postgrad.core.errors import ConfigError
from postgrad.run.nearest import nearest
from postgrad.run.schema import fields_of, section_at

_SHOWN = 4
_INPUT = "Input should be "
_LISTS = {"tuple_type", "list_type"}
_TAG = re.compile(r"(int|float|str|bool)$|(function-\w+|literal|tuple|list|dict|lax-or-strict)\[")
"""How pydantic calls the members of a union; no part of what the user wrote."""


def explain(
    Model: type[BaseModel], problems: Sequence[ErrorDetails], *, source: str, overrides: Mapping[str, Any]
) -> ConfigError:
    """One `ConfigError` for the problems of a validation, the first few in full.

    Unknown keys come first: a misspelt key also makes the right one "missing", which would only mislead.
    """
    ordered = sorted(_merged(problems), key=lambda problem: problem["type"] != "extra_forbidden")
    lines = [_line(Model, problem, source=source, overrides=overrides) for problem in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"and {len(ordered) - _SHOWN} more")
    return ConfigError("; ".join(lines))


def _merged(problems: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """One problem a value: pydantic tells one for each type that a value might have had, under a path of its own."""
    found: dict[tuple[int | str, ...], ErrorDetails] = {}
    for problem in problems:
        place = tuple(part for part in problem["loc"] if not (isinstance(part, str) and _TAG.match(part)))
        told = found.get(place)
        if told is None:
            found[place] = problem.copy()
            found[place]["loc"] = place
        elif told["msg"].startswith(_INPUT) and problem["msg"].startswith(_INPUT):
            told["msg"] += " or " + problem["msg"].removeprefix(_INPUT)
    # a list that is too short for the items that were refused is told by the items
    return [told for place, told in found.items() if told["type"] != "too_short" or not _has_inner(place, found)]


def _has_inner(place: tuple[int | str, ...], found: Collection[tuple[int | str, ...]]) -> bool:
    return any(len(other) > len(place) and other[: len(place)] == place for other in found)


def problems_of(error: ValidationError, *, open_paths: Collection[tuple[int | str, ...]] = ()) -> list[ErrorDetails]:
    """What pydantic found, without problems of values at `open_paths` (not known yet); unknown keys always count."""
    return [
        problem
        for problem in error.errors(include_url=False)
        if problem["type"] == "extra_forbidden" or not any(_leads_to(path, problem["loc"]) for path in open_paths)
    ]


def _leads_to(path: tuple[int | str, ...], location: tuple[int | str, ...]) -> bool:
    """Whether `location` passes through `path`; pydantic mixes tags of union members into locations."""
    parts = iter(location)
    return all(part in parts for part in path)


def _line(Model: type[BaseModel], problem: ErrorDetails, *, source: str, overrides: Mapping[str, Any]) -> str:
    location = problem["loc"]
    path = ".".join(str(part) for part in location)
    typed = any(f"{path}.".startswith(f"{key}.") or key.startswith(f"{path}.") for key in overrides)
    where = f"--{path}" if typed else f"'{path}' in {source}" if source else f"'{path}'"
    if problem["type"] == "extra_forbidden":
        return f"unknown key {where}: {_suggestion(Model, location)}"
    if problem["type"] == "missing":
        return f"missing {where}: give it in {'the' if source else 'a'} recipe or as --{path}"
    message = problem["msg"].removeprefix("Value error, ")
    if not location:
        return f"{source}: {message}" if source else message
    written = overrides.get(path)  # `yes` was typed, not True
    given = problem["input"]
    got = _shortened(written if isinstance(given, bool) and isinstance(written, str) else given)
    one = problem["type"] in _LISTS and isinstance(given, (str, int, float))
    expected = f"a list, such as [{given}]" if one else _expected(message)
    return f"{where}: got {got}, expected {expected}{_meant(problem)}"


def _meant(problem: ErrorDetails) -> str:
    """The nearest of the names that were allowed, where one is near."""
    allowed = re.findall("'([^']*)'", problem["msg"]) if problem["type"] == "literal_error" else []
    close = difflib.get_close_matches(str(problem["input"]), allowed, n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _expected(message: str) -> str:
    """Pydantic's sentence as the words after "expected"."""
    text = message.removeprefix(_INPUT).removeprefix("Value should be ")
    return text[:1].lower() + text[1:] if text == message else text


def _suggestion(Model: type[BaseModel], location: Sequence[int | str]) -> str:
    """The nearest key of the same section; failing that, the same name in another section."""
    *above, last = location
    name, prefix = str(last), "".join(f"{part}." for part in above)
    known = [field.alias or key for section in section_at(Model, above) for key, field in section.model_fields.items()]
    elsewhere = [path for path in fields_of(Model) if path.rsplit(".", 1)[-1] == name]
    if elsewhere and not difflib.get_close_matches(name, known, n=1, cutoff=0.6):
        return "did you mean " + " or ".join(f"'{path}'" for path in elsewhere[:2]) + "?"
    return nearest(name, known, prefix=prefix)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
