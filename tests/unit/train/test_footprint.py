"""The calculator against what is really kept: by autograd, by optimisers, and by a process at its peak."""

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
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import build_forest
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.models.skeleton import pass_cost, skeleton
from postgrad.models.tiny import byte_tokenizer
from postgrad.train import OPTIMIZERS
from postgrad.train.config import OptimConfig, TrainConfig
from postgrad.train.footprint import KEPT, footprint, optimizer_bytes
from postgrad.train.groups import make_groups
from postgrad.train.optim import build_optimizer
from postgrad.train.optimizer_state import read_state
from unit.train import measured


def config(**sections: Any) -> TrainConfig:
    return TrainConfig.model_validate({"channels": {"cross_entropy": {}}} | sections)


def kept_for_real(policy: Policy, tokens: int) -> int:
    """Bytes that autograd keeps of a pass over a chain of tokens, weights and buffers left out."""
    seen = {t.untyped_storage().data_ptr() for t in (*policy.model.parameters(), *policy.model.buffers())}
    total = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal total
        if tensor.untyped_storage().data_ptr() not in seen:
            seen.add(tensor.untyped_storage().data_ptr())
            total += tensor.untyped_storage().nbytes()
        return tensor

    forest = build_forest([Unit((tuple(3 + k % 90 for k in range(tokens)),))])
    policy.model.train()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        hidden_TD = policy.hidden_TD(forest)
    hidden_TD.sum().backward()  # keeps the graph, and so every address, until here
    return total


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("tokens", [64, 300])
def test_activations_are_what_autograd_keeps(rank: int | None, tokens: int):
    adapter = AdapterConfig(rank=rank) if rank else None
    cost = pass_cost(skeleton("tiny-random", adapter), tokens)
    assert cost.kept == pytest.approx(kept_for_real(load_policy("tiny-random", adapter=adapter), tokens), rel=0.03)


def test_recomputed_layers_keep_their_inputs():
    """Two layers of width 64 and 300 tokens: 2 · 64 · 300 floats, and what is before, after and between layers.

    The forward pass runs again but for each layer's last product (64 · 128 weights), whose result nobody needs.
    """
    bones = skeleton("tiny-random", None)
    plain = pass_cost(bones, 300)
    again = pass_cost(skeleton("tiny-random", None), 300, checkpoint_every=1)
    assert 2 * 64 * 300 * 4 <= again.kept < plain.kept / 2
    assert again.flops == plain.flops + plain.forward - 2 * (2 * 300 * 64 * 128)
    assert again.forward == plain.forward


def test_operations_by_hand():
    """tiny-random: two layers of width 64 with 4 heads of 16 and 2 of keys, MLP 128; T = 100 tokens.

    A layer's products have 64·64 (q) + 2·64·32 (k, v) + 64·64 (o) + 3·64·128 = 36,864 weights: 2 a token forward, so
    2·2·36,864·100 = 14,745,600, and attention over half of all pairs 2·T²·64 a layer = 2,560,000. Backward: twice the
    products and 10/4 of attention.
    """
    cost = pass_cost(skeleton("tiny-random", None), 100)
    assert cost.forward == 14_745_600 + 2_560_000
    assert cost.flops == 3 * 14_745_600 + 2_560_000 * 14 // 4


def test_operations_are_those_that_are_done():
    """Products of a real pass, counted by torch as it runs; attention apart, whose kernels it counts in other ways."""
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=4))
    forest = build_forest([Unit((tuple(range(3, 103)),))])
    policy.model.train()
    with FlopCounterMode(display=False) as counter:
        hidden_TD = policy.hidden_TD(forest)
        torch.autograd.backward([hidden_TD], [torch.ones_like(hidden_TD)])
    products = {"mm", "addmm", "bmm"}
    counted = counter.get_flop_counts()["Global"]
    done = sum(flops for name, flops in counted.items() if str(name).split(".")[-1] in products)
    cost = pass_cost(skeleton("tiny-random", AdapterConfig(rank=4)), 100)
    assert cost.flops - 2_560_000 * 14 // 4 == done


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_optimiser_states_are_what_they_keep(name: str):
    """One step of the real one, every tensor of its state; step counts (a number a weight) left out."""
    assert KEPT.keys() == OPTIMIZERS.keys()
    model = nn.Module()
    model.layers = nn.ModuleList([nn.Linear(64, 96), nn.Linear(32, 160, bias=False)])
    model.embed_tokens = nn.Embedding(50, 64)
    settings = {"galore": {"rank": 16}, "sgd": {"momentum": 0.9}}.get(name, {})
    optim = OptimConfig.model_validate({"name": name, "settings": settings})
    parameters = dict(model.named_parameters())
    for parameter in parameters.values():
        parameter.grad = torch.randn_like(parameter)
    optimizer = build_optimizer(parameters, optim)
    optimizer.step(1e-3)
    tensors = read_state(optimizer, parameters).tensors
    kept = sum(tensor.nbytes for path, tensor in tensors.items() if tensor.numel() > 1)
    assert optimizer_bytes(make_groups(parameters, optim), name, optim.settings) == pytest.approx(kept, rel=0.02)


def test_the_parts_by_hand():
    """All weights of tiny-random, n of them: 4n for weights, gradients and the reference each, 8n for AdamW."""
    n = sum(p.numel() for p in load_policy("tiny-random").model.parameters())
    found = footprint("tiny-random", None, config(channels={"preference": {}}))
    assert (found.parameters, found.trained) == (n, n)
    assert (found.weights, found.gradients, found.optimizer, found.copies) == (4 * n, 4 * n, 8 * n, 4 * n)
    assert footprint("tiny-random", None, config()).copies == 0
    adapted = footprint("tiny-random", AdapterConfig(rank=2), config(channels={"preference": {}}))
    assert adapted.copies == 0
    assert adapted.gradients == 4 * adapted.trained < found.gradients / 5


def test_split_weights_are_shared_out():
    """The embedding of 259 · 64 and the last norm stay whole; layers are halved over two workers."""
    whole = footprint("tiny-random", None, config())
    half = footprint("tiny-random", None, config(memory={"shard": True}), workers=2)
    kept = 4 * (259 * 64 + 64)
    assert half.weights == pytest.approx(kept + (whole.weights - kept) / 2, abs=8)


def test_an_optimiser_of_ones_own_is_unknown():
    with pytest.raises(ConfigError, match="the memory of this optimiser is not known; got 'mine:Own'"):
        optimizer_bytes([], "mine:Own", {})


def mid_model(folder: Path) -> Path:
    """29 million weights: 8 layers of width 512, a vocabulary of 8,192."""
    sizes = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8, "vocab_size": 8192}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 4096}
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**sizes, **heads, tie_word_embeddings=True)).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


PEAKS: dict[str, dict[str, Any]] = {
    "all weights": {},
    "layers again": {"memory": {"checkpoint_every": 1}},
    "adapter": {"adapter": 16},
    "8 bits": {"optim": "adamw8bit"},
    "preference, frozen reference": {"preference": True},
}


def peak(folder: Path, spec: dict[str, Any]) -> dict[str, Any]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"}
    environment["MALLOC_MMAP_THRESHOLD_"] = "65536"  # freed buffers go back at once: docs/scaling.md
    command = [sys.executable, measured.__file__, str(folder), json.dumps(spec)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", PEAKS)
def test_the_peak_of_a_process_is_the_total(name: str, tmp_path: Path):
    """A model of 29 million weights, forests of 1,024 tokens; the kernel's high-water mark within a fifth."""
    spec = {"model": str(mid_model(tmp_path / "model")), "token_budget": 1024, **PEAKS[name]}
    found = peak(tmp_path / "run", spec)
    assert found["measured"] == pytest.approx(found["total"], rel=0.2), found
