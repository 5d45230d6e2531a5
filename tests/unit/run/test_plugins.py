"""Short names, written-out targets, entry points, and what is said when none fits."""

from __future__ import annotations

import collections
import importlib.metadata
import json

import pytest

from postgrad.core.errors import ConfigError
from postgrad.run.plugins import resolve

TABLE = {"counter": "collections:Counter", "decode": "json:JSONDecoder.decode"}


def test_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "extern"

        def load(self) -> object:
            return json.dumps

    groups = {"postgrad.thing": [Entry()]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: groups.get(group, []))
    assert resolve("thing", "counter", TABLE) is collections.Counter
    assert resolve("thing", "decode", TABLE) is json.JSONDecoder.decode
    assert resolve("thing", "json:loads", TABLE) is json.loads
    assert resolve("thing", "extern", TABLE) is json.dumps
    with pytest.raises(ConfigError, match="counter, decode, extern"):
        resolve("thing", "other", TABLE)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("countre", "did you mean 'counter'"),
        ("no_such_module:x", "no module named 'no_such_module'"),
        ("json:no_such", "no such attribute"),
    ],
)
def test_a_wrong_name_is_told(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        resolve("thing", name, TABLE)
