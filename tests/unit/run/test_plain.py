"""What a verb tells, as JSON: in one pass and through `plain` it is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy
import pytest
import torch

from postgrad.run.plain import plain, result_json

VALUES: Mapping[str, Any] = {
    "nothing": None,
    "text": {"a": "ä\n\u2028", "empty": ""},
    "numbers": [1, -2.5, 1e-7, True, 2**63],
    "not finite": [float("nan"), float("inf"), {"x": -float("inf")}],
    "numpy": [numpy.float32(0.5), numpy.int64(7), numpy.float64("nan"), numpy.bool_(True)],
    "torch": {"loss": torch.tensor(2.5), "nan": torch.tensor(float("nan"))},
    "integers beyond 64 bits": [2**70, -(2**70)],
    "a lone surrogate": "\ud800",
    "keys": {1: "one", "two": 2},
    "tuples and mappings": ((1, 2), MappingProxyType({"a": MappingProxyType({"b": 1})})),
    "empty": [[], {}, ()],
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_is_the_json_of_plain(value: Any, encoding: str) -> None:
    text = result_json(value, encoding=encoding)
    assert json.loads(text, parse_constant=pytest.fail) == plain(value)
    assert json.loads(text.encode(encoding)) == plain(value)


def test_has_the_same_spaces_by_either_way() -> None:
    assert result_json({"a": [1, {"b": "c"}]}) == '{"a": [1, {"b": "c"}]}'
    assert result_json({"a": [1, {"b": "\ud800"}]}) == '{"a": [1, {"b": "\\ud800"}]}'


def test_refuses_what_is_no_json() -> None:
    with pytest.raises(TypeError):
        result_json({"a": object()})
