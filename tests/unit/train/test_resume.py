from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from postgrad.core import files
from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError, DataError, DeadChannel, OutsideFailure
from postgrad.run.rundir import RunDir
from postgrad.train import restoring
from postgrad.train.checkpoint import WEIGHTS, Checkpoints, Snapshot, Tensors, read_snapshot
from postgrad.train.loop import train
from postgrad.train.randomness import random_state, restore_random_state
from unit.train import kill_me
from unit.train.tiny_training import ALL_CHANNELS, KINDS, MemoryRun, StepSource, TinyPolicy, config, mixed_units

STEPS = 6


class Stop(Exception):
    pass


def stopping(at: int) -> Callable[[int], list[Unit]]:
    def units(step: int) -> list[Unit]:
        if step == at:
            raise Stop
        return noisy_units(step)

    return units


def noisy_units(step: int) -> list[Unit]:
    """Units that also depend on the global generators, as a sampler's would."""
    draw = int(np.random.randint(100)) + random.randrange(100)
    return mixed_units(1000 * step + draw)


def finished(folder: Path, make: Callable[[int], list[Unit]] = noisy_units, **changes: object) -> TinyPolicy:
    policy = TinyPolicy(dropout=0.1)
    train(policy, StepSource(make), config(steps=STEPS, save_every=3, **changes), RunDir(folder))
    return policy


def same_weights(a: TinyPolicy, b: TinyPolicy) -> bool:
    first, second = a.weights(), b.weights()
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("at", [3, 4, 5])
def test_resumed_equals_uninterrupted_bit_for_bit(at: int, tmp_path: Path):
    """Six steps in one go against: stopped when step `at` begins, resumed from step-3. Dropout is on."""
    whole = finished(tmp_path / "whole")
    with pytest.raises(Stop):
        finished(tmp_path / "broken", stopping(at))
    random.seed(99), np.random.seed(99), torch.manual_seed(99)
    resumed = finished(tmp_path / "broken")
    assert same_weights(whole, resumed)
    assert not same_weights(whole, TinyPolicy(dropout=0.1))
    lines = [RunDir(tmp_path / name).metrics() for name in ("whole", "broken")]
    assert [[line["step"] for line in run] for run in lines] == [list(range(STEPS))] * 2
    assert [line["loss"] for line in lines[0]] == [line["loss"] for line in lines[1]]
    assert read_snapshot(tmp_path / "broken/checkpoints/step-6").source == {"asked": STEPS}


def test_idle_steps_before_a_kill_still_count(tmp_path: Path):
    """Cross-entropy has items at step 0 only; patience 4 ends the run at step 4, be it resumed at step 3 or not."""

    def starving(step: int) -> list[Unit]:
        if step == 4 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            raise Stop
        return mixed_units(step, kinds=KINDS if step == 0 else KINDS[1:])

    with pytest.raises(Stop):
        finished(tmp_path, starving, patience=4)
    with pytest.raises(DeadChannel, match="'cross_entropy': nothing to train on for 4 steps"):
        finished(tmp_path, starving, patience=4)
    assert [line["step"] for line in RunDir(tmp_path).metrics()] == [0, 1, 2, 3]


@dataclass
class Average:
    """A companion: the running average of a policy's weights, and how often it moved."""

    policy: TinyPolicy
    name: str = "average"
    kept: dict[str, torch.Tensor] = field(default_factory=dict)
    moves: int = 0

    def after_step(self, step: int) -> None:
        assert self.moves == step
        self.moves += 1
        for name, weight in self.policy.weights().items():
            self.kept[name] = self.kept.get(name, torch.zeros_like(weight)).lerp(weight, 0.1)

    def tensors(self) -> dict[str, torch.Tensor]:
        return self.kept

    def state(self) -> dict[str, int]:
        return {"moves": self.moves}

    def restore(self, tensors: Mapping[str, torch.Tensor], state: dict[str, int]) -> None:
        self.kept, self.moves = dict(tensors), state["moves"]


def buffered(folder: Path, make: Callable[[int], list[Unit]], **changes: object) -> tuple[TinyPolicy, Average]:
    """Twelve steps on two rollout buffers of six, with an averaged companion, Lion and dropout."""
    policy = TinyPolicy(dropout=0.1)
    average = Average(policy)
    optim = {"name": "lion", "lr": 1e-3}
    settings = config(steps=12, save_every=1, reuse={"parts": 3, "passes": 2}, optim=optim, **changes)
    train(policy, StepSource(make), settings, RunDir(folder), companions=[average])
    return policy, average


@pytest.mark.parametrize("at", [1, 4, 6, 8, 11])
def test_resume_inside_a_rollout_buffer_is_bit_exact(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Stopped before step `at`, in either buffer or between them. What is sampled depends on the weights and on the
    random generators, so sampling again inside the buffer would give other units.
    """

    def sampled(step: int) -> list[Unit]:
        return noisy_units(step) + mixed_units(step + 50)

    whole, average = buffered(tmp_path / "whole", sampled)
    saved = []
    save = Checkpoints.save

    def stop_after(self: Checkpoints, snapshot: Snapshot, tensors: Tensors) -> Path:
        path = save(self, snapshot, tensors)
        saved.append(snapshot.step)
        if snapshot.step == at:
            raise Stop
        return path

    monkeypatch.setattr(Checkpoints, "save", stop_after)
    with pytest.raises(Stop):
        buffered(tmp_path / "broken", sampled)
    monkeypatch.setattr(Checkpoints, "save", save)
    random.seed(99), np.random.seed(99), torch.manual_seed(99)
    resumed, again = buffered(tmp_path / "broken", sampled)
    assert same_weights(whole, resumed)
    assert all(torch.equal(average.kept[name], weight) for name, weight in again.kept.items())
    assert again.moves == 12
    assert saved[-1] == at


def test_a_run_without_its_companion_is_told(tmp_path: Path):
    policy = TinyPolicy()
    train(policy, StepSource(), config(steps=2), RunDir(tmp_path))
    with pytest.raises(DataError, match="knows nothing of 'average'"):
        train(policy, StepSource(), config(steps=2), RunDir(tmp_path), companions=[Average(policy)])


def test_another_torch_or_number_of_threads_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    finished(tmp_path)
    snapshot = read_snapshot(tmp_path / "checkpoints/step-6")
    assert snapshot.machine["torch"] == str(torch.__version__)
    assert snapshot.machine["threads"] == torch.get_num_threads()
    finished(tmp_path)
    assert "rounding" not in capsys.readouterr().err
    monkeypatch.setattr(restoring, "machine", lambda: snapshot.machine | {"threads": 7, "torch": "9.9"})
    finished(tmp_path)
    told = capsys.readouterr().err
    assert f"saved with threads {torch.get_num_threads()} and goes on with 7: equal up to rounding only" in told
    assert f"saved with torch {torch.__version__} and goes on with 9.9" in told


def test_a_finished_run_is_loaded_and_not_trained_again(tmp_path: Path):
    first = finished(tmp_path)
    second = finished(tmp_path, stopping(0))
    assert same_weights(first, second)


def child_command(folder: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return [sys.executable, kill_me.__file__, str(folder), *arguments], environment


def run_child(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command, environment = child_command(folder, *arguments)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def start_child(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command, environment = child_command(folder, *arguments)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def test_sigkill_then_the_same_command_equals_uninterrupted(tmp_path: Path):
    assert kill_me.main(tmp_path / "whole", "plain", 0) == 0
    broken = tmp_path / "broken"
    assert run_child(broken, "kill", "5").returncode == -signal.SIGKILL
    assert sorted(path.name for path in (broken / "checkpoints").iterdir()) == ["step-2", "step-4"]
    assert not (broken / "weights.pt").exists()
    assert kill_me.main(broken, "plain", 0) == 0
    whole, resumed = (torch.load(tmp_path / name / "weights.pt") for name in ("whole", "broken"))
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


@pytest.mark.slow
def test_sigkill_at_random_moments_equals_uninterrupted(tmp_path: Path):
    """Killed from outside after 0.1 to 0.7 seconds of steps of 0.05 seconds, again and again until it gets through."""
    assert kill_me.main(tmp_path / "whole", "slow", 0) == 0
    broken, killed, rng = tmp_path / "broken", 0, random.Random(7)
    for _ in range(20):
        child = start_child(broken, "slow", "1")
        assert child.stdout is not None
        if child.stdout.readline().strip() == b"training" and killed < 4:
            time.sleep(rng.uniform(0.1, 0.7))
            child.kill()
        ended = child.wait(timeout=120)
        child.stdout.close()
        killed += ended == -signal.SIGKILL
        if ended == 0:
            break
    assert ended == 0
    assert killed >= 2
    whole, resumed = (torch.load(tmp_path / name / "weights.pt") for name in ("whole", "broken"))
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path: Path):
    """From step 3 on no file may grow beyond 12 kB: step-4 cannot be written, step-2 is there and the run resumes."""
    broken = tmp_path / "broken"
    child = run_child(broken, "fill", "12000")
    assert child.returncode == OutsideFailure.exit_code, child.stderr
    assert "cannot write" in child.stdout
    assert "step-4" in child.stdout
    assert [path.name for path in (broken / "checkpoints").iterdir()] == ["step-2"]
    assert kill_me.main(tmp_path / "whole", "plain", 0) == 0
    assert kill_me.main(broken, "plain", 0) == 0
    whole, resumed = (torch.load(tmp_path / name / "weights.pt") for name in ("whole", "broken"))
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_no_space_for_the_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        with pytest.raises(OutsideFailure, match="No space left on device"):
            finished(tmp_path)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_two_checkpoints_are_kept_and_torn_ones_swept(tmp_path: Path):
    folder = tmp_path / "checkpoints"
    torn = folder / ".step-9.0123abcd.tmp"
    torn.mkdir(parents=True)
    (torn / WEIGHTS).write_bytes(b"half")
    assert Checkpoints(folder, keep=2).latest() is None
    train(TinyPolicy(), StepSource(), config(steps=12, save_every=1), MemoryRun(tmp_path))
    assert sorted(path.name for path in folder.iterdir()) == ["step-11", "step-12"]
    (folder / "step-9").mkdir()
    assert Checkpoints(folder, keep=2).latest() == folder / "step-12"  # by number: as text "step-9" sorts after it


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "another 'loop.seed'; got 1; expected 0"),
        ({"optim": {"clip_norm": None}}, "another 'optim.clip_norm'; got 'null'; expected 1.0"),
        (
            {"channels": ALL_CHANNELS | {"preference": {}}},
            "another 'channels.preference.weight'; got 1.0; expected 0.3",
        ),
        ({"channels": {"preference": {}}}, "'channels.cross_entropy.objective'; got 'nothing'; expected nll"),
    ],
)
def test_resume_with_another_configuration_names_the_key(changes: dict, message: str, tmp_path: Path):
    with pytest.raises(Stop):
        finished(tmp_path, stopping(4))
    with pytest.raises(ConfigError, match=message):
        finished(tmp_path, **changes)


def test_a_checkpoint_of_another_policy_is_refused(tmp_path: Path):
    finished(tmp_path)
    policy = TinyPolicy()
    policy.name = "other"
    with pytest.raises(ConfigError, match="another 'policy'; got 'other'; expected tiny"):
        train(policy, StepSource(), config(steps=STEPS, save_every=3), RunDir(tmp_path))
    policy = TinyPolicy()
    policy.model.unembed = torch.nn.Linear(16, 7, bias=False)
    with pytest.raises(DataError, match=r"weight 'unembed.weight'; got \(29, 16\); expected \(7, 16\)"):
        train(policy, StepSource(), config(steps=STEPS, save_every=3), RunDir(tmp_path))


def test_a_broken_checkpoint_is_told_and_not_skipped(tmp_path: Path):
    finished(tmp_path)
    (tmp_path / "checkpoints/step-6" / WEIGHTS).write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"broken checkpoint: .*step-6.*remove this folder"):
        finished(tmp_path)


def test_random_states_survive_json():
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    np.random.standard_normal()  # leaves a second Gaussian in numpy's state
    state = json.loads(json.dumps(random_state()))
    drawn = [(random.random(), np.random.standard_normal(), float(torch.rand(()))) for _ in range(3)]
    restore_random_state(state)
    assert drawn == [(random.random(), np.random.standard_normal(), float(torch.rand(()))) for _ in range(3)]
