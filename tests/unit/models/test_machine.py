"""Measurements of the machine: made once, overridden by the user."""

from __future__ import annotations

import pytest
import torch

from postgrad.core.errors import ConfigError
from postgrad.models import machine


def test_the_user_decides_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRAD_THREADS", "1")
    monkeypatch.setattr(machine, "_measure_threads", lambda: pytest.fail("nothing to measure"))
    assert machine.set_threads() == 1
    monkeypatch.setenv("POSTGRAD_THREADS", "many")
    with pytest.raises(ConfigError, match="POSTGRAD_THREADS"):
        machine.set_threads()


def test_a_measurement_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POSTGRAD_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    made = []
    monkeypatch.setattr(machine, "_measure_threads", lambda: made.append(1) or 1)
    assert [machine.set_threads(), machine.set_threads()] == [1, 1]
    assert made == [1]


@pytest.mark.parametrize(("bf16", "fp32", "faster"), [(1.0, 4.0, True), (1.0, 1.1, False), (100.0, 1.0, False)])
def test_autocast_needs_a_clear_gain(bf16: float, fp32: float, faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([bf16, fp32])
    monkeypatch.setattr(machine, "_mean_seconds", lambda work: next(times))
    assert machine.bf16_is_faster(torch.device("cpu")) is faster


@pytest.mark.parametrize("name", ["zzz", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_the_users_mistake(name: str) -> None:
    """`meta` is a device, but nothing that was put there can be read."""
    with pytest.raises(ConfigError, match=f"device cannot be used .* got '{name}'"):
        machine.usable_device(name)
    assert machine.usable_device("cpu") == torch.device("cpu")
