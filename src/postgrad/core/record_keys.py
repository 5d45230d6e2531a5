"""`unknown_key`: a key of a row that nothing would read.

Rows come from other tools too. A key that is passed over in silence is a row that teaches something else than its
author thought: `"hints"` for `"hint"` turns self-distillation into imitation. So every key of a record, of its
messages, blocks, tools and provenance has to be known; what is free (arguments, schemas, opaque blocks) stays free.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from postgrad.core.record import Record


def unknown_key(row: Any) -> str | None:
    """The first key of a record's plain data that is not known, with its place and what may have been meant."""
    for path, key, known in _unknown(row, _shape(), ""):
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        meant = f"did you mean '{path}{close[0]}'?" if close else f"known: {', '.join(known)}"
        return f"unknown key '{path}{key}'; {meant}"
    return None


@cache
def _shape() -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(Record)


def _unknown(value: Any, shape: msgspec.inspect.Type, path: str) -> Iterator[tuple[str, str, list[str]]]:
    if isinstance(shape, msgspec.inspect.UnionType):
        shape = _member(value, shape)
    if isinstance(shape, msgspec.inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in shape.fields}
        known = [*fields, *([shape.tag_field] if shape.tag_field else [])]
        for key, inner in value.items():
            if key not in known:
                yield path, str(key), known
            elif key in fields:
                yield from _unknown(inner, fields[key], f"{path}{key}.")
    elif isinstance(shape, msgspec.inspect.VarTupleType) and isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _unknown(inner, shape.item_type, f"{path}{place}.")


def _member(value: Any, union: msgspec.inspect.UnionType) -> msgspec.inspect.Type:
    """The member of a union that plain data is read as: structs have tags, or stand alone beside null."""
    structs = [member for member in union.types if isinstance(member, msgspec.inspect.StructType)]
    tagged = [member for member in structs if member.tag_field and isinstance(value, dict)]
    named = [member for member in tagged if member.tag_field and value.get(member.tag_field) == member.tag]
    plain = [member for member in structs if not member.tag_field]
    found: list[msgspec.inspect.Type] = [*named, *plain, msgspec.inspect.AnyType()]
    return found[0]
