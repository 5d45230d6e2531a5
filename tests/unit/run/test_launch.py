from __future__ import annotations

import pytest

from postgrad.run.launch import is_first_worker, own_device, worker


def test_a_process_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert worker() == (0, 1)
    assert is_first_worker()
    assert [own_device(name) for name in ("cpu", "cuda", "cuda:1")] == ["cpu", "cuda", "cuda:1"]


def test_the_second_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert worker() == (1, 4)
    assert not is_first_worker()
    assert [own_device(name) for name in ("cpu", "cuda", "cuda:0")] == ["cpu", "cuda:1", "cuda:0"]
