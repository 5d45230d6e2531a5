"""Units as plain JSON and back, bit for bit: what a checkpoint inside a rollout buffer must hold.

Items are dataclasses, of channels of ours or of a plug-in; each is written with its class's `module:name` and its
fields. Arrays keep their bytes, so that log-probabilities come back exactly, NaN included.
"""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any, cast

import numpy as np

from postgrad.core.annotation import Unit
from postgrad.core.errors import DataError

CLASS, ARRAY = "class", "array"


def encode_unit(unit: Unit) -> Any:
    """`unit` as JSON data."""
    return _encode(unit)


def decode_unit(data: Any) -> Unit:
    """What `encode_unit` wrote.

    Raises:
        DataError: it is no unit.
    """
    unit = _decode(data)
    if not isinstance(unit, Unit):
        raise DataError("no unit", got=type(unit).__name__, do="start in a new run folder")
    return unit


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {ARRAY: [value.dtype.str, list(value.shape), value.tobytes().hex()]}
    if isinstance(value, np.generic):
        return value.item()
    if dataclasses.is_dataclass(value):
        kind = type(value)
        fields = {field.name: _encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {CLASS: f"{kind.__module__}:{kind.__qualname__}", **fields}
    if isinstance(value, tuple | list):
        return [_encode(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise DataError(f"a {type(value).__name__} in an item cannot be kept in a checkpoint", do="use arrays and numbers")


def _decode(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_decode(part) for part in data)
    if isinstance(data, dict) and ARRAY in data:
        dtype, shape, text = data[ARRAY]
        return np.frombuffer(bytes.fromhex(text), dtype=np.dtype(dtype)).reshape(shape).copy()
    if isinstance(data, dict):
        fields = {name: _decode(value) for name, value in data.items() if name != CLASS}
        return _kind(str(data.get(CLASS)))(**fields)
    return data


def _kind(target: str) -> type[Any]:
    module, _, name = target.partition(":")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        raise DataError("an item of an unknown class", got=target, do="install the plug-in that made it") from None
    if not dataclasses.is_dataclass(kind):
        raise DataError("an item of a class that is no dataclass", got=target)
    return cast(type[Any], kind)
