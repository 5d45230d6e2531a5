"""`ItemStore`: evaluated items in a JSONL file, so that an evaluation killed at any point goes on where it was.

A line is keyed by the content of all that decides its answer: weights, task, sampling, grader version. A second
model, a changed prompt or a changed grader therefore never meets an old line. Lines are appended batch by batch and
forced to disk; the torn last line of a killed process is dropped on opening.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.message import Message
from postgrad.core.report import Item


class Evaluated(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item with the message that it judges (None: no answer came)."""

    key: str
    item: Item
    message: Message | None = None
    stop_reason: str = "stop"


class ItemStore:
    """Evaluated items by key, on disk when `path` is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._items: dict[str, Evaluated] = {}
        if path is not None and path.exists():
            self._load(path)

    def get(self, key: str) -> Evaluated | None:
        """Return the item stored under `key`."""
        return self._items.get(key)

    def add(self, batch: Iterable[Evaluated]) -> None:
        """Append the items whose keys are new, in one write.

        Raises:
            OutsideFailure: the disk is full or not writable.
        """
        new = [one for one in batch if one.key not in self._items]
        self._items.update({one.key: one for one in new})
        if self._path is None or not new:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as stream:
                stream.write(b"".join(msgspec.json.encode(one) + b"\n" for one in new))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise OutsideFailure(f"cannot write {self._path}: {error.strerror or error}") from error

    def _load(self, path: Path) -> None:
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
        for number, line in enumerate(data[:whole].splitlines(), start=1):
            try:
                one = msgspec.json.decode(line, type=Evaluated)
            except msgspec.MsgspecError as error:
                raise DataError(f"line {number} is broken: {error}", got=str(path), do="remove the file") from None
            self._items[one.key] = one
