from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest, build_forest
from postgrad.train.channels import build_channels
from postgrad.train.loop import train
from postgrad.train.noise import EmbeddingNoise, NoisyPolicy
from postgrad.train.step import StepRunner
from postgrad.train.workers import Workers
from unit.train.tiny_training import MemoryRun, StepSource, TinyPolicy, config, mixed_units

WIDTH = 2000


class Embeds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, WIDTH)

    def get_input_embeddings(self) -> nn.Module:
        return self.embed


def noise(forest: Forest, ids: torch.Tensor, *, seed: int = 0, batch: int = 0, alpha: float = 1.0) -> torch.Tensor:
    model = Embeds()
    with torch.no_grad():
        model.embed.weight.zero_()
    added = EmbeddingNoise(model, alpha=alpha, seed=seed)
    added.begin(batch, forest.units)
    with added.over(forest):
        return model.embed(ids).detach()


TREE = build_forest([Unit(((1, 2, 3, 4),)), Unit(((1, 2, 5),)), Unit(((6, 2, 3, 4),))])


def test_size_and_spread_by_hand():
    """Branches of 4, 3 and 4: L = 11/3. Uniform in ±alpha/√(L D), so variance alpha²/(3 L D) and mean 0."""
    values = noise(TREE, torch.from_numpy(TREE.tokens_T), alpha=5.0)
    bound = 5 / (11 / 3 * WIDTH) ** 0.5
    assert float(values.abs().max()) <= bound
    assert float(values.abs().max()) > 0.999 * bound
    assert float(values.var()) == pytest.approx(bound**2 / 3, rel=0.02)
    assert abs(float(values.mean())) < 0.02 * bound
    rows = values / values.norm(dim=1, keepdim=True)
    assert float((rows @ rows.T - torch.eye(len(rows))).abs().max()) < 0.15  # tokens are independent


def test_the_same_token_in_the_same_context_has_the_same_noise_in_a_tree_and_flat():
    """Rows of the flat form, padded to the right; the shared prefix 1 2 has the noise of the tree's."""
    tree = noise(TREE, torch.from_numpy(TREE.tokens_T)[None])[0]
    rows = torch.tensor([[1, 2, 3, 4], [1, 2, 5, 0], [6, 2, 3, 4]])
    flat = noise(TREE, rows)
    for row, paths in enumerate(TREE.paths):
        torch.testing.assert_close(flat[row, : len(paths[0])], tree[paths[0]], rtol=0, atol=0)
    assert not torch.equal(flat[0, 1], flat[2, 1])  # the same token after another one


def test_noise_is_anew_with_batch_and_seed():
    ids = torch.from_numpy(TREE.tokens_T)
    first = noise(TREE, ids)
    assert torch.equal(first, noise(TREE, ids))
    assert not torch.equal(first, noise(TREE, ids, batch=1))
    assert not torch.equal(first, noise(TREE, ids, seed=1))


def test_packing_does_not_change_gradients_under_noise():
    units = mixed_units(1, each=6, kinds=("cross_entropy",))
    gradients = []
    for budget in (1, 10_000):
        policy = TinyPolicy(dtype=torch.float64)
        policy.model.train()
        added = EmbeddingNoise(policy.model, alpha=5.0, seed=0)
        added.begin(0, units)
        runner = StepRunner(
            policy=NoisyPolicy(policy, added),
            channels=build_channels({"cross_entropy": {}})[0],
            parameters=list(policy.model.parameters()),
            workers=Workers(),
            token_budget=budget,
            autocast=False,
        )
        runner.gradients(units, by_channel=False)
        gradients.append([p.grad for p in policy.model.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-6, atol=1e-8)


def test_no_noise_outside_training(tmp_path: Path):
    """The hook is gone after the run, and evaluation never had it."""
    policy = TinyPolicy()
    settings = config(steps=2, channels={"cross_entropy": {}}, embedding_noise=5.0)
    train(policy, StepSource(lambda s: mixed_units(s, kinds=("cross_entropy",))), settings, MemoryRun(tmp_path))
    assert not policy.model.embed._forward_hooks
    forest = build_forest([Unit(((1, 2, 3),))])
    added = EmbeddingNoise(policy.model, alpha=5.0, seed=0)
    plain = policy.hidden_TD(forest)
    assert torch.equal(plain, NoisyPolicy(policy, added).hidden_TD(forest))  # the model is in evaluation mode
    policy.model.train()
    assert not torch.equal(plain, NoisyPolicy(policy, added).hidden_TD(forest))
    assert torch.equal(plain, policy.hidden_TD(forest))


def test_what_noise_cannot_serve_is_refused():
    with pytest.raises(ValueError, match=r"embedding_noise is for cross_entropy alone.*preference"):
        config(embedding_noise=5.0, channels={"cross_entropy": {}, "preference": {}})
    with pytest.raises(ConfigError, match="needs a model with an input embedding"):
        EmbeddingNoise(nn.Linear(2, 2), alpha=1.0, seed=0)
