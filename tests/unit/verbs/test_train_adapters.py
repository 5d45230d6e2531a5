"""`postgrad train` with adapters: what the recipe says is what is trained, saved and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import load_policy
from postgrad.run.config import load
from postgrad.signals.rows.records import write_records
from postgrad.verbs import train
from postgrad.verbs.train_config import TrainVerb

ROW = Record((Message.of("user", "say b"),), Message.of("assistant", "b"))


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRAD_THREADS", "1")


def config(folder: Path, **settings: Any) -> TrainVerb:
    write_records(folder / "rows.jsonl", [ROW] * 4)
    method = {"name": "sft", "records": str(folder / "rows.jsonl"), "batch_size": 2}
    given = {"model": "tiny-random", "method": method, "loop.steps": 4, "loop.save_every": 2, "save": "adapter"}
    return load(TrainVerb, None, given | settings)


@pytest.mark.parametrize("variant", ["dora", "adalora", "pissa", "loftq", "vera+layerdrop"])
def test_a_recipe_s_variant_is_trained_and_saved(variant: str, tmp_path: Path) -> None:
    settings = config(tmp_path, **{"adapter.variant": variant, "adapter.rank": 4})
    result = train.run(settings, tmp_path / "run")
    policy = load_policy(result["artifact"])
    assert policy.start is not None
    assert policy.start.config == settings.adapter == AdapterConfig(variant=variant, rank=4)
    told = result["adapter"]
    assert told["trained"] > 0
    assert 0 < told["realised_rank"]["least"] <= told["realised_rank"]["most"] <= 8
    layers = json.loads((tmp_path / "run" / train.GEOMETRY).read_bytes())["layers"]
    assert len(layers) == 14
    assert max(layer["norm"] for layer in layers.values()) == told["norm"]["most"]


@pytest.mark.parametrize("adapter", [None, {"variant": "full"}, {"variant": ["full", "layerdrop"]}], ids=str)
def test_without_an_adapter_there_is_no_geometry(adapter: dict[str, Any] | None, tmp_path: Path) -> None:
    result = train.run(config(tmp_path, adapter=adapter), tmp_path / "run")
    assert result["adapter"] == {}
    plain, trained = load_policy("tiny-random").network, load_policy(result["artifact"]).network
    before = dict(plain.named_parameters())
    assert not any(torch.equal(weight, before[name]) for name, weight in trained.named_parameters())


def test_conflicting_variants_stop_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'pissa' and 'loftq' exclude each other"):
        config(tmp_path, **{"adapter.variant": ["pissa", "loftq"]})
