"""From estimated tokens to counted ones."""

from __future__ import annotations

import pytest

from postgrad.teachers.money.rates import Rate


def rate(*pairs: tuple[float, float]) -> Rate:
    made = Rate()
    for counted, estimated in pairs:
        made.add(counted, estimated)
    return made


def test_nothing_known_is_as_estimated() -> None:
    assert not Rate().known
    assert Rate().line.of(7) == 7


def test_another_tokenizer_is_a_slope() -> None:
    line = rate((20, 10), (40, 20), (80, 40)).line
    assert (line.base, line.slope, line.spread) == (pytest.approx(0), pytest.approx(2), pytest.approx(0))


def test_what_every_call_has_is_a_base() -> None:
    """100 + 2 x: 120, 140, 180; three more calls of 70 in all are 3 * 100 + 2 * 70."""
    line = rate((120, 10), (140, 20), (180, 40)).line
    assert (line.base, line.slope) == (pytest.approx(100), pytest.approx(2))
    assert line.of(70, calls=3) == pytest.approx(440)


def test_one_length_whatever_is_asked_is_a_base_alone() -> None:
    line = rate((100, 10), (100, 20), (100, 90)).line
    assert (line.base, line.slope) == (pytest.approx(100), pytest.approx(0))


def test_two_steps_are_too_few_to_tell_and_equal_ones_say_nothing() -> None:
    assert rate((120, 10), (140, 20)).line.base == 0
    line = rate((12, 10), (12, 10), (12, 10)).line
    assert line.of(10) == pytest.approx(12)


def test_neither_part_is_below_nothing() -> None:
    """Counts that fall with the estimate: their mean. A fit with a base below 0: through 0."""
    falling = rate((30, 10), (20, 20), (10, 30)).line
    assert (falling.base, falling.slope) == (pytest.approx(20), 0.0)
    steep = rate((10, 10), (40, 20), (70, 30)).line
    assert (steep.base, steep.slope) == (0.0, pytest.approx(2))
