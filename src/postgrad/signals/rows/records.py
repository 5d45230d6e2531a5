"""Training rows on disk: one JSON object of `core.Record` a line, in the order given, in UTF-8."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from postgrad.core.canonical import content_id, plain_json
from postgrad.core.errors import DataError
from postgrad.core.files import replacing
from postgrad.core.message import Block, ToolCall, ToolResult
from postgrad.core.record import Record, record_fault
from postgrad.core.record_keys import unknown_key
from postgrad.signals.actions import normal_call

StructT = TypeVar("StructT", bound=msgspec.Struct)


def write_records(path: Path, records: Iterable[msgspec.Struct]) -> int:
    """Write all rows in one step and return their number.

    Raises:
        OutsideFailure: the disk is full or not writable.
    """
    rows = 0
    with replacing(path) as temporary, temporary.open("wb") as stream:
        for record in records:
            stream.write(plain_json(msgspec.to_builtins(record)).encode() + b"\n")
            rows += 1
    return rows


def row_content(record: Record) -> str:
    """What makes two rows the same: all but provenance, weight, and the ids that a session gave to its parts."""
    actions = (record.action,) if record.rejected is None else (record.action, record.rejected)
    said = [[message.role, *map(_plain, message.blocks)] for message in (*record.messages, *actions)]
    return content_id([said, len(actions), msgspec.to_builtins(record.tools), record.hint], length=32)


def _plain(block: Block) -> object:
    if isinstance(block, ToolCall):
        return normal_call(block)
    return block.text if isinstance(block, ToolResult) else msgspec.to_builtins(block)


def read_records(path: Path) -> Iterator[Record]:
    """The rows of `path`.

    Raises:
        DataError: the file is missing, a line is no record or has a key that none has (the line is named), or a row has
            a weight that is none, an action that no assistant took, or a hint without words.
    """
    for number, record in enumerate(read_lines(path, Record, refused=unknown_key), 1):
        if (fault := record_fault(record)) is not None:
            raise DataError(f"{path} row {number}: {fault}", do="put the row right, or remove it")
        if not (math.isfinite(record.weight) and record.weight >= 0):
            raise DataError(
                f"{path} row {number}: its weight", got=record.weight, expected="a finite number of 0 or more"
            )
        yield record


def read_lines(
    path: Path, Type: type[StructT], *, refused: Callable[[Any], str | None] | None = None
) -> Iterator[StructT]:
    """The lines of a JSONL file as `Type`; empty lines are passed over. `refused` may say what is wrong with one.

    Raises:
        DataError: the file is missing, or a line does not fit; the line is named.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", expected=f"{Type.__name__} JSON, one a line") from None
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                # json and not msgspec's decoder: traces hold lone surrogates, which msgspec refuses
                data = json.loads(line)
                made = msgspec.convert(data, Type)
                if refused is not None and (why := refused(data)) is not None:
                    raise ValueError(why)
            except (msgspec.ValidationError, ValueError, RecursionError) as error:
                raise DataError(
                    f"{path} line {number} is no {Type.__name__}: {error}", do="remove the line, or make the file again"
                ) from None
            yield made
