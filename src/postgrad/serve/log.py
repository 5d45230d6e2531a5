"""`CaptureLog`: every exchange becomes one line on the disk before its answer is complete.

One file a day (UTC), ``captures/2026-01-31.jsonl``, private to the user. A line is written by one system call and
flushed to the disk; if a crash tore the last line, the next one starts on a line of its own. Only bodies are
written, never headers, so no credential of a client gets here by the transport. What users type is kept as it is:
`ingest` redacts.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from postgrad.core.canonical import plain_json
from postgrad.core.errors import OutsideFailure
from postgrad.traces.capture import exchange


class CaptureLog:
    """Appends exchanges to the files of a folder. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        self._lock = threading.Lock()

    def today(self) -> Path:
        """The file that an exchange ending now goes to."""
        return self.folder / f"{datetime.now(UTC):%Y-%m-%d}.jsonl"

    def append(self, request: dict[str, Any], response: dict[str, Any]) -> Path:
        """Write one exchange; `response` is a folded completion or an error body.

        Raises:
            OutsideFailure: the disk is full or not writable.
        """
        line = plain_json(exchange(request, response)) + "\n"
        path = self.today()
        try:
            with self._lock:
                self.folder.mkdir(parents=True, exist_ok=True)
                append_line(path, line.encode())
                self.written += 1
        except OSError as error:
            raise OutsideFailure(f"cannot write {path}: {error.strerror or error}") from error
        return path


def append_line(path: Path, line: bytes) -> None:
    """Append `line`, on a line of its own even after a torn one, and flush it to the disk."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError("the disk took only a part of the line")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
