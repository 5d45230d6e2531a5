from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from postgrad.core.annotation import PolicyGradientItem, Unit
from postgrad.core.errors import ConfigError, DeadChannel, TrainingFault
from postgrad.train.config import TrainConfig
from postgrad.train.loop import TrainResult, train
from unit.train.tiny_training import (
    ALL_CHANNELS,
    KINDS,
    MemoryRun,
    StepSource,
    TinyPolicy,
    config,
    mixed_units,
)


def run(
    folder: Path,
    settings: TrainConfig,
    make: Callable[[int], list[Unit]] = mixed_units,
    *,
    policy: TinyPolicy | None = None,
) -> tuple[TrainResult, MemoryRun]:
    memory = MemoryRun(folder)
    return train(policy or TinyPolicy(), StepSource(make), settings, memory), memory


def without_contrast(step: int) -> list[Unit]:
    """Policy gradient of groups whose rewards are all equal: every advantage is 0."""
    return [
        replace(unit, items=(replace(item, advantage=0.0),)) if isinstance(item, PolicyGradientItem) else unit
        for unit in mixed_units(step)
        for item in unit.items
    ]


def test_every_channel_learns_its_own_units(tmp_path: Path):
    """Seven steps on the same units: each channel's loss alone falls by a tenth."""
    for kind in KINDS:
        units = mixed_units(7, kinds=(kind,))
        settings = config(steps=7, channels={kind: {}}, optim={"schedule": "constant"})
        _, memory = run(tmp_path / kind, settings, lambda step, units=units: units)
        losses = [line[f"loss/{kind}"] for line in memory.lines]
        assert losses[-1] < losses[0] - 0.1 * abs(losses[0]), kind


def test_metrics_and_result(tmp_path: Path):
    result, memory = run(tmp_path, config(steps=3))
    assert [line["step"] for line in memory.lines] == [0, 1, 2]
    for line in memory.lines:
        assert line["loss"] == pytest.approx(sum(s["weight"] * line[f"loss/{k}"] for k, s in ALL_CHANNELS.items()))
        assert sum(line[f"gradient_share/{kind}"] for kind in KINDS) == pytest.approx(1)
        assert line["gradient_norm"] > 0
    assert {key for key in memory.lines[0] if key.startswith("weight_gradient_norm/")} == {
        f"weight_gradient_norm/{kind}" for kind in KINDS
    }
    assert result.steps == 3
    assert result.tokens == sum(line["tokens"] for line in memory.lines)
    assert result.losses == {kind: memory.lines[-1][f"loss/{kind}"] for kind in KINDS}


def test_token_budget_changes_no_weight(tmp_path: Path):
    """In fp64, because AdamW turns a gradient that is 0 but for rounding into a step of full size."""
    weights = []
    for budget in (1, 40, 10_000):
        policy = TinyPolicy(dtype=torch.float64)
        run(tmp_path / str(budget), config(steps=3, token_budget=budget), policy=policy)
        weights.append(policy.weights())
    for other in weights[1:]:
        torch.testing.assert_close(weights[0], other, rtol=0, atol=1e-7)


def test_clipping_bounds_the_step(tmp_path: Path):
    """The logged norm is the one before clipping. With eps = 1 a step is at most lr · g: 0.005 · 1e-6 when clipped."""
    weights, plain = [], {"settings": {"eps": 1.0}, "weight_decay": 0.0, "warmup_steps": 0}
    for clip in (None, 1e-6):
        policy = TinyPolicy()
        settings = config(steps=1, channels={"cross_entropy": {}}, optim={"clip_norm": clip} | plain)
        _, memory = run(tmp_path / str(clip), settings, lambda s: mixed_units(s, kinds=KINDS[:1]), policy=policy)
        assert memory.lines[0]["gradient_norm"] > 0.1
        weights.append(policy.weights())
    start = TinyPolicy().weights()
    moved = [max(float((w[name] - start[name]).abs().max()) for name in w) for w in weights]
    assert moved[0] > 1e-4
    assert moved[1] < 1e-7


def test_bfloat16_autocast_is_near_and_not_equal(tmp_path: Path):
    losses = [run(tmp_path / dtype, config(steps=1, dtype=dtype))[0].losses for dtype in ("float32", "bfloat16")]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], abs=0.05)


def test_a_channel_that_never_has_items_stops_the_run(tmp_path: Path):
    with pytest.raises(DeadChannel, match="channel 'divergence': nothing to train on for 2 steps in a row: no items"):
        run(tmp_path, config(steps=5, patience=2), lambda step: mixed_units(step, kinds=KINDS[:2]))
    with pytest.raises(DeadChannel, match="channel 'divergence': no gradient in any of the 3 steps: no items in 3"):
        run(tmp_path / "short", config(), lambda step: mixed_units(step, kinds=KINDS[:2]))


def test_a_channel_without_items_at_first_is_measured_when_it_gets_some(tmp_path: Path):
    """Divergence has items from step 2 on: its reach is checked there, and only there is it done channel by channel."""
    _, memory = run(tmp_path, config(steps=4), lambda step: mixed_units(step, kinds=KINDS if step > 1 else KINDS[:2]))
    measured = [sorted(k for k in line if k.startswith("weight_gradient_norm/divergence")) for line in memory.lines]
    assert [bool(names) for names in measured] == [True, False, True, False]
    assert memory.lines[0]["weight_gradient_norm/divergence"] == 0
    assert memory.lines[2]["weight_gradient_norm/divergence"] > 0


def test_a_later_first_contact_must_reach_a_weight_too(tmp_path: Path):
    """Cross-entropy alone can train the head; what the policy gradient has to say is cut off below."""
    policy = TinyPolicy()
    policy.model.requires_grad_(False)
    policy.model.register_parameter("unused", torch.nn.Parameter(torch.ones(2)))
    with pytest.raises(DeadChannel, match="'cross_entropy': its gradient reaches no trainable weight"):
        run(tmp_path, config(), lambda step: mixed_units(step) if step else [], policy=policy)


def test_equal_rewards_stop_the_run_after_patience_and_say_what_to_do(tmp_path: Path):
    channels = {**ALL_CHANNELS, "policy_gradient": {}}
    memory = MemoryRun(tmp_path)
    with pytest.raises(DeadChannel, match=r"'policy_gradient': .*4 steps.*zero gradient in 4; rewards were equal"):
        train(TinyPolicy(), StepSource(without_contrast), config(steps=9, patience=4, channels=channels), memory)
    assert len(memory.lines) == 3


def test_a_few_steps_without_contrast_are_legitimate(tmp_path: Path):
    channels = {**ALL_CHANNELS, "policy_gradient": {}}
    make = lambda step: mixed_units(step) if step == 3 else without_contrast(step)  # noqa: E731
    run(tmp_path, config(steps=5, patience=4, channels=channels), make)


def test_a_short_run_without_any_contrast_does_not_pass(tmp_path: Path):
    channels = {**ALL_CHANNELS, "policy_gradient": {}}
    with pytest.raises(DeadChannel, match="'policy_gradient': no gradient in any of the 2 steps"):
        run(tmp_path, config(steps=2, channels=channels), without_contrast)


def test_a_head_that_is_cut_off_is_found_in_the_first_step(tmp_path: Path):
    """Only weights that no gradient reaches are trainable."""
    policy = TinyPolicy()
    policy.model.requires_grad_(False)
    policy.model.register_parameter("unused", torch.nn.Parameter(torch.ones(2)))
    with pytest.raises(DeadChannel, match="'cross_entropy': its gradient reaches no trainable weight"):
        run(tmp_path, config(), policy=policy)


def test_training_the_head_alone_works(tmp_path: Path):
    """No gradient flows below the hidden states, and none is needed."""
    policy = TinyPolicy()
    policy.model.requires_grad_(False)
    policy.model.unembed.requires_grad_(True)
    before = policy.weights()
    run(tmp_path, config(), policy=policy)
    moved = {name for name, weight in policy.weights().items() if not torch.equal(before[name], weight)}
    assert moved == {"unembed.weight"}


def test_nothing_trainable_is_a_fault(tmp_path: Path):
    policy = TinyPolicy()
    policy.model.requires_grad_(False)
    with pytest.raises(TrainingFault, match="no weight that requires a gradient"):
        run(tmp_path, config(), policy=policy)


def test_a_loss_that_is_no_number_names_the_channel_and_saves_nothing(tmp_path: Path):
    policy = TinyPolicy()
    with torch.no_grad():
        policy.model.unembed.weight[3] = torch.nan
    with pytest.raises(TrainingFault, match="loss of channel 'cross_entropy' is nan"):
        run(tmp_path, config(), policy=policy)
    assert not (tmp_path / "checkpoints").exists()


def test_a_gradient_that_overflows_below_the_hidden_states_moves_no_weight(tmp_path: Path):
    """Finite at the hidden states, infinite at the embeddings, in the second step; clipping would make all NaN."""
    policy = TinyPolicy()
    passes: list[int] = []

    def overflow(gradient: torch.Tensor) -> torch.Tensor:
        passes.append(1)
        return gradient if len(passes) <= len(KINDS) else gradient * torch.inf

    policy.model.embed.weight.register_hook(overflow)
    with pytest.raises(TrainingFault, match=r"step 1: the norm of the whole gradient is (inf|nan)"):
        run(tmp_path, config(steps=3, save_every=1), policy=policy)
    assert all(torch.isfinite(weight).all() for weight in policy.weights().values())
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-1"]


def test_items_that_no_channel_reads_are_an_error(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"items for channel 'policy_gradient' .* but no weight"):
        run(tmp_path, config(channels={"cross_entropy": {}}))


def test_dropout_is_on_in_training_and_off_while_the_source_samples(tmp_path: Path):
    policy = TinyPolicy(dropout=0.5)
    seen = []

    def units(step: int) -> list[Unit]:
        seen.append(policy.model.training)
        return mixed_units(step)

    _, memory = run(tmp_path, config(steps=2), units, policy=policy)
    assert seen == [False, False]
    assert memory.lines[0]["policy_gradient/reference_kl"] > 0  # dropout moves the policy off its reference
    assert not policy.model.training
