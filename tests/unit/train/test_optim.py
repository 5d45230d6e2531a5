from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from postgrad.core.errors import ConfigError, DataError, MissingDependency
from postgrad.train import OPTIMIZERS
from postgrad.train.config import OptimConfig, TrainConfig
from postgrad.train.optim import Optimizer, build_optimizer, learning_rate
from postgrad.train.optimizer_state import OptimizerState, read_state, write_state

EVERY = sorted(OPTIMIZERS)


class Layers(nn.Module):
    """Two layers of one matrix and one vector, between an embedding and a head, named as in any transformer."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(8, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, 8, bias=False)


def named(width: int = 4) -> dict[str, nn.Parameter]:
    torch.manual_seed(0)
    return dict(Layers(width).named_parameters())


def gradients(parameters: dict[str, nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters.values():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def alone(config: OptimConfig, start: float, gradient: list[float]) -> list[float]:
    """A 1x1 matrix in a layer, stepped once for each gradient."""
    weight = nn.Parameter(torch.full((1, 1), start))
    optimizer = build_optimizer({"layers.0.w": weight}, config)
    path = []
    for g in gradient:
        weight.grad = torch.full((1, 1), g)
        optimizer.step(config.lr)
        path.append(weight.item())
    return path


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1, 1, 1, 1, 1]),
        ("linear", [0.5, 1, 1, 0.75, 0.5, 0.25]),
        ("cosine", [0.5, 1, 1, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2]),
        ("wsd", [0.5, 1, 1, 1, 2 / 3, 1 / 3]),
    ],
)
def test_schedule_by_hand(schedule: str, expected: list[float]):
    """Two warm-up steps of six: 1/2, 1, then f at 0, 1/4, 2/4, 3/4 of the rest; wsd with d = 3: 3/3, 2/3, 1/3."""
    config = OptimConfig(lr=2.0, warmup_steps=2, schedule=schedule, decay_steps=3 if schedule == "wsd" else None)
    rates = [learning_rate(step, steps=6, config=config) for step in range(6)]
    assert rates == pytest.approx([2 * f for f in expected])


def test_adamw_by_hand():
    """First step: m̂ = g, v̂ = g², so w − lr · g/|g|. Second, same g: the same again."""
    assert alone(OptimConfig(lr=0.1), 1.0, [3.0, 3.0]) == pytest.approx([0.9, 0.8])


def test_sgd_by_hand():
    """1 − 0.1·3 = 0.7. With momentum 0.5 the second step is along 0.5·3 + 1 = 2.5: 0.7 − 0.25 = 0.45."""
    assert alone(OptimConfig(name="sgd", lr=0.1), 1.0, [3.0, 1.0]) == pytest.approx([0.7, 0.6])
    momentum = OptimConfig(name="sgd", lr=0.1, settings={"momentum": 0.5})
    assert alone(momentum, 1.0, [3.0, 1.0]) == pytest.approx([0.7, 0.45])


def test_lion_by_hand():
    """β = (0.9, 0.5). Step 1: sign(0.1·3) = +, m = 1.5. Step 2, g = −10: 0.9·1.5 − 0.1·10 = 0.35, + again."""
    config = OptimConfig(name="lion", lr=0.1, settings={"betas": [0.9, 0.5]})
    assert alone(config, 1.0, [3.0, -10.0]) == pytest.approx([0.9, 0.8])


def test_adafactor_by_hand():
    """Step 1: β₂ = 1 − 1^−0.8 = 0, v = g², update ±1, RMS 1, no clipping at d = 1. Step size is
    max(eps2, RMS(w)) · min(lr, 1/√1) = 2 · 0.1: from 2 to 1.8. At w = 0 it is eps2 · lr = 0.001 · 0.1.
    """
    assert alone(OptimConfig(name="adafactor", lr=0.1), 2.0, [3.0]) == pytest.approx([1.8])
    assert alone(OptimConfig(name="adafactor", lr=0.1), 0.0, [3.0]) == pytest.approx([-1e-4])


def test_muon_orthogonalises_hidden_matrices_and_gives_the_rest_to_adamw():
    """A gradient diag(3, 1e-3) becomes near ±1 on the diagonal: both directions move alike, scaled by 0.2·√2.

    The five iterations bring singular values into [0.7, 1.2], not to 1. An embedding moves as under AdamW: by lr.
    """
    hidden, embedding = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(2, 2))
    parameters = {"layers.0.w": hidden, "embed_tokens.weight": embedding}
    optimizer = build_optimizer(parameters, OptimConfig(name="muon", lr=1.0))
    assert [type(part).__name__ for part in optimizer.parts] == ["Muon", "AdamW"]
    hidden.grad = torch.diag(torch.tensor([3.0, 0.1]))
    embedding.grad = torch.diag(torch.tensor([3.0, 0.1]))
    optimizer.step(1.0)
    moved = -hidden.diagonal() / (0.2 * math.sqrt(2))
    assert all(0.6 < value < 1.3 for value in moved.tolist())
    assert embedding.diagonal().tolist() == pytest.approx([-1, -1])


def test_galore_moves_in_a_subspace_of_its_rank():
    """Rank 2 of an 8x8 hidden matrix: the step has rank 2; the embedding's step is not projected."""
    parameters = named(8)
    optimizer = build_optimizer(parameters, OptimConfig(name="galore", lr=0.1, settings={"rank": 2, "scale": 1.0}))
    before = {name: p.detach().clone() for name, p in parameters.items()}
    gradients(parameters, 1)
    optimizer.step(0.1)
    ranks = {
        name: int(torch.linalg.matrix_rank((p - before[name]).detach(), tol=1e-4))
        for name, p in parameters.items()
        if p.ndim == 2
    }
    assert ranks == {"layers.0.weight": 2, "layers.1.weight": 2, "embed_tokens.weight": 8, "lm_head.weight": 8}


def test_8_bit_adamw_is_near_adamw_and_keeps_bytes():
    """Ten steps of 0.01 on the same gradients: a tenth of the distance travelled apart at most; state in bytes."""
    paths = []
    for name in ("adamw", "adamw8bit"):
        parameters = named(8)
        optimizer = build_optimizer(parameters, OptimConfig(name=name))
        for seed in range(10):
            gradients(parameters, seed)
            optimizer.step(0.01)
        paths.append(torch.cat([p.detach().flatten() for p in parameters.values()]))
    start = torch.cat([p.detach().flatten() for p in named(8).values()])
    assert 0 < float((paths[0] - paths[1]).norm()) < 0.1 * float((paths[0] - start).norm())
    kinds = {tensor.dtype for tensor in read_state(optimizer, parameters).tensors.values()}
    assert kinds == {torch.int8, torch.uint8, torch.float16}


def test_vectors_are_exempt_from_decay():
    """One step with zero gradient moves a weight only by lr · decay · weight: 1 − 0.1 · 0.5."""
    matrix, vector = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2))
    optimizer = build_optimizer({"m": matrix, "v": vector}, OptimConfig(lr=0.1, weight_decay=0.5))
    matrix.grad, vector.grad = torch.zeros(2, 2), torch.zeros(2)
    optimizer.step(0.1)
    assert matrix.tolist() == [[pytest.approx(0.95)] * 2] * 2
    assert vector.tolist() == [1, 1]


def scales(optimizer: Optimizer, parameters: dict[str, nn.Parameter]) -> dict[str, float]:
    by_id = {id(p): g["scale_lr"] for part in optimizer.parts for g in part.param_groups for p in g["params"]}
    return {name: by_id[id(p)] for name, p in parameters.items()}


def test_layer_decay_by_hand():
    """Two layers at 1/2: the last 1, the first 1/2, the embedding below it 1/4; norm and head are above all."""
    parameters = named()
    found = scales(build_optimizer(parameters, OptimConfig(layer_decay=0.5)), parameters)
    assert found == {
        "embed_tokens.weight": 0.25,
        "layers.0.weight": 0.5,
        "layers.0.bias": 0.5,
        "layers.1.weight": 1,
        "layers.1.bias": 1,
        "norm.weight": 1,
        "norm.bias": 1,
        "lm_head.weight": 1,
    }


def test_a_head_that_is_called_an_embedding_is_a_head():
    """GPT-NeoX: `embed_in` lies below its layers, `embed_out` is the head."""
    names = ["gpt_neox.embed_in.weight", "gpt_neox.layers.0.attention.dense.weight", "embed_out.weight"]
    parameters = {name: nn.Parameter(torch.ones(2, 2)) for name in names}
    optimizer = build_optimizer(parameters, OptimConfig(layer_decay=0.5))
    assert list(scales(optimizer, parameters).values()) == [0.5, 1, 1]


def test_lora_plus_raises_the_rate_of_b():
    names = [f"base_model.model.layers.0.q_proj.lora_{x}.default.weight" for x in "AB"]
    parameters = {name: nn.Parameter(torch.ones(2, 2)) for name in names}
    optimizer = build_optimizer(parameters, OptimConfig(lr=0.01, lora_plus_ratio=16))
    gradients(parameters, 0)
    optimizer.step(0.01)
    moved = [float((1 - p.detach()).abs().max()) for p in parameters.values()]
    assert moved == pytest.approx([0.01, 0.16])


def test_what_the_weights_cannot_serve_is_refused():
    with pytest.raises(ConfigError, match="lora_plus_ratio is for LoRA's B matrices"):
        build_optimizer(named(), OptimConfig(lora_plus_ratio=16))
    with pytest.raises(ConfigError, match="layer_decay needs weights in numbered layers"):
        build_optimizer({"w": nn.Parameter(torch.ones(2, 2))}, OptimConfig(layer_decay=0.5))


@pytest.mark.parametrize("name", EVERY)
def test_state_goes_and_comes_back_bit_for_bit(name: str):
    """Three steps, the state through names and numbers into a new optimiser, three more: as six in one go.

    The last layer has no gradient at first, so it has no state when the state is taken.
    """
    settings = {"rank": 2, "update_every": 2} if name == "galore" else {"momentum": 0.9} if name == "sgd" else {}
    config = OptimConfig(name=name, weight_decay=0.1, settings=settings, layer_decay=0.9)

    def steps(parameters: dict[str, nn.Parameter], optimizer: Optimizer, seeds: range) -> None:
        for seed in seeds:
            gradients(parameters, seed)
            if seed < 3:
                parameters["layers.1.weight"].grad = None
            optimizer.step(0.01)

    whole = named(8)
    optimizer = build_optimizer(whole, config)
    steps(whole, optimizer, range(3))
    state = read_state(optimizer, whole)
    state = OptimizerState({path: tensor.clone() for path, tensor in state.tensors.items()}, dict(state.numbers))
    middle = {key: p.detach().clone() for key, p in whole.items()}
    steps(whole, optimizer, range(3, 6))

    resumed = named(8)
    second = build_optimizer(resumed, config)
    write_state(second, resumed, state)
    with torch.no_grad():
        for key, parameter in resumed.items():
            parameter.copy_(middle[key])
    again = read_state(second, resumed)
    assert again.numbers == state.numbers
    assert all(torch.equal(again.tensors[path], state.tensors[path]) for path in state.tensors)
    steps(resumed, second, range(3, 6))
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_the_state_of_another_optimizer_is_refused():
    parameters = named()
    optimizer = build_optimizer(parameters, OptimConfig())
    gradients(parameters, 0)
    optimizer.step(0.1)
    state = read_state(optimizer, parameters)
    with pytest.raises(DataError, match="state"):
        write_state(build_optimizer(parameters, OptimConfig(name="lion")), parameters, state)


@pytest.mark.parametrize("name", ["lion", "galore", "adamw8bit"])
def test_a_missing_library_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pytorch_optimizer", None)
    with pytest.raises(MissingDependency, match=r"pip install 'postgrad\[optim\]'"):
        build_optimizer(named(), OptimConfig(name=name))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "adamW"}, "unknown optimizer.*'adamW'.*did you mean 'adamw'"),
        ({"name": "muon", "settings": {"beta": 0.9}}, "unknown key 'optim.settings.beta'.*'betas'"),
        ({"name": "lion", "settings": {"eps": 1e-8}}, "unknown key 'optim.settings.eps'"),
        ({"settings": {"betas": [0.9, 1.0]}}, "'optim.settings.betas.1'; got 1.0; expected less than 1"),
        ({"name": "sgd", "settings": {"nesterov": True}}, "nesterov needs a momentum"),
    ],
)
def test_a_mistake_in_the_optimizer_is_named(fields: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        OptimConfig.model_validate(fields)


def test_settings_are_written_out():
    assert OptimConfig(name="lion").resolved()["settings"] == {"betas": [0.9, 0.99]}


def test_schedules_that_do_not_fit_the_run_are_refused():
    with pytest.raises(ValidationError, match="warmup_steps is 5, expected at most"):
        TrainConfig.model_validate({"optim": {"warmup_steps": 5}, "loop": {"steps": 4}})
    with pytest.raises(ValidationError, match=r"warmup_steps \+ optim.decay_steps is 5, expected at most"):
        TrainConfig.model_validate(
            {"optim": {"schedule": "wsd", "warmup_steps": 2, "decay_steps": 3}, "loop": {"steps": 4}}
        )
    for fields in ({"schedule": "wsd"}, {"decay_steps": 3}):
        with pytest.raises(ValidationError, match="go together"):
            OptimConfig.model_validate(fields)


def test_a_class_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "from dataclasses import dataclass\n"
        "@dataclass(frozen=True)\n"
        "class Rprop:\n"
        "    low: float = 0.5\n"
        "    def build(self, groups):\n"
        "        sections = [g.section(g.parameters) for g in groups]\n"
        "        for s in sections: s.pop('weight_decay')\n"
        "        return [torch.optim.Rprop(sections, etas=(self.low, 1.2))]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    optimizer = build_optimizer(named(), OptimConfig(name="mine:Rprop", settings={"low": 0.4}))
    assert optimizer.parts[0].defaults["etas"] == (0.4, 1.2)
