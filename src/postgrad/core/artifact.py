"""`Artifact`: a directory of weights with a manifest that says where they came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.canonical import canonical_json, file_sha256
from postgrad.core.errors import DataError
from postgrad.core.files import write_text

MANIFEST = "postgrad.json"


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Lineage of an artifact: parent model, method, recipe, hashes of data and weights, the gate's word."""

    parent: str
    method: str
    kind: str
    recipe: dict[str, Any] = {}
    data: dict[str, str] = {}
    weights: dict[str, str] = {}
    decision: str | None = None


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Add the SHA-256 of every weight file in `folder` and write the manifest beside them.

    Raises:
        DataError: there is no weight file.
    """
    weights = {path.name: file_sha256(path) for path in sorted(folder.glob("*.safetensors"))}
    if not weights:
        raise DataError("the artifact holds no weights", got=str(folder), expected="*.safetensors files")
    complete = msgspec.structs.replace(manifest, weights=weights)
    write_text(folder / MANIFEST, canonical_json(msgspec.to_builtins(complete)) + "\n")
    return complete


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of `folder`.

    Raises:
        DataError: it is missing or broken.
    """
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise DataError("no artifact here", got=str(folder), expected=f"a folder with {MANIFEST}") from None
    except msgspec.MsgspecError as error:
        raise DataError(f"broken manifest: {error}", got=str(path)) from None
