"""Ctrl-C and SIGTERM: the step ends, it is saved, and going on equals never having stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from postgrad.core.annotation import Unit
from postgrad.core.errors import OutsideFailure
from postgrad.run.rundir import RunDir
from postgrad.train.loop import train
from postgrad.train.stopping import SIGNALS, stopping
from unit.train.tiny_training import StepSource, TinyPolicy, config, mixed_units

STEPS = 4


def trained(folder: Path, *signals: signal.Signals, at: int = 1, **loop: Any) -> TinyPolicy:
    """A run of 4 steps with no checkpoint before the last, which sends itself `signals` in step `at`."""

    def units(step: int) -> list[Unit]:
        for number in signals if step == at else ():
            os.kill(os.getpid(), number)
        return mixed_units(step)

    policy = TinyPolicy(dropout=0.1)
    train(policy, StepSource(units), config(steps=STEPS, **loop), RunDir(folder))
    return policy


@pytest.mark.parametrize("number", SIGNALS)
def test_stopped_and_resumed_equals_uninterrupted(
    number: signal.Signals, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OutsideFailure, match="stopped after step 2 of 4, which is saved"):
        trained(tmp_path / "stopped", number)
    assert "stopping after this step, with a checkpoint; once more stops at once\n" in capfd.readouterr().err
    assert [path.name for path in (tmp_path / "stopped/checkpoints").iterdir()] == ["step-2"]
    resumed, whole = trained(tmp_path / "stopped").weights(), trained(tmp_path / "whole").weights()
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_the_second_one_stops_at_once_and_says_what_is_lost(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, signal.SIGINT, signal.SIGINT)
    assert capfd.readouterr().err.endswith("no checkpoint yet: the next call starts over\n")
    with pytest.raises(OutsideFailure):
        trained(tmp_path, signal.SIGINT, at=0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, signal.SIGINT, signal.SIGINT, at=2)
    assert capfd.readouterr().err.endswith(f"the next call goes on from {tmp_path}/checkpoints/step-1\n")


def test_a_run_that_goes_back_at_spikes_has_its_regular_checkpoints_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, signal.SIGINT, spikes={"threshold": 6.0})
    assert capfd.readouterr().err.endswith(f"the next call goes on from {tmp_path}/checkpoints/step-0\n")


def test_a_run_stopped_in_its_last_step_is_done(tmp_path: Path) -> None:
    trained(tmp_path, signal.SIGINT, at=STEPS - 1)


def test_handlers_are_as_before(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with stopping() as stop:
        assert [signal.getsignal(number) for number in SIGNALS] != before
        assert not stop.asked
    assert [signal.getsignal(number) for number in SIGNALS] == before
    with stopping(possible=False):
        assert [signal.getsignal(number) for number in SIGNALS] == before
