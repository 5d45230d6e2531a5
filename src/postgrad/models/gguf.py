"""Turn a GGUF file into an ordinary model folder, once: loading GGUF takes half a minute, such a folder one second.

The folder is keyed by the SHA-256 of the GGUF file and put in place by one rename, under a lock, so that processes
that want it at the same time convert it once and never see half of it. Weights are dequantised to fp32.

Not covered: writing GGUF, and model types that transformers cannot read from GGUF.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgrad.core.canonical import file_sha256
from postgrad.core.errors import DataError
from postgrad.core.files import write_folder
from postgrad.models.cachedir import place, recall, remember

log = logging.getLogger(__name__)


def converted(gguf: Path, *, sha256: str) -> Path:
    """The model folder made from `gguf`, converting it if this machine has not yet.

    Raises:
        DataError: the file is not the one that `sha256` names.
        OutsideFailure: the disk is full.
    """
    found = known_sha256(gguf)
    if found != sha256:
        raise DataError("the model file is not the expected one", got=f"sha256 {found} of {gguf}", expected=sha256)
    folder = place(f"models/{sha256}")
    if not (folder / "config.json").exists():
        with _locked(folder):
            if not (folder / "config.json").exists():
                log.warning("converting %s to %s (once; about half a minute)", gguf.name, folder)
                _convert(gguf, folder)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: of two processes that want the same model one converts and the other waits for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def known_sha256(path: Path) -> str:
    """SHA-256 of `path`, remembered by place, size and time of change so that it is computed once."""
    status = path.stat()
    key = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}"
    known = recall("sha256.json")
    if key not in known:
        known[key] = file_sha256(path)
        remember("sha256.json", known)
    return str(known[key])


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    def fill(target: Path) -> None:
        source, name = str(gguf.parent), gguf.name
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
        )
        model.save_pretrained(target)
        AutoTokenizer.from_pretrained(source, gguf_file=name).save_pretrained(target)

    write_folder(folder, fill)
