"""AdaLoRA's schedule: ranks fall to the target, the pull is there, a resumed run goes on the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from postgrad.core.errors import ConfigError, TrainingFault
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.run.rundir import RunDir
from postgrad.train.contracts import Companion, GradientCompanion
from postgrad.train.loop import train as run_loop
from unit.models.adapter.trained import FOREST, fresh, logits, train
from unit.train.tiny_training import StepSource, config, mixed_units

STEPS = 10


def adaptive(**options: float) -> Policy:
    return load_policy("tiny-random", adapter=AdapterConfig(variant="adalora", rank=2, options=options))


def ranks(policy: Policy) -> list[int]:
    return [int(value.count_nonzero()) for name, value in policy.model.named_parameters() if "lora_E" in name]


def test_the_ranks_fall_from_the_first_to_the_target_in_the_mean() -> None:
    """14 matrices: 3 directions each at the start (one and a half times 2), 28 in all at the end, unevenly."""
    policy = adaptive()
    assert {value.shape[0] for name, value in policy.model.named_parameters() if "lora_E" in name} == {3}
    train(policy, steps=STEPS)
    left = ranks(policy)
    assert len(left) == 14
    assert sum(left) == 28
    assert len(set(left)) > 1, "the budget goes where it is needed"


def test_without_the_schedule_it_is_not_saved(tmp_path: Path) -> None:
    policy = adaptive()
    optimizer = torch.optim.SGD([p for p in policy.model.parameters() if p.requires_grad], lr=0.1)
    policy.head(policy.hidden_TD(FOREST)).square().mean().backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    with pytest.raises(TrainingFault, match="never allocated"):
        policy.save(tmp_path / "saved")


def test_a_run_too_short_for_its_parts_is_refused() -> None:
    with pytest.raises(ConfigError, match="no step in between"):
        adaptive(warmup=0.5, final=0.5).companions(steps=4)


def test_only_adalora_has_something_to_do_around_a_step() -> None:
    assert fresh("lora").companions(steps=3) == ()
    (companion,) = adaptive().companions(steps=STEPS)
    as_companion: Companion = companion
    assert isinstance(as_companion, GradientCompanion)


def test_the_pull_is_the_gradient_of_the_distance_from_orthogonality() -> None:
    """Weight w, M matrices: w / M d|P'P - I| / dP, here against finite differences on one entry."""
    policy = adaptive(orthogonal=0.7)
    (companion,) = policy.companions(steps=STEPS)
    policy.model.double()
    companion.before_step(0)
    matrices = {name: p for name, p in policy.model.named_parameters() if "lora_A" in name or "lora_B" in name}

    def pull() -> float:
        total = 0.0
        for name, p in matrices.items():
            gram = p @ p.T if "lora_A" in name else p.T @ p
            total += float((gram - torch.eye(len(gram))).norm())
        return 0.7 * total / len(matrices)

    with torch.no_grad():
        for parameter in list(matrices.values())[:2]:
            assert parameter.grad is not None
            parameter[0, 0] += 1e-6
            higher = pull()
            parameter[0, 0] -= 2e-6
            lower = pull()
            parameter[0, 0] += 1e-6
            assert (higher - lower) / 2e-6 == pytest.approx(float(parameter.grad[0, 0]), rel=1e-5)


@pytest.mark.parametrize("at", [4, 8])
def test_a_resumed_run_ends_as_an_uninterrupted_one(at: int, tmp_path: Path) -> None:
    """Importances and masks are part of the checkpoint: bit for bit."""

    class Stop(Exception):
        pass

    def run(folder: Path, stop: int | None) -> Policy:
        def units(step: int) -> list[object]:
            if step == stop:
                raise Stop
            return list(mixed_units(step))

        policy = adaptive()
        settings = config(steps=STEPS, save_every=2)
        companions = policy.companions(steps=STEPS)
        run_loop(policy, StepSource(units), settings, RunDir(folder), companions=companions)  # type: ignore[arg-type]
        return policy

    with pytest.raises(Stop):
        run(tmp_path / "cut", at)
    resumed, whole = run(tmp_path / "cut", None), run(tmp_path / "whole", None)
    assert torch.equal(logits(resumed), logits(whole))
    assert ranks(resumed) == ranks(whole)
    assert sum(ranks(whole)) == 28


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_shortest_runs_end_at_the_target_rank(steps: int) -> None:
    """The ranks may be fixed with the first step, whose importances are then all that there are; 4 are left of 6."""
    policy = fresh("adalora")
    train(policy, steps=steps)
    kept = [sum(ranks) for ranks in policy.model.peft_config["default"].rank_pattern.values()]
    assert sum(kept) / len(kept) == pytest.approx(4, abs=0.5)
