"""BFCL as an environment: the schema dialect, the draw, and that it cannot be trained on."""

from __future__ import annotations

import importlib.util

import pytest
from jsonschema import Draft202012Validator

from postgrad.core.errors import ConfigError, DataError
from postgrad.envs import load_environment, training_tasks
from postgrad.envs.bfcl import HASHES, Bfcl, json_schema


def test_the_dialect_becomes_json_schema() -> None:
    """Types are renamed at every depth; a property that is called "type" is no type."""
    dialect = {
        "type": "dict",
        "properties": {
            "type": {"type": "float", "description": "Kind.", "default": 1.5, "optional": True},
            "pair": {"type": "tuple", "items": {"type": "dict", "properties": {"any": {"type": "any"}}}},
            "unit": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["type"],
    }
    assert json_schema(dialect) == {
        "type": "object",
        "properties": {
            "type": {"type": "number", "description": "Kind.", "default": 1.5},
            "pair": {"type": "array", "items": {"type": "object", "properties": {"any": {}}}},
            "unit": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["type"],
    }


def test_all_items_are_read() -> None:
    """400 items, one tool each with a valid schema, names with dots kept, one expected call to that tool."""
    tasks = Bfcl().tasks("simple_python")
    assert len({task.id for task in tasks}) == 400
    for task in tasks:
        (tool,) = task.tools
        Draft202012Validator.check_schema(tool.parameters)
        assert [list(call) for call in task.expected] == [[tool.name]]
        assert task.reference is None
    assert tasks[1].tools[0].name == "math.factorial"
    assert tasks[0].messages[0].text.startswith("Find the area of a triangle with a base of 10 units")


def test_a_draw_is_by_seed() -> None:
    bfcl = Bfcl()
    drawn = bfcl.tasks("simple_python", 40, 1)
    assert drawn == bfcl.tasks("simple_python", 40, 1)
    assert drawn != bfcl.tasks("simple_python", 40, 2)
    assert len({task.id for task in drawn}) == 40
    with pytest.raises(ConfigError, match="got 401; expected <= 400"):
        bfcl.tasks("simple_python", 401)
    with pytest.raises(ConfigError, match="expected simple_python"):
        bfcl.tasks("live_simple")


def test_it_cannot_be_trained_on() -> None:
    bfcl = load_environment("bfcl")
    assert not bfcl.trainable
    with pytest.raises(ConfigError, match="bfcl may not be trained on; got 'split simple_python'"):
        training_tasks(bfcl, "simple_python", 5)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install --no-deps bfcl-eval==2026"):
        Bfcl().tasks("simple_python")


def test_other_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores on changed data would be compared with scores on this one."""
    monkeypatch.setitem(HASHES, "BFCL_v4_simple_python.json", "0" * 64)
    with pytest.raises(DataError, match="holds other data"):
        Bfcl().tasks("simple_python")
