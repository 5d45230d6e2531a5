"""Plain text for continued pretraining: documents out of text files, JSON lines and Parquet, and their tokens.

Tokens go into a file without a name that the system drops with the process, so a corpus may be larger than memory.

Not covered: compressed files, documents shorter than two tokens (counted and left out).
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postgrad.core.canonical import valid_text
from postgrad.core.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEXT, LINES, TABLES = (".txt", ".md"), (".jsonl",), (".parquet",)
KNOWN = (*TEXT, *LINES, *TABLES)
TOGETHER = 64
"""Documents that are tokenised in one call."""

Encode = Callable[[list[str]], list[list[int]]]


def corpus_files(paths: Sequence[Path]) -> list[Path]:
    """The files of `paths`; a folder stands for all files in it whose kind is known, sorted by name.

    Raises:
        DataError: a path is not there, a file of an unknown kind, or a folder without files.
    """
    files: list[Path] = []
    for path in paths:
        found = sorted(p for p in path.rglob("*") if p.suffix in KNOWN and p.is_file()) if path.is_dir() else [path]
        if not found:
            raise DataError("no text in this folder", got=str(path), expected=f"files in {', '.join(KNOWN)}")
        files += found
    for path in files:
        if not path.is_file():
            raise DataError("no such file of text", got=str(path))
        if path.suffix not in KNOWN:
            raise DataError("text of an unknown kind", got=str(path), expected=f"one of {', '.join(KNOWN)}")
    return files


def documents(path: Path, *, field: str) -> Iterator[str]:
    """Documents of one file: a text file is one, a JSON line or a row of a table has one in `field`.

    Raises:
        DataError: the file is broken, or a line or the table has no such field.
    """
    if path.suffix in TEXT:
        try:
            yield path.read_text(encoding="utf-8-sig")  # a byte-order mark is no text
        except UnicodeDecodeError as error:
            raise DataError(f"{path} is no UTF-8 text: {error.reason} at byte {error.start}") from None
    elif path.suffix in LINES:
        yield from _lines(path, field)
    else:
        yield from _rows(path, field)


@dataclass(frozen=True)
class Corpus:
    """Documents as tokens: document k is ``tokens[starts[k]:starts[k + 1]]``; `rows` counts documents."""

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    rows: Counter[str]

    @classmethod
    def of(cls, texts: Iterator[str], encode: Encode, *, before: Sequence[int], after: Sequence[int]) -> Corpus:
        """Tokenise `texts`; `before` and `after` are set around each document.

        Raises:
            DataError: there is no document of two tokens or more.
        """
        import numpy as np

        rows: Counter[str] = Counter()
        starts = [0]
        file = tempfile.TemporaryFile()  # noqa: SIM115  (the map below keeps it)
        while batch := list(islice(texts, TOGETHER)):
            for ids in encode([valid_text(text) for text in batch]):
                if not ids or len(before) + len(ids) + len(after) < 2:
                    rows["dropped: empty"] += 1
                    continue
                np.array([*before, *ids, *after], dtype=np.int32).tofile(file)
                starts.append(starts[-1] + len(before) + len(ids) + len(after))
                rows["documents"] += 1
        if len(starts) == 1:
            raise DataError("there is no text to train on", got=dict(rows))
        file.flush()
        return cls(np.memmap(file, dtype=np.int32, mode="r"), np.array(starts), rows)

    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each document."""
        import numpy as np

        return np.diff(self.starts)


def _lines(path: Path, field: str) -> Iterator[str]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path} line {number} is no JSON: {error}") from None
            yield _text(data, field, f"{path} line {number}")


def _text(data: Any, field: str, place: str) -> str:
    value = data.get(field) if isinstance(data, dict) else None
    if not isinstance(value, str):
        got = ", ".join(data) if isinstance(data, dict) else type(data).__name__
        raise DataError(f"{place} has no text in '{field}'", got=got, do="give method.field the name of the text")
    return value


def _rows(path: Path, field: str) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path)
        if field not in table.schema_arrow.names:
            names = ", ".join(table.schema_arrow.names)
            raise DataError(f"{path} has no column '{field}'", got=names, do="give method.field the name of the text")
        for batch in table.iter_batches(columns=[field], batch_size=TOGETHER):
            for number, value in enumerate(batch.column(0).to_pylist()):
                yield _text({field: "" if value is None else value}, field, f"{path}, a row near {number}")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is no Parquet file: {error}") from None
