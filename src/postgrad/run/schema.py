"""The fields of a configuration class, seen from outside: dotted paths, types in plain words, help lines."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from postgrad.run.class_source import class_of, texts_below


class FieldLine(NamedTuple):
    """One line of a verb's help: dotted path, type, "default ..." as YAML or "required", description."""

    path: str
    type: str
    default: str
    description: str


def schema_lines(Model: type[BaseModel]) -> list[FieldLine]:
    """Every field of `Model` and of its sections, in the order of declaration."""
    return [
        FieldLine(
            one.path,
            type_name(one.field.annotation),
            f"required with {one.within}" if one.within and one.field.is_required() else _default(one.field),
            " ".join((one.field.description or _texts(one.owner).get(one.name, "")).split()),
        )
        for one in _walk(Model, "", "")
    ]


def fields_of(Model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Dotted path -> field. Sections are opened up; `[]` stands for a list's item, `NAME` for a mapping's key."""
    return {one.path: one.field for one in _walk(Model, "", "")}


class _Found(NamedTuple):
    """A field: its dotted path, the section around it that may be left out, the class that has it, its name there."""

    path: str
    field: FieldInfo
    within: str
    owner: type[BaseModel]
    name: str


def _walk(Model: type[BaseModel], prefix: str, within: str) -> Iterator[_Found]:
    """Every field of a class and of its sections."""
    for name, field in Model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        sections = _sections(field.annotation)
        if not sections:
            yield _Found(path, field, within, Model, name)
        for step, section in sections:
            yield from _walk(section, f"{path}{step}.", within if step or field.is_required() else path)


@cache
def _texts(Model: type[BaseModel]) -> dict[str, str]:
    """Name -> the text below the field, in the class or the nearest of its bases that has one."""
    told: dict[str, str] = {}
    for base in reversed(Model.__mro__):
        if base not in BaseModel.__mro__ and (found := class_of(base.__module__, base.__qualname__)) is not None:
            told |= texts_below(found)
    return told


def _sections(annotation: Any) -> list[tuple[str, type[BaseModel]]]:
    """The configuration classes inside a type, each with the step that leads to it: "", "[]" or ".NAME"."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [("", annotation)]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _sections(args[0])
    if origin in (Union, types.UnionType):
        return [found for arg in args for found in _sections(arg)]
    if origin in (list, tuple, Sequence):
        return [(f"[]{step}", section) for step, section in _sections(args[0])]
    if origin in (dict, Mapping):
        return [(f".NAME{step}", section) for step, section in _sections(args[1])]
    return []


def section_at(Model: type[BaseModel], location: Sequence[int | str]) -> list[type[BaseModel]]:
    """The configuration classes that may stand at `location`, a path of keys and list positions."""
    current = [Model]
    for part in location:
        inner: list[type[BaseModel]] = []
        for section in current:
            field = next((f for n, f in section.model_fields.items() if part in (n, f.alias)), None)
            if field is not None:
                inner.extend(found for _, found in _sections(field.annotation))
        current = inner or current  # a list position, a mapping's key or a union's tag opens no further section
    return current


def is_list(annotation: Any) -> bool:
    """Whether a list fills a field of this type."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType, Annotated):
        return any(is_list(arg) for arg in get_args(annotation))
    return origin in (list, tuple, set, frozenset, Sequence) or annotation in (list, tuple)


def is_bool(annotation: Any) -> bool:
    """Whether the field is a plain yes/no."""
    return annotation is bool or (
        get_origin(annotation) in (Union, types.UnionType) and set(get_args(annotation)) == {bool, type(None)}
    )


def is_number(annotation: Any) -> bool:
    """Whether the field is a number, or a number or nothing."""
    return set(type_name(annotation).split(" | ")) <= {"integer", "number", "null"}


_PLAIN = {type(None): "null", Path: "path", str: "text", bool: "yes/no", int: "integer", float: "number", Any: "any"}


def type_name(annotation: Any) -> str:
    """A type in plain words: "integer", "text | null", "list of text", "linear|cosine"."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(args[0])
    if origin is Literal:
        return "|".join(str(arg) for arg in args)
    if origin in (Union, types.UnionType):
        return " | ".join(type_name(arg) for arg in args)
    if origin in (list, tuple, set, frozenset, Sequence):
        return f"list of {type_name(args[0])}"
    if origin in (dict, Mapping):
        return f"mapping of {type_name(args[1])}"
    return getattr(annotation, "__name__", str(annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return f"default {_as_yaml(field.get_default(call_default_factory=True, validated_data={}))}"


def _as_yaml(value: Any) -> str:
    if value is None or value is PydanticUndefined:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_as_yaml(item) for item in value)}]"
    return str(value) if value != "" else "''"
