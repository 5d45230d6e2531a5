"""DiLoCo over real processes: replicas agree, the identities hold, a killed replica costs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from postgrad.core.errors import ConfigError, OutsideFailure
from postgrad.run.rundir import RunDir
from postgrad.train.checkpoint import read_snapshot, read_tensors
from postgrad.train.config import TrainConfig
from postgrad.train.loop import train
from postgrad.train.sync.choice import seed_of_replica, sync_settings
from postgrad.train.sync.diloco import DiLoCo
from postgrad.train.sync.outer import Fragment, _common, runs
from postgrad.train.sync.replicas import Replicas
from unit.train.sync import replica
from unit.train.test_workers import free_port
from unit.train.tiny_training import StepSource, TinyPolicy, config

Weights = dict[str, Tensor]
PLAIN_SGD = {
    "name": "sgd",
    "lr": 0.1,
    "schedule": "constant",
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "clip_norm": None,
}


def start(folder: Path, k: int, spec: dict[str, Any], port: int) -> subprocess.Popen[str]:
    sync = spec["sync"] | {"name": "diloco", "replica": k, "address": f"127.0.0.1:{port}", "timeout": 60}
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    environment |= {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, replica.__file__, str(folder), json.dumps(spec | {"sync": sync})]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def replicas(folder: Path, spec: dict[str, Any], *, n: int = 2) -> list[subprocess.Popen[str]]:
    port = free_port()
    spec["sync"].setdefault("replicas", n)
    started = [start(folder / str(k), k, spec, port) for k in range(n)]
    for process in started:
        process.wait(timeout=200)
    return started


def trained(folder: Path, spec: dict[str, Any], *, n: int = 2) -> list[Weights]:
    for process in replicas(folder, spec, n=n):
        assert process.returncode == 0, process.stderr and process.stderr.read()
    return [torch.load(folder / str(k) / "weights.pt") for k in range(n)]


def same(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def farthest(a: Weights, b: Weights) -> float:
    return max(float((a[name] - b[name]).abs().max()) for name in a)


def local_steps(folder: Path, steps: int, k: int) -> Weights:
    """What replica `k` reaches from the common start without the others."""
    policy = TinyPolicy()
    source = StepSource(lambda step: replica.own_units(step, k))
    train(policy, source, config(steps=steps, channels=replica.SFT), RunDir(folder / f"alone-{k}"))
    return policy.weights()


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3])
def test_the_identity_case_is_the_mean_bit_for_bit(n: int, tmp_path: Path):
    """H = 4 of 4 steps, lr 1, no momentum: what comes out is (w_0 + ... + w_n-1) / n of replicas trained apart."""
    spec = {"sync": {"every": 4, "lr": 1.0, "momentum": 0.0}, "loop": {"steps": 4, "save_every": 1000}}
    found = trained(tmp_path, spec, n=n)
    assert all(same(found[0], other) for other in found[1:])
    apart = [local_steps(tmp_path, 4, k) for k in range(n)]
    assert farthest(apart[0], apart[1]) > 1e-3
    for name, weight in found[0].items():
        total = apart[0][name].clone()
        for other in apart[1:]:
            total += other[name]
        assert torch.equal(weight, total / n)


@pytest.mark.slow
def test_plain_sgd_at_every_step_is_data_parallel_sgd(tmp_path: Path):
    """H = 1, lr 1: the mean of w - lr g_k is w - lr (g_0 + g_1) / 2, the step on both replicas' units together.

    A loss is a mean over tokens, and both shares have twelve of them.
    """
    loop = {"steps": 5, "save_every": 1000}
    sync = {"every": 1, "lr": 1.0, "momentum": 0.0}
    found = trained(tmp_path, {"sync": sync, "loop": loop, "optim": PLAIN_SGD, "dtype": "float64"})
    policy = TinyPolicy(dtype=torch.float64)
    source = StepSource(lambda step: [unit for k in range(2) for unit in replica.own_units(step, k)])
    train(policy, source, config(channels=replica.SFT, optim=PLAIN_SGD, **loop), RunDir(tmp_path / "one"))
    assert same(*found)
    assert farthest(found[0], policy.weights()) < 1e-10
    assert farthest(found[0], TinyPolicy(dtype=torch.float64).weights()) > 1e-2


@pytest.mark.slow
def test_a_killed_replica_goes_on_from_the_last_common_checkpoint(tmp_path: Path):
    """H = 4 in two fragments, a checkpoint every 3 steps: in the middle of a round, with momentum.

    Replica 1 is killed at step 8; replica 0 waits for it at a sync, gives up and says so. Both started again end with
    the weights of a run that nothing happened to.
    """
    spec = {"sync": {"every": 4, "fragments": 2}, "loop": {"steps": 12, "save_every": 3}}
    whole = trained(tmp_path / "whole", spec)
    port = free_port()
    broken = [
        start(tmp_path / "broken" / "0", 0, spec | {"sync": spec["sync"] | {"timeout": 20}}, port),
        start(tmp_path / "broken" / "1", 1, spec | {"kill": 8, "sync": spec["sync"] | {"timeout": 20}}, port),
    ]
    for process in broken:
        process.wait(timeout=200)
    assert broken[1].returncode == -9
    assert broken[0].returncode == OutsideFailure.exit_code
    assert broken[0].stderr is not None
    assert "goes on from their last common checkpoint" in broken[0].stderr.read()
    resumed = trained(tmp_path / "broken", spec)
    assert same(whole[0], whole[1])
    assert same(resumed[0], resumed[1])
    assert same(whole[0], resumed[0])
    assert read_snapshot(tmp_path / "broken/0/checkpoints/step-12").companions["sync"] == {"rounds": 6}


@pytest.mark.slow
def test_replicas_that_differ_are_refused(tmp_path: Path):
    port = free_port()
    specs = [{"sync": {"replicas": 2, "every": h}, "loop": {"steps": 2}} for h in (1, 2)]
    processes = [start(tmp_path / str(k), k, spec, port) for k, spec in enumerate(specs)]
    for process in processes:
        process.wait(timeout=200)
        assert process.returncode == ConfigError.exit_code
        assert process.stderr is not None
        assert "replica 1 has another 'every' than the first; got 2; expected 1" in process.stderr.read()


def synced(folder: Path, sync: dict[str, Any], *, steps: int = 6, stop: int | None = None) -> TinyPolicy:
    """One replica alone, here; stops when the units of `stop` are asked for."""
    policy = TinyPolicy()

    def units(step: int) -> list:
        if step == stop:
            raise KeyboardInterrupt
        return replica.own_units(step, 0)

    settings = config(steps=steps, channels=replica.SFT, save_every=2).resolved()
    settings |= {"sync": {"name": "diloco", "replicas": 1, **sync}}
    train(policy, StepSource(units), TrainConfig.model_validate(settings), RunDir(folder))
    return policy


def test_one_replica_at_rate_one_is_training_as_ever(tmp_path: Path):
    """K = 1, lr 1, no momentum: the mean of one is itself."""
    policy = TinyPolicy()
    source = StepSource(lambda step: replica.own_units(step, 0))
    train(policy, source, config(steps=6, channels=replica.SFT, save_every=2), RunDir(tmp_path / "plain"))
    assert same(policy.weights(), synced(tmp_path / "synced", {"every": 2, "lr": 1.0, "momentum": 0.0}).weights())
    assert not same(policy.weights(), synced(tmp_path / "slower", {"every": 2, "lr": 0.5, "momentum": 0.0}).weights())


@pytest.mark.parametrize("fragments", [1, 3])
def test_resumed_in_the_middle_of_a_round_bit_for_bit(fragments: int, tmp_path: Path):
    """H = 3 with checkpoints after steps 2 and 4: between two outer steps, with a momentum."""
    sync = {"every": 3, "fragments": fragments}
    whole = synced(tmp_path / "whole", sync)
    for stop in (3, 5):
        with pytest.raises(KeyboardInterrupt):
            synced(tmp_path / "broken", sync, stop=stop)
    assert same(whole.weights(), synced(tmp_path / "broken", sync).weights())
    stored = read_tensors(tmp_path / "broken/checkpoints/step-6").of_companion("sync")
    assert stored.keys() == {f"{k}/{name}" for k in range(fragments) for name in ("outer", "momentum")}


def test_the_outer_step_by_hand():
    """θ = 2, the replica at 1, then again 1 below where it is: γ = 0.5, β = 0.8.

    Δ = 1, m = 1, θ = 2 - 0.5 (1 + 0.8) = 1.1; then Δ = 1, m = 1.8, θ = 1.1 - 0.5 (1 + 1.44) = -0.12.
    """
    weight = nn.Parameter(torch.tensor([2.0]))
    fragment = Fragment([weight], DiLoCo(replicas=1, lr=0.5, momentum=0.8))
    alone = Replicas(None, replica=0, count=1, rank=0, timeout=1)
    for expected in (1.1, -0.12):
        with torch.no_grad():
            weight -= 1
        fragment.step(alone)
        assert weight.item() == pytest.approx(expected, abs=1e-6)
        assert torch.equal(weight.detach(), fragment.outer_N)


def test_the_outer_step_is_torchs_nesterov_bit_for_bit():
    generator = torch.Generator().manual_seed(1)
    weights = [nn.Parameter(torch.randn(3, 5, generator=generator)), nn.Parameter(torch.randn(7, generator=generator))]
    theirs = [nn.Parameter(w.detach().clone()) for w in weights]
    fragment = Fragment(weights, DiLoCo(replicas=1))
    reference = torch.optim.SGD(theirs, lr=0.7, momentum=0.9, nesterov=True)
    alone = Replicas(None, replica=0, count=1, rank=0, timeout=1)
    for _ in range(4):
        with torch.no_grad():
            for ours, other in zip(weights, theirs, strict=True):
                ours += torch.randn(ours.shape, generator=generator)
                other.grad = other - ours
        fragment.step(alone)
        reference.step()
        assert all(torch.equal(ours, other) for ours, other in zip(weights, theirs, strict=True))


def test_outer_weights_are_kept_in_full_precision():
    """In bf16 next to 1 the step of 2^-7 is the smallest; sixteen outer steps of 2^-10 add up in the copy alone.

    Each time the weight is one of its own steps (2^-7) below the outer copy as it sees it, and γ is 1/8.
    """
    weight = nn.Parameter(torch.tensor([1.0], dtype=torch.bfloat16))
    fragment = Fragment([weight], DiLoCo(replicas=1, lr=1 / 8, momentum=0.0))
    assert fragment.outer_N.dtype == torch.float32
    alone = Replicas(None, replica=0, count=1, rank=0, timeout=1)
    for _ in range(3):
        with torch.no_grad():
            weight.fill_(1 - 2**-7)
        fragment.step(alone)
    assert 1 - 2**-7 < float(fragment.outer_N) < 1 - 2**-9
    assert weight.item() in (1.0, 1 - 2**-8)  # rounded to what bf16 has below 1


def test_a_fragment_moves_nothing_but_itself():
    weights = [nn.Parameter(torch.full((n,), 1.0)) for n in (3, 2, 4)]
    cut = runs(weights, 3)
    assert [len(part) for part in cut] == [1, 1, 1]
    fragments = [Fragment(part, DiLoCo(replicas=1, lr=0.5)) for part in cut]
    with torch.no_grad():
        for weight in weights:
            weight.zero_()
    fragments[1].step(Replicas(None, replica=0, count=1, rank=0, timeout=1))
    assert [float(w[0]) for w in weights] == [0.0, pytest.approx(1 - 0.5 * 1.9), 0.0]
    assert fragments[0].momentum_N is None
    assert float(fragments[0].outer_N[0]) == float(fragments[2].outer_N[0]) == 1.0


def test_runs_are_of_about_equal_size_and_never_empty():
    def sizes(numels: list[int], n: int) -> list[int]:
        cut = runs([nn.Parameter(torch.empty(k)) for k in numels], n)
        return [sum(p.numel() for p in part) for part in cut]

    assert sizes([1] * 12, 3) == [4, 4, 4]
    assert sizes([100, 1, 1], 3) == [100, 1, 1]
    assert sizes([1, 1, 100], 3) == [1, 1, 100]
    assert sizes([6, 1, 1, 1, 1, 1, 1], 2) == [6, 6]
    with pytest.raises(ConfigError, match="more than there are weights; got 3; expected at most 2"):
        sizes([1, 1], 3)


def test_fragments_take_turns():
    """H = 6 in three fragments: each every six steps, two apart; the middle one after 4 steps, then 10."""
    settings = DiLoCo(replicas=1, every=6, fragments=3)
    due = [[k for k in range(3) if settings.due(k, step)] for step in range(12)]
    assert due == [[], [0], [], [1], [], [2]] * 2


def test_the_common_checkpoint():
    assert _common([{4, 6}, {2, 4}]) == 4
    assert _common([{0}, set()]) is None
    assert _common([set(), set()]) is None
    with pytest.raises(ConfigError, match="no checkpoint in common; got 'replica 0: 4, 6; replica 1: none'"):
        _common([{4, 6}, set()])


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"name": "dilocco"}, "unknown sync; got 'dilocco'.*diloco"),
        ({}, "the sync has no name"),
        ({"name": "none", "every": 3}, "unknown key 'sync.every'"),
        ({"name": "diloco"}, "sync.replicas"),
        ({"name": "diloco", "replicas": 2}, "several replicas need an address"),
        ({"name": "diloco", "replicas": 2, "address": "here"}, "sync.address"),
        ({"name": "diloco", "replicas": 2, "replica": 2, "address": "a:1"}, "replica 2 of 2: expected 0 to 1"),
        ({"name": "diloco", "replicas": 1, "every": 5, "fragments": 2}, "every .5. must be a multiple of fragments"),
        ({"name": "diloco", "replicas": 1, "lr": -1}, "sync.lr"),
        ({"name": "diloco", "replicas": 1, "momentum": 1}, "sync.momentum"),
    ],
)
def test_bad_sections_are_told(section: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        sync_settings(section)


def test_what_replicas_cannot_do_together_is_refused():
    together = {"name": "diloco", "replicas": 2, "address": "a:1"}
    base = config(channels=replica.SFT).resolved() | {"sync": together}
    TrainConfig.model_validate(base)
    for loop, message in (({"spikes": {"threshold": 6.0}}, "loop.spikes goes back alone"), ({"keep": 1}, "loop.keep")):
        with pytest.raises(ValueError, match=message):
            TrainConfig.model_validate(base | {"loop": base["loop"] | loop})


def test_replicas_draw_other_batches():
    sections = [{"name": "diloco", "replicas": 3, "replica": k, "address": "a:1"} for k in range(3)]
    seeds = [seed_of_replica(7, section) for section in sections]
    assert seeds[0] == seed_of_replica(7, {"name": "none"}) == 7
    assert len(set(seeds)) == 3
    assert all(0 <= seed_of_replica(2**32 - 1, section) < 2**32 for section in sections)


def test_a_replica_that_does_not_come_is_named_as_an_outside_failure():
    with pytest.raises(OutsideFailure, match=r"replica 1 of 2 lost another one or waited 0\.5 s"):
        Replicas(f"127.0.0.1:{free_port()}", replica=1, count=2, rank=0, timeout=0.5)
