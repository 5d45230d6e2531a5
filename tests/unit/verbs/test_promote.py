"""The champion pointer moves only on a gate's word and only to whole weights."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from postgrad.core.artifact import Manifest, write_manifest
from postgrad.core.champion import champion_artifact, read_champion
from postgrad.core.errors import DataError
from postgrad.core.report import Decision, Verdict
from postgrad.run.inputs import input_hash
from postgrad.verbs.promote import PromoteConfig, command, run


def artifact(folder: Path, weights: bytes) -> Path:
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights)
    write_manifest(folder, Manifest(parent="p", method="sft", kind="merged"))
    return folder


def verdict(path: Path, decision: Decision, *judged: Path) -> Path:
    """A gate's file on the artifact `judged`: its benchmarks were measured on these weights."""
    weights = [f"{input_hash(folder)[:16]}, float32" for folder in judged]
    told = msgspec.to_builtins(Verdict(decision, ("a reason",))) | {"candidate": {"model": "m", "weights": weights}}
    path.write_text(json.dumps(told))
    return path


def test_the_pointer_names_the_new_champion_and_the_old(tmp_path: Path) -> None:
    champion = tmp_path / "champion.json"
    first, second = artifact(tmp_path / "a", b"1"), artifact(tmp_path / "b", b"2")
    one, yes = verdict(tmp_path / "1.json", "promote", first), verdict(tmp_path / "2.json", "promote", second)
    run(PromoteConfig(artifact=first, verdict=one, champion=champion), tmp_path)
    result = run(PromoteConfig(artifact=second, verdict=yes, champion=champion), tmp_path)
    assert (result["artifact"], result["previous"]) == (str(second), str(first))
    pointer = json.loads(champion.read_text())
    assert (pointer["artifact"], pointer["previous"]) == (str(second), str(first))
    before = champion.read_bytes()
    run(PromoteConfig(artifact=second, verdict=yes, champion=champion), tmp_path)
    assert champion.read_bytes() == before, "promoting the champion again must not make it its own predecessor"


@pytest.mark.parametrize("decision", ["iterate", "rollback"])
def test_a_no_leaves_the_pointer(decision: Decision, tmp_path: Path) -> None:
    config = PromoteConfig(
        artifact=artifact(tmp_path / "a", b"1"),
        verdict=verdict(tmp_path / "v.json", decision),
        champion=tmp_path / "champion.json",
    )
    with pytest.raises(DataError, match=f"did not promote; got '{decision}'; a reason"):
        run(config, tmp_path)
    assert read_champion(tmp_path / "champion.json") is None
    line = ["a", "--verdict", "v.json", "--run", "run"]
    with contextlib.chdir(tmp_path):
        assert CliRunner().invoke(command, line).exit_code == 1, "as of the gate that said no"


def test_a_verdict_promotes_nothing_but_what_it_judged(tmp_path: Path) -> None:
    """Another artifact, and a verdict that does not say what it judged; a moved artifact is the same one."""
    good, other = artifact(tmp_path / "a", b"1"), artifact(tmp_path / "b", b"2")
    yes, champion = verdict(tmp_path / "v.json", "promote", good), tmp_path / "champion.json"
    with pytest.raises(DataError, match="about other weights"):
        run(PromoteConfig(artifact=other, verdict=yes, champion=champion), tmp_path)
    (tmp_path / "bare.json").write_bytes(msgspec.json.encode(Verdict("promote", ())))
    with pytest.raises(DataError, match="no weights named"):
        run(PromoteConfig(artifact=good, verdict=tmp_path / "bare.json", champion=champion), tmp_path)
    assert read_champion(champion) is None
    moved = good.rename(tmp_path / "c")
    assert run(PromoteConfig(artifact=moved, verdict=yes, champion=champion), tmp_path)["artifact"] == str(moved)


def test_a_folder_that_was_trained_anew_is_no_champion(tmp_path: Path) -> None:
    """The pointer names a place; what lies there now was not promoted."""
    folder, champion = artifact(tmp_path / "a", b"1"), tmp_path / "champion.json"
    with pytest.raises(DataError, match="no champion here"):
        champion_artifact(champion)
    run(PromoteConfig(artifact=folder, verdict=verdict(tmp_path / "v", "promote", folder), champion=champion), tmp_path)
    assert champion_artifact(champion) == folder
    (folder / "model.safetensors").write_bytes(b"22")
    write_manifest(folder, Manifest(parent="p", method="sft", kind="merged"))
    with pytest.raises(DataError, match="not what was promoted"):
        champion_artifact(champion)


def test_weights_that_are_not_the_manifests_are_refused(tmp_path: Path) -> None:
    folder = artifact(tmp_path / "a", b"1")
    (folder / "model.safetensors").write_bytes(b"2")
    config = PromoteConfig(artifact=folder, verdict=verdict(tmp_path / "v.json", "promote", folder))
    with pytest.raises(DataError, match="not those of the manifest"):
        run(config, tmp_path)
    (folder / "model.safetensors").unlink()
    verdict(tmp_path / "v.json", "promote", folder)
    with pytest.raises(DataError, match="not those of the manifest"):
        run(config, tmp_path)


def test_a_missing_or_broken_file_is_told(tmp_path: Path) -> None:
    folder = artifact(tmp_path / "a", b"1")
    arguments = [str(folder), "--verdict", str(tmp_path / "v.json"), "--run", str(tmp_path / "run")]
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, "no verdict here" in done.stderr) == (2, True)
    (tmp_path / "v.json").write_text("{}")
    assert "broken verdict" in CliRunner().invoke(command, arguments).stderr
    (tmp_path / "champion.json").write_text("[]")
    with pytest.raises(DataError, match="not a champion pointer"):
        read_champion(tmp_path / "champion.json")
