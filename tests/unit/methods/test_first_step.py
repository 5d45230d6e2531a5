"""The first step of a preference run: the policy is its reference, to the last bit, however the run was started."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.run.config import load
from postgrad.signals.rows.records import write_records
from postgrad.verbs import train
from postgrad.verbs.train_config import TrainVerb

GOOD, BAD = Message.of("assistant", "yes, b"), Message.of("assistant", "no, a")
ROWS = [Record((Message.of("user", f"say b {k}"),), GOOD, rejected=BAD) for k in range(4)]


def lines(tmp_path: Path, name: str, **settings: Any) -> list[dict[str, Any]]:
    """Metrics of three steps."""
    records = tmp_path / "records.jsonl"
    write_records(records, ROWS)
    fields = {"name": "dpo", "records": str(records), "batch_size": 2} | settings.pop("method", {})
    config = {"model": "tiny-random", "method": fields, "loop": {"steps": 3}, "optim": {"lr": 1e-2}, "save": "adapter"}
    config |= settings
    recipe = tmp_path / f"{name}.yaml"
    recipe.write_text(json.dumps(config))
    result = train.run(load(TrainVerb, recipe, {}), tmp_path / name)
    return [json.loads(line) for line in Path(result["metrics"]).read_text().splitlines()]


def starts_at_its_reference(found: list[dict[str, Any]]) -> None:
    first, last = found[0], found[-1]
    assert first["loss"] == pytest.approx(math.log(2), rel=1e-6)
    assert first["preference/chosen"] == first["preference/rejected"] == first["preference/margin"] == 0
    assert last["preference/margin"] > 0
    assert last["loss"] < first["loss"]


def test_with_a_new_adapter(tmp_path: Path):
    starts_at_its_reference(lines(tmp_path, "new"))


def test_with_all_weights(tmp_path: Path):
    starts_at_its_reference(lines(tmp_path, "full", adapter=None, optim={"lr": 1e-3}))


def test_with_an_adapter_that_is_trained_further(tmp_path: Path):
    """The second run's reference is the first run's result, not the base model."""
    lines(tmp_path, "first")
    starts_at_its_reference(lines(tmp_path, "second", model=str(tmp_path / "first" / "artifact"), adapter=None))


@pytest.mark.parametrize("objective", ["ipo", "hinge", "apo_zero", "orpo", "simpo"])
def test_every_objective_separates_the_pairs(tmp_path: Path, objective: str):
    found = lines(tmp_path, objective, channels={"preference": {"objective": objective, "beta": 1.0}})
    assert found[-1]["preference/margin"] > found[0]["preference/margin"]


def test_kto_separates_good_from_bad(tmp_path: Path):
    found = lines(
        tmp_path, "kto", method={"name": "kto", "batch_size": 4}, channels={"preference": {"objective": "kto"}}
    )
    assert found[0]["loss"] == pytest.approx(0.5, rel=1e-6)
    assert found[0]["preference/z0"] == 0
    assert found[-1]["preference/good"] > found[-1]["preference/bad"]
