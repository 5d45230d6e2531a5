"""`restored(store, source)`: the bytes of a source of a store as a file (or folder) again, for reading them anew.

Readers look at names: of the file, of the folder that it lies in. So the copy lies below a temporary folder under its
whole old path.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgrad.traces.storage.journal import StoredSource
from postgrad.traces.storage.store import Store


@contextmanager
def restored(store: Store, source: StoredSource) -> Iterator[Path]:
    """A copy of the source for as long as the `with` block lasts.

    Raises:
        DataError: the store does not hold its bytes, or the passphrase is wrong.
    """
    blocks = store.raw_blocks(source)
    with tempfile.TemporaryDirectory(prefix="postgrad-") as folder:
        path = Path(folder).joinpath(*_names(Path(source.path)))
        files = [(path / name, size) for name, size in source.files] or [(path, source.size)]
        left = b""
        for file, size in files:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as stream:
                while size and (left := left or next(blocks, b"")):
                    part, left = left[:size], left[size:]
                    size -= stream.write(part)
        yield path


def _names(path: Path) -> list[str]:
    return [part for part in path.parts if part not in (path.anchor, "..")]
