from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

from postgrad.core.annotation import (
    CrossEntropyItem,
    DivergenceItem,
    JudgedItem,
    LoggedTeacher,
    PolicyGradientItem,
    PreferenceItem,
    Span,
    Unit,
)
from postgrad.core.errors import DataError
from postgrad.train.buffer import Buffered
from postgrad.train.config import ReuseConfig
from postgrad.train.unit_codec import decode_unit, encode_unit
from unit.train.tiny_training import StepSource


def numbered(step: int) -> list[Unit]:
    """Seven units that can be told apart by their tokens."""
    return [Unit(((100 * step + k,),)) for k in range(7)]


def dealt(source: Buffered, steps: range) -> list[list[int]]:
    return [[unit.branches[0][0] for unit in source.units(step)] for step in steps]


def test_three_parts_twice_use_every_unit_twice():
    """Two passes of three parts: seven units as 3 + 2 + 2, each once a pass, in another deal; then the source again."""
    inner = StepSource(numbered)
    source = Buffered(inner, ReuseConfig(parts=3, passes=2), seed=0)
    parts = dealt(source, range(6))
    assert [len(part) for part in parts] == [3, 2, 2] * 2
    assert Counter(token for part in parts for token in part) == dict.fromkeys(range(7), 2)
    assert parts[:3] != parts[3:]
    assert inner.asked == 1
    assert dealt(source, range(6, 7))[0][0] >= 100
    assert inner.asked == 2


def test_a_batch_that_was_left_out_does_not_empty_the_buffer():
    """After a spike the first part of a round may be skipped: the round is asked for all the same."""
    source = Buffered(StepSource(numbered), ReuseConfig(parts=3), seed=0)
    assert dealt(source, range(4, 5))[0][0] >= 100


def test_state_in_the_middle_of_a_buffer_goes_through_json():
    first = Buffered(StepSource(numbered), ReuseConfig(parts=3, passes=2), seed=0)
    dealt(first, range(2))
    state = json.loads(json.dumps(first.state()))
    broken = StepSource(lambda step: pytest.fail("the buffer is sampled again"))
    second = Buffered(broken, ReuseConfig(parts=3, passes=2), seed=0)
    second.restore(state)
    assert dealt(first, range(2, 6)) == dealt(second, range(2, 6))
    assert broken.asked == 1


def arrays(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_every_item_survives_bit_for_bit():
    span, other = Span(0, (1, 2)), Span(1, (1, 2))
    odd = arrays(2)
    odd[0] = math.nan
    items = (
        CrossEntropyItem(span, 0.1),
        PolicyGradientItem(span, arrays(2), odd, max_length=4, old_T=arrays(2), length=3),
        PolicyGradientItem(span, -0.3, odd, max_length=4),
        DivergenceItem(span, LoggedTeacher(np.array([[1, -1], [2, 3]]), arrays(2, 2), arrays(2))),
        DivergenceItem(span, other, behaviour_T=arrays(2)),
        PreferenceItem(span, other, reference=(arrays(2), arrays(2))),
        JudgedItem((span,), (other,), (span,), weights=(0.5, 2.0)),
    )
    unit = Unit(((1, 2, 3), (1, 4, 5)), items)
    again = decode_unit(json.loads(json.dumps(encode_unit(unit))))
    assert encode_unit(again) == encode_unit(unit)
    assert [type(item) for item in again.items] == [type(item) for item in items]
    assert again.branches == unit.branches
    assert again.items[1].behaviour_T.tobytes() == odd.tobytes()
    assert again.items[3].teacher.ids_NK.dtype == np.int64


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(DataError, match="set in an item cannot be kept"):
        encode_unit(Unit(((1,),), (frozenset(),)))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"unknown class.*'os:nothing'"):
        decode_unit({"class": "os:nothing"})
    with pytest.raises(DataError, match="no dataclass"):
        decode_unit({"class": "os:system"})
