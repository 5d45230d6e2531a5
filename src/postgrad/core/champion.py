"""The champion: a pointer, champion.json, to the artifact that was promoted last. `postgrad promote` moves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postgrad.core.artifact import MANIFEST
from postgrad.core.canonical import file_sha256
from postgrad.core.errors import DataError


def read_champion(path: Path) -> dict[str, Any] | None:
    """The pointer at `path`, None where there is none yet.

    Raises:
        DataError: the file is no pointer.
    """
    try:
        value = json.loads(path.read_bytes())
        return {"artifact": str(value["artifact"]), **value}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise DataError("not a champion pointer", got=str(path), expected="what `postgrad promote` writes") from None


def champion_artifact(path: Path) -> Path:
    """The folder that the pointer at `path` names, as it was when it was promoted.

    Raises:
        DataError: there is no pointer, or the folder holds something else by now: a later training that no gate passed.
    """
    champion = read_champion(path)
    if champion is None:
        raise DataError("no champion here", got=str(path), do="promote an artifact first")
    manifest = Path(champion["artifact"]) / MANIFEST
    if not manifest.is_file() or file_sha256(manifest) != champion.get("manifest"):
        raise DataError("the champion's folder is not what was promoted", got=str(manifest.parent), do="promote again")
    return manifest.parent
