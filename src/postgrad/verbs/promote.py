"""`postgrad promote`: point champion.json at an artifact that a gate passed.

The pointer is replaced in one step, and only after the artifact's weights were hashed against its manifest and its
folder against what the verdict's candidate was measured on: a verdict promotes nothing but what it judged. So a
reader finds the old champion or the new one and never half of either. The old one stays named in `previous`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from postgrad.core.artifact import MANIFEST, read_manifest
from postgrad.core.canonical import file_sha256
from postgrad.core.champion import read_champion
from postgrad.core.errors import DataError
from postgrad.core.files import write_json
from postgrad.core.report import Verdict
from postgrad.run.config import Config
from postgrad.run.inputs import input_hash
from postgrad.verbs.command import verb_command


class PromoteConfig(Config):
    """Which artifact, on whose word, and where the pointer is."""

    artifact: Path
    """Folder of the candidate's weights."""
    verdict: Path
    """verdict.json of the gate that judged it."""
    champion: Path = Path("champion.json")
    """The pointer to write."""


CONFIG = PromoteConfig


def run(config: PromoteConfig, out: Path) -> dict[str, Any]:
    """Check verdict and weights, then move the pointer.

    Raises:
        NotPromoted: the verdict is no promotion.
        DataError: it judged something else, or the weights are not those of the manifest.
    """
    _require_promotion(config.verdict, config.artifact)
    for name, expected in read_manifest(config.artifact).weights.items():
        weights = config.artifact / name
        if not weights.is_file() or file_sha256(weights) != expected:
            raise DataError("the weights are not those of the manifest", got=str(weights), expected=expected[:16])
    previous = read_champion(config.champion)
    artifact = str(config.artifact.resolve())
    if previous is None or previous["artifact"] != artifact:
        pointer = {
            "artifact": artifact,
            "manifest": file_sha256(config.artifact / MANIFEST),
            "previous": previous["artifact"] if previous else None,
            "verdict": str(config.verdict.resolve()),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_json(config.champion, pointer)
    return {"champion": str(config.champion), "artifact": artifact, "previous": previous and previous["artifact"]}


class NotPromoted(DataError):
    """The gate said no; the exit code is the gate's own for it."""

    exit_code = 1


class _Judged(msgspec.Struct, frozen=True):
    """Who was judged, as `postgrad gate` writes it: the name, and the content hashes of the weights measured."""

    model: str = ""
    weights: tuple[str, ...] = ()


class _Written(msgspec.Struct, frozen=True):
    """The part of verdict.json beside the verdict itself."""

    candidate: _Judged = _Judged()


def _require_promotion(path: Path, artifact: Path) -> None:
    try:
        verdict = msgspec.json.decode(path.read_bytes(), type=Verdict)
        judged = msgspec.json.decode(path.read_bytes(), type=_Written).candidate
    except FileNotFoundError:
        raise DataError("no verdict here", got=str(path), expected="verdict.json of `postgrad gate`") from None
    except msgspec.MsgspecError as error:
        raise DataError(f"broken verdict: {error}", got=str(path)) from None
    if not verdict.passed:
        raise NotPromoted("the gate did not promote", got=verdict.decision, do="; ".join(verdict.reasons))
    if not artifact.is_dir():
        raise DataError("no artifact here", got=str(artifact), expected=f"a folder with {MANIFEST}")
    own = input_hash(artifact)[:16]
    if not judged.weights or not all(weights.startswith(own) for weights in judged.weights):
        raise DataError(
            "the verdict is about other weights",
            got=f"{artifact} ({own})",
            expected=f"{judged.model or 'a candidate'} ({', '.join(judged.weights) or 'no weights named'})",
            do="evaluate and gate this artifact",
        )


def show(result: dict[str, Any]) -> str:
    """One line for a person."""
    return f"{result['champion']} -> {result['artifact']} (before: {result['previous'] or 'nothing'})"


command = verb_command("promote", PromoteConfig, run, help=__doc__.splitlines()[0], show=show, positional="artifact")
