"""A cache that cannot be written is read and otherwise done without."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from postgrad.models import cachedir
from postgrad.models.cachedir import place, recall, remember
from postgrad.models.policy import load_policy


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder below a file: nobody can create it, whatever rights they have."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("POSTGRAD_CACHE", str(tmp_path / "file" / "cache"))
    return tmp_path / "file" / "cache"


def test_what_is_remembered_is_recalled() -> None:
    assert recall("a.json") == {}
    remember("a.json", {"n": 1})
    assert recall("a.json") == {"n": 1}
    assert json.loads(place("a.json").read_text()) == {"n": 1}


def test_a_model_loads_without_a_cache_and_says_so_once(
    no_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("POSTGRAD_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # so that the threads are measured and noted
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            load_policy("tiny-random", dtype="auto")
    told = [record.getMessage() for record in caplog.records if str(no_cache) in record.getMessage()]
    assert len(told) == 1
    assert "set POSTGRAD_CACHE" in told[0]


def test_for_one_process_there_is_a_memory_all_the_same(no_cache: Path) -> None:
    remember("b.json", {"n": 2})
    assert recall("b.json") == {"n": 2}
    assert not no_cache.exists()


def test_what_is_in_a_cache_that_cannot_be_written_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    remember("c.json", {"n": 3})
    there = place("c.json")
    monkeypatch.setattr(cachedir, "_writable", lambda cache: False)
    assert place("c.json") == there
    assert recall("c.json") == {"n": 3}
    assert place("d.json").parent != there.parent


@pytest.mark.parametrize("content", ["", "[1]", "{", "\x00"])
def test_a_broken_memory_is_forgotten(content: str) -> None:
    remember("e.json", {})
    place("e.json").write_text(content)
    assert recall("e.json") == {}
