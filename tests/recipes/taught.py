"""What makes the recipes of preferences and distillation small: a teacher that differs, rows that it was logged on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from postgrad.core.message import Message
from postgrad.core.record import Record, SoftTargets
from postgrad.models.policy import load_policy
from postgrad.signals.rows.records import write_records

OBJECTIVES = (
    *("apo-down", "apo-zero", "cdpo", "focused", "hinge", "ipo"),
    *("kto", "length-normalised", "orpo", "precomputed", "robust", "simpo"),
)
TAUGHT: dict[str, set[str]] = {
    **{f"preference/{name}": {"preference"} for name in OBJECTIVES},
    "distillation/soft": {"divergence", "cross_entropy"},
    "distillation/logged": {"divergence", "cross_entropy"},
    "distillation/taid": {"divergence"},
    "distillation/gkd": {"divergence"},
    "opsd": {"divergence"},
    "sdpo-fresh": {"divergence"},
}


def taught_settings(tmp_path: Path, recipe: str) -> dict[str, Any]:
    """Overrides of a recipe of `TAUGHT`."""
    small: dict[str, Any] = {"model": "tiny-random", "loop.steps": 2, "adapter.last_layers": 1}
    if recipe in ("opsd", "sdpo-fresh"):
        coin = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 4, "max_new_tokens": 6}
        return small | {f"method.rollouts.{name}": value for name, value in coin.items()}
    records = tmp_path / "records.jsonl"
    write_records(records, rows())
    small |= {"method.records": str(records), "method.batch_size": 2}
    if recipe.startswith("distillation/") and recipe != "distillation/logged":
        small["channels.divergence.teacher.model"] = str(teacher(tmp_path / "teacher"))
    return small | ({"method.max_new_tokens": 6} if recipe == "distillation/gkd" else {})


def rows() -> list[Record]:
    """Two pairs and a row with a logged teacher, which gives the two tokens of "b" 0.9 each."""
    renderer = load_policy("tiny-random").renderer
    good, bad = Message.of("assistant", "b"), Message.of("assistant", "a")
    tokens = tuple(renderer.action(good))
    logprob, tail = (math.log(0.9),), math.log(0.1)
    soft = SoftTargets(
        "teacher", "tiny-random", tokens, tuple((t,) for t in tokens), (logprob,) * len(tokens), (tail,) * len(tokens)
    )
    asks = [(Message.of("user", text),) for text in ("say b", "please say b", "b")]
    return [Record(asks[0], good, rejected=bad), Record(asks[1], good, rejected=bad), Record(asks[2], good, soft=soft)]


def teacher(folder: Path) -> Path:
    """A model that is not the student, with the student's tokenizer."""
    policy = load_policy("tiny-random")
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    policy.save_merged(folder)
    return folder
