"""Configuration that does not guess types: yes is no number, 1 is no yes, and "8" in quotes is text.

pydantic reads `True` as 1.0, `"8"` as 8 and `1` as yes; in a recipe each of these is a slip that would train on with a
value nobody meant. `strict` rewrites a pydantic core schema, wherever a number or a yes/no stands in it (in unions,
lists and mappings too): numbers are numbers and finite, whole numbers may be written as `1e3`, a yes/no is a yes/no.
Everything else stays as lenient as pydantic is: text for a path, a list for a tuple.
Not covered: fields of type `Any`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator

_NOT_SCHEMAS = {"metadata", "default", "serialization", "config", "expected"}


def strict(schema: Any) -> Any:
    """A core schema with its numbers and yes/nos made strict; what is strict already stays as it is."""
    if isinstance(schema, (list, tuple)):
        return type(schema)(strict(part) for part in schema)
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if not isinstance(kind, str):  # a mapping of names to schemas
        return {name: strict(part) for name, part in schema.items()}
    if kind in ("int", "float"):
        number = {"allow_inf_nan": False, **schema} if kind == "float" else schema
        return {"type": "function-before", "function": {"type": "no-info", "function": _CHECKS[kind]}, "schema": number}
    if kind == "bool":
        return schema | {"strict": True}
    if kind == "function-before" and schema["function"]["function"] in _CHECKS.values():
        return schema
    return {name: part if name in _NOT_SCHEMAS else strict(part) for name, part in schema.items()}


def _whole(value: Any) -> Any:
    return _number(value, "integer")


def _real(value: Any) -> Any:
    return _number(value, "number")


_CHECKS = {"int": _whole, "float": _real}


def _number(value: Any, name: str) -> Any:
    """`value`, unless pydantic would make a number of what is none."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", f"Input should be a valid {name}, and yes/no is none")
    if isinstance(value, (str, bytes)):
        plain = ", written without quotes or leading zeros" if _reads_as_number(value) else ""
        raise PydanticCustomError("number_type", f"Input should be a valid {name}{plain}")
    return value


def _reads_as_number(value: str | bytes) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


class Strict(BaseModel):
    """Base of configuration classes: frozen, no unknown keys, no guessed types; docstrings of fields are help texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's schema, made strict."""
        schema: CoreSchema = strict(handler(source))
        return schema


def built(kind: Any, fields: Mapping[str, Any]) -> Any:
    """An instance of the frozen class `kind` with `fields`, types not guessed.

    Raises:
        pydantic.ValidationError: they do not fit.
    """
    return _validator(kind).validate_python(dict(fields))


@lru_cache(maxsize=256)
def _validator(kind: Any) -> SchemaValidator:
    adapter = TypeAdapter(kind)
    adapter.rebuild()  # a class may have put this off until it is needed
    return SchemaValidator(strict(adapter.core_schema))
