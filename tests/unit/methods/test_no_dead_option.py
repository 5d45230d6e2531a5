"""Every number of every method changes what is trained on, or is refused where it would do nothing.

`CASES` has the settings in which a field's other value must lead to other units (branches, items, their numbers) or
other channel weights within two steps. A field without a case fails the first test. The rollouts and the credit of
`composer` are swept in `test_credit`, an evolution strategy in `test_evolution`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.core.task import Grade
from postgrad.methods import METHODS
from postgrad.models.policy import Policy, load_policy
from postgrad.run.plugins import resolve
from postgrad.signals.rows.records import write_records
from recipes.coin import Coin

COIN = {"environment": "recipes.coin:Coin", "tasks": 8, "prompts": 3, "max_new_tokens": 4}
ATTEMPTS = {"rollouts": COIN | {"group_size": 2}, "hints": ["feedback", "template", "reference"]}
GROUPED = {"rollouts": COIN, "beta": 0.5, "replay": {"batch_size": 2}}
HINTED = {"rollouts": COIN, "alpha": 0.5, "replay": {"hint_rows": 1}}
REHEARSED = {"rehearsal": {"batch_size": 3}}
BRIEF = {"max_new_tokens": 6}
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    **{
        f"{name}.{field}": (BRIEF if name == "gkd" else {}, value)
        for name in ("sft", "dpo", "kto", "sdpo", "distillation", "gkd")
        for field, value in (("batch_size", 2), ("max_length", 60 if name == "sdpo" else 40))
    },
    "sft.rehearsal.batch_size": (REHEARSED, 2),
    "sft.rehearsal.weight": (REHEARSED, 0.5),
    "cpt.length": ({"overlap": 5}, 20),
    "cpt.overlap": ({"length": 40, "overlap": 5}, 7),
    "cpt.batch_size": ({}, 2),
    **{
        f"{name}.{field}": (ATTEMPTS, value)
        for name in ("sdpo_fresh", "opsd")
        for field, value in (
            ("rollouts.tasks", 4),
            ("rollouts.prompts", 2),
            ("rollouts.group_size", 3),
            ("rollouts.max_new_tokens", 3),
            ("max_hinted", 20),
        )
    },
    **{f"{name}.success": (ATTEMPTS | {"teach": "failed", "success": 1.0}, 0.4) for name in ("sdpo_fresh", "opsd")},
    "distillation.alpha": ({}, 0.5),
    "gkd.alpha": (BRIEF, 0.5),
    "gkd.on_policy": (BRIEF, 1.0),
    "gkd.max_new_tokens": (BRIEF | {"on_policy": 1.0}, 3),
    "composer.alpha": (HINTED, 0.7),
    "composer.beta": (GROUPED, 0.7),
    "composer.replay.batch_size": (GROUPED, 1),
    "composer.replay.max_length": (GROUPED, 40),
    "composer.replay.hint_rows": (HINTED, 3),
}
ELSEWHERE = ("composer.rollouts.", "composer.hints", "es.")
ROWS = [
    Record((Message.of("user", f"{name} {'long ' * n}"),), Message.of("assistant", "yes"), **more)
    for n, name in enumerate(("one", "two", "three", "four"), 1)
    for more in ({}, {"rejected": Message.of("assistant", "no")}, {"hint": f"Say yes. {'really ' * n}"})
]


def numeric(Model: type[BaseModel], prefix: str) -> Iterator[str]:
    """Fields that hold a number, sections inside included."""
    for name, field in Model.model_fields.items():
        kinds = list(leaves(field.annotation))
        inner = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
        if inner is not None:
            yield from numeric(inner, f"{prefix}{name}.")
        elif any(kind in (int, float) for kind in kinds):
            yield prefix + name


def leaves(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from leaves(part)


def test_every_number_has_a_case() -> None:
    found = {field for name in METHODS for field in numeric(resolve("method", name, METHODS), f"{name}.")}
    assert {field for field in found if not field.startswith(ELSEWHERE)} == set(CASES)


@pytest.fixture(scope="module")
def policy() -> Policy:
    policy = load_policy("tiny-random")
    policy.freeze_reference()  # as training does where a channel asks for one
    return policy


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("rows")
    write_records(folder / "records.jsonl", ROWS)
    (folder / "text.txt").write_text("Tyger Tyger, burning bright, in the forests of the night. " * 3)
    return {"records": folder / "records.jsonl", "paths": [folder / "text.txt"]}


def told(policy: Policy, name: str, settings: dict[str, Any], files: dict[str, Any]) -> str:
    """Everything of a method that training can see: the weights of its channels and the units of two steps."""
    kind = resolve("method", name, METHODS)
    given = {key: value for key, value in files.items() if key in kind.model_fields}
    for section in {"replay", "rehearsal"} & settings.keys():
        settings = settings | {section: {"records": files["records"]} | settings[section]}
    method = kind.model_validate(given | settings)
    source = method.source(policy, seed=3)
    units = [unit for step in range(2) for unit in source.units(step)]
    return str((method.weights(), [(u.branches, [(type(i), vars(i)) for i in u.items]) for u in units]))


@pytest.fixture(autouse=True)
def some_half_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grades of 0, 1/2 and 1 by what was said, so that a threshold has something to tell apart."""
    monkeypatch.setattr(Coin, "grade", lambda self, task, message: Grade(sum(map(ord, message.text)) % 3 / 2))


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    """What a method was told with the settings that several fields start from; measured twice the first time."""
    return {}


@pytest.mark.parametrize("field", CASES)
def test_a_number_changes_what_is_trained_on(
    field: str, policy: Policy, files: dict[str, Any], known: dict[str, str]
) -> None:
    settings, value = CASES[field]
    name, _, path = field.partition(".")
    section, _, inner = path.rpartition(".")
    changed = settings | ({section: settings[section] | {inner: value}} if section else {path: value})
    key = f"{name} {settings}"
    if key not in known:
        known[key] = told(policy, name, settings, files)
        assert known[key] == told(policy, name, settings, files), "the case does not measure the field"
    assert known[key] != told(policy, name, changed, files)
