"""The catalogue of a store: given once, it holds for everything that is read into the store from then on.

It is kept in the store as one file that needs no other (`catalogue.json`, texts and tools written into it; tokenizers
lie beside it, named by their hash), so that a later ingest without the option, or a rebuild on another machine, fills
the same gaps in the same way. Giving another catalogue replaces it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postgrad.core.canonical import file_sha256, plain_json
from postgrad.core.errors import ConfigError
from postgrad.core.files import write_bytes

if TYPE_CHECKING:
    from postgrad.traces.contexts.catalogue import Filling

_NAME = "catalogue.json"
_FILES = frozenset({"system_file", "tools_file", "tokenizer_file"})


def kept(store: Path) -> Path | None:
    """The catalogue that is kept in the store's folder, None if none was given yet."""
    path = store / _NAME
    return path if path.is_file() else None


def keep(catalogue: Path, store: Path) -> None:
    """Keep a catalogue, with all that it names, in the store's folder.

    Raises:
        ConfigError: the catalogue, or a file that it names, is missing or broken.
        OutsideFailure: the disk is full or not writable.
    """
    from postgrad.traces.contexts.catalogue import Catalogue

    if catalogue.resolve() == (store / _NAME).resolve():
        return
    entries = [_entry(filling, store) for filling in Catalogue.load(catalogue).fillings]
    data = plain_json({"entries": entries}).encode()
    old = kept(store)
    if old is None or old.read_bytes() != data:
        write_bytes(store / _NAME, data)


def _entry(filling: Filling, store: Path) -> dict[str, Any]:
    told: dict[str, Any] = filling.entry.model_dump(mode="json", exclude=set(_FILES), exclude_none=True)
    if filling.system is not None:
        told["system"] = filling.system
    if filling.listed is not None:
        told["tools"] = filling.listed
    if filling.tokenizer is not None:
        told["tokenizer_file"] = _tokenizer(filling.tokenizer, store)
    return told


def _tokenizer(path: Path, store: Path) -> str:
    try:
        name = f"tokenizer-{file_sha256(path)[:16]}.json"
    except OSError as error:
        expected = "a tokenizer that the catalogue names"
        raise ConfigError(f"cannot read {path}: {error.strerror}", expected=expected) from None
    if not (store / name).exists():
        shutil.copyfile(path, store / name)
    return name
