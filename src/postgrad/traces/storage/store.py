"""`Store`: a folder with the raw bytes of every source, and what was read from them, in Parquet.

    STORE/store.json     marks the folder as a store; with an encrypted raw layer also what knows its passphrase again
          journal.jsonl  what is in the store (`journal`): a source is, from the moment that a line here says so
          raw/  records/  traces/  messages/    the rows of some sources a file (`segment`)

Any Parquet reader can use the tables:

    duckdb -c "select id, format, steps, flagged_errors from 'STORE/traces/*.parquet'"
    duckdb -c "select t.id, m.role, m.blocks from 'STORE/traces/*.parquet' t, unnest(t.messages) as u(id)
               join 'STORE/messages/*.parquet' m on m.id = u.id"

A source is named by its content: the same file again adds nothing, and a file that has grown adds its new bytes and
replaces its older reading. Of several readings of one session (equal trace id: the reader's docstring says what that
means) the one that holds all steps of another hides it; where two went different ways after a common beginning both
are kept, the second under an id of its own. Traces are stored as given: redact before adding. One process writes at a
time; readers need no lock. Arrow is loaded where tables are read or written: seeing that nothing changed takes none.
Not covered: deleting a source.
"""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.files import write_json
from postgrad.core.trace import Trace
from postgrad.traces.records import ReadResult
from postgrad.traces.storage.journal import Journal, Line, StoredSource
from postgrad.traces.storage.sweep import sweep
from postgrad.traces.storage.vault import Key, Lock, RawMode, ask_passphrase, read_pieces

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = "store.json"
_VERSION = 2


@dataclass(frozen=True)
class Store:
    """A trace store in `folder`, made when first written to."""

    folder: Path

    def add(self, result: ReadResult, *, raw: RawMode = "keep") -> bool:
        """Add a reading; True if its source is new. An older reading of the same growing file is dropped.

        Args:
            result: what a reader gave, with `traces` redacted as they are to be kept.
            raw: what to do with the source's bytes.

        Raises:
            DataError: the folder holds something else, the file changed since it was read, or somebody else writes.
            OutsideFailure: the disk is full or not writable.
        """
        from postgrad.traces.storage.segment import Segment

        with self.writing() as journal:
            if result.source.sha256 in journal.sources:
                return False
            key = self.key(new=True) if raw == "encrypt" else None
            with Segment(self.folder, raw=raw, key=key) as segment:
                source, outgrown = segment.add(result, result.traces, older=journal.sources.values())
            journal.append([Line(source=source, gone=tuple(outgrown))])
        return True

    @property
    def exists(self) -> bool:
        """Whether the folder is a store."""
        return (self.folder / _MARK).is_file()

    @contextmanager
    def writing(self, known: Journal | None = None) -> Iterator[Journal]:
        """The journal, for as long as this process alone may write. Afterwards no row is left that it does not name.

        Args:
            known: the journal as it was read before; it is read again only if it has changed.

        Raises:
            DataError: the folder holds something else, or another process is writing.
            OutsideFailure: the disk is full or not writable.
        """
        self._claim()
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                do = "wait until it is done, or give another store"
                raise DataError("another process is writing to this store", got=str(self.folder), do=do) from None
            journal = known if known is not None and known.current else self.journal()
            try:
                yield journal
                sweep(self.folder, journal)
                journal.tidy()
            except _write_faults() as error:
                raise OutsideFailure(f"cannot write the store {self.folder}: {error}") from error

    def journal(self) -> Journal:
        """What is in the store.

        Raises:
            DataError: the folder is no trace store.
        """
        self.mark()
        return Journal(self.folder / "journal.jsonl")

    def sources(self) -> list[StoredSource]:
        """What was added, ordered by path.

        Raises:
            DataError: the folder is no trace store.
        """
        return sorted(self.journal().sources.values(), key=lambda source: (source.path, source.sha256))

    def traces(self) -> Iterator[Trace]:
        """Every session once, ordered by source path and place in the file; a few traces in memory at a time.

        Raises:
            DataError: the folder is no trace store.
        """
        from postgrad.traces.storage.shelf import Shelf

        return Shelf(self.folder, self.sources()).traces()

    def ids(self) -> frozenset[str]:
        """The ids of the traces that `traces` gives, without reading them.

        Raises:
            DataError: the folder is no trace store.
        """
        from postgrad.traces.storage.shelf import Shelf

        return Shelf(self.folder, self.sources()).ids()

    def records(self, sha256: str) -> pa.Table:
        """The record table of a source.

        Raises:
            DataError: the store does not hold it.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        from postgrad.traces.storage.tables import RECORDS

        path = self.folder / "records" / f"{self._source(sha256).segment}.parquet"
        if not path.exists():  # a source without a single record
            return pa.Table.from_pylist([], schema=RECORDS).drop_columns(["source"])
        return pq.read_table(path, filters=[("source", "=", sha256)], partitioning=None).drop_columns(["source"])

    def raw(self, sha256: str) -> bytes:
        """The bytes of a source, uncompressed.

        Raises:
            DataError: the store does not hold them, or the passphrase is wrong.
        """
        return b"".join(self.raw_blocks(self._source(sha256)))

    def raw_blocks(self, source: StoredSource) -> Iterator[bytes]:
        """The bytes of a source, a few megabytes at a time.

        Raises:
            DataError: the store does not hold them, or the passphrase is wrong.
        """
        if source.raw == "drop":
            raise DataError(
                "the store does not hold these bytes", got=source.sha256, do="ingest the file again with raw kept"
            )
        return read_pieces(self.folder / "raw", source.pieces, self.key() if source.raw == "encrypt" else None)

    def key(self, *, new: bool = False) -> Key:
        """The key of the encrypted raw layer; `new`: make one if the store has none yet.

        Raises:
            ConfigError: there is no passphrase.
            DataError: the passphrase is wrong.
        """
        mark = self.mark()
        if "lock" in mark:
            return Key.of(ask_passphrase(new=False), msgspec.convert(mark["lock"], Lock))
        if not new:
            raise DataError("this store has no encrypted raw layer", got=str(self.folder))
        key, lock = Key.create(ask_passphrase(new=True))
        write_json(self.folder / _MARK, {**mark, "lock": msgspec.to_builtins(lock)})
        return key

    def mark(self) -> dict[str, Any]:
        """What the file that marks the store says.

        Raises:
            DataError: the folder is no trace store, or one of another version.
        """
        try:
            mark: dict[str, Any] = json.loads((self.folder / _MARK).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            do = "run: postgrad ingest PATH -o STORE"
            raise DataError("no trace store here", got=str(self.folder), do=do) from None
        except ValueError as error:
            raise DataError(f"the store's mark is damaged: {error}", got=str(self.folder / _MARK)) from None
        if mark.get("version") != _VERSION:
            what = f"a trace store of version {mark.get('version')}"
            raise DataError(what, got=str(self.folder), expected=_VERSION, do="ingest again into a new folder")
        return mark

    def _source(self, sha256: str) -> StoredSource:
        source = self.journal().sources.get(sha256)
        if source is None:
            raise DataError("the store does not hold this source", got=sha256)
        return source

    def _claim(self) -> None:
        """Make the folder a store, unless it is something else."""
        if self.exists:
            return
        half = f".{_MARK}."  # what a process leaves that is killed right here
        if self.folder.exists() and (
            not self.folder.is_dir() or any(not one.name.startswith(half) for one in self.folder.iterdir())
        ):
            raise DataError("the folder is not a trace store", got=str(self.folder), do="give a new or empty folder")
        write_json(self.folder / _MARK, {"format": "postgrad trace store", "version": _VERSION})


def _write_faults() -> tuple[type[Exception], ...]:
    """What is raised where the disk cannot be written; Arrow has its own way, once it is loaded."""
    arrow = sys.modules.get("pyarrow")
    return (OSError,) if arrow is None else (OSError, arrow.ArrowException)
