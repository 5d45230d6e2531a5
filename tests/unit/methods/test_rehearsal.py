"""Rehearsal: what holds a policy to what it was, beside what it learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.methods.supervised import SFT
from postgrad.models.policy import Policy, load_policy
from postgrad.signals.rows.records import write_records
from postgrad.verbs import train
from postgrad.verbs.train_config import TrainVerb

YES, NO = Message.of("assistant", "yes"), Message.of("assistant", "no")
LESSONS = [Record((Message.of("user", text),), YES) for text in ("one", "two", "three")]
KEPT = [Record((Message.of("user", text),), NO) for text in ("red", "green")]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    write_records(tmp_path / "lessons.jsonl", LESSONS)
    write_records(tmp_path / "kept.jsonl", KEPT)
    return {"records": tmp_path / "lessons.jsonl", "rehearsal": {"records": tmp_path / "kept.jsonl", "batch_size": 2}}


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def trained(files: dict[str, Any], folder: Path, **more: Any) -> list[dict[str, float]]:
    """Metrics of three steps on the tiny model, without dropout anywhere."""
    config = TrainVerb.model_validate(
        {
            "model": "tiny-random",
            "adapter": {"rank": 4, "alpha": 8},
            "method": {"name": "sft", "batch_size": 3} | files,
            "channels": {"divergence": {"teacher": {"kind": "reference"}, "beta": 0.0}},
            "optim": {"lr": 0.05, "schedule": "constant"},
            "loop": {"steps": 3},
        }
        | more
    )
    result = train.run(config, folder)
    return [json.loads(line) for line in Path(result["metrics"]).read_text().splitlines()]


def test_a_step_has_a_batch_of_each_file_and_each_feeds_its_channel(policy: Policy, files: dict[str, Any]) -> None:
    method = SFT.model_validate({"batch_size": 3} | files)
    source = method.source(policy, seed=0)
    units = source.units(0)
    items = [item for unit in units for item in unit.items]
    assert [type(item) for item in items] == [CrossEntropyItem] * 3 + [DivergenceItem] * 2
    for unit, item in zip(units[3:], items[3:], strict=True):
        assert isinstance(item, DivergenceItem)
        assert item.teacher == item.student  # the very tokens, in the very context
        action = policy.renderer.action(NO)
        assert tuple(unit.branches[0][p] for p in item.student.positions) == tuple(action)
    assert source.rows == {"used": 3, "rehearsed": 2}
    assert method.weights() == {"cross_entropy": 1.0, "divergence": 1.0}
    assert [path.name for path in method.data()] == ["lessons.jsonl", "kept.jsonl"]
    assert SFT(records=files["records"]).weights() == {"cross_entropy": 1.0}


def test_it_is_exactly_nothing_until_something_moves_and_then_what_torch_says(
    files: dict[str, Any], tmp_path: Path
) -> None:
    """At the first step the policy is its reference: 0 to the last bit. After the last, KL(reference ‖ policy) over the
    actions' tokens, by torch from the logits of the saved model and of the base, is what one more step would log.
    """
    first, *_, last = trained(files, tmp_path / "three")
    assert first["loss/divergence"] == 0
    assert last["loss/divergence"] > 1e-4
    two = tmp_path / "two"
    trained(files, two, loop={"steps": 2})
    base, after = load_policy("tiny-random"), load_policy(str(two / "artifact"))
    total, count = 0.0, 0
    for record in KEPT:
        prompt, action = base.renderer.prompt(record.messages, record.tools), base.renderer.action(record.action)
        tokens = torch.tensor([[*prompt, *action]])
        with torch.no_grad():
            q_NV, p_NV = (m.model(tokens).logits[0, len(prompt) - 1 : -1].log_softmax(-1) for m in (base, after))
        total += float(torch.nn.functional.kl_div(p_NV, q_NV, log_target=True, reduction="sum"))
        count += len(action)
    assert last["loss/divergence"] == pytest.approx(total / count, rel=1e-3)


def test_it_holds_the_policy_where_it_was(files: dict[str, Any], tmp_path: Path) -> None:
    """Same lessons, same rate: with a weight of 30 the policy has moved less on the rehearsed rows than with 0.001."""
    heavy, light = (
        trained(
            files | {"rehearsal": files["rehearsal"] | {"weight": weight}},
            tmp_path / str(weight),
            optim={"lr": 0.01, "schedule": "constant"},
            loop={"steps": 12},
        )[-1]
        for weight in (30.0, 0.001)
    )
    assert heavy["loss/divergence"] < 0.5 * light["loss/divergence"]


def test_a_live_teacher_is_refused(files: dict[str, Any]) -> None:
    config = TrainVerb.model_validate({"model": "tiny-random", "method": {"name": "sft"} | files})
    with pytest.raises(ConfigError, match="a live teacher in the student's own context is the student"):
        train.plan(config)


def test_a_file_with_nothing_to_rehearse_is_an_error(policy: Policy, files: dict[str, Any]) -> None:
    write_records(files["rehearsal"]["records"], [Record((Message.of("user", "a"),), YES, rejected=NO)])
    with pytest.raises(DataError, match="can be rehearsed"):
        SFT.model_validate(files).source(policy, seed=0)
