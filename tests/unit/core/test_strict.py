"""No type is guessed: what pydantic would make a number or a yes/no of is refused, wherever it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from postgrad.core.strict import Strict, built


class Inner(Strict):
    # Names that are also words of pydantic's schemas.
    default: float = 1.0
    type: int = 2
    metadata: bool = False


class Section(Strict):
    number: float = 0.5
    count: Annotated[int, Field(ge=1)] = 1
    flag: bool = False
    maybe: int | None = None
    either: float | Literal["auto"] = "auto"
    several: tuple[float, ...] = ()
    by_name: dict[str, float] = Field(default_factory=dict)
    inner: Inner = Inner()
    inners: dict[str, Inner] = Field(default_factory=dict)
    path: Path | None = None
    anything: Any = None


@dataclass(frozen=True)
class Plugin:
    number: float = 0.5
    flag: bool = False
    pair: tuple[float, float] = (0.0, 1.0)
    inner: Inner = field(default_factory=Inner)


REFUSED: list[dict[str, Any]] = [
    {"number": True},
    {"number": "0.5"},
    {"number": b"1"},
    {"number": float("inf")},
    {"number": float("nan")},
    {"count": True},
    {"count": "3"},
    {"count": 2.5},
    {"count": 0},
    {"flag": 1},
    {"flag": 0.0},
    {"flag": "yes"},
    {"maybe": False},
    {"maybe": "1"},
    {"either": True},
    {"either": "1"},
    {"several": [1.0, True]},
    {"by_name": {"a": "1"}},
    {"inner": {"default": True}},
    {"inner": {"type": True}},
    {"inner": {"metadata": 1}},
    {"inners": {"a": {"type": "1"}}},
]


@pytest.mark.parametrize("given", REFUSED, ids=repr)
def test_what_would_have_to_be_guessed_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Section.model_validate(given)


def test_what_is_meant_is_taken() -> None:
    """A whole number for a number, 1e3 for a whole one, a list for a tuple, text for a path, anything for Any."""
    given = {"number": 2, "count": 1e3, "flag": True, "maybe": 4, "either": 3, "several": [1, 2.5]}
    section = Section.model_validate(given | {"by_name": {"a": 1}, "path": "a/b", "anything": True})
    assert (section.number, section.count, section.flag, section.maybe) == (2.0, 1000, True, 4)
    assert (section.either, section.several, section.by_name) == (3.0, (1.0, 2.5), {"a": 1.0})
    assert (section.path, section.anything) == (Path("a/b"), True)
    assert isinstance(section.count, int)


@pytest.mark.parametrize(
    "given", [{"number": True}, {"flag": 1}, {"pair": [0, "1"]}, {"number": float("inf")}, {"inner": {"type": True}}]
)
def test_the_same_holds_for_a_plug_in(given: dict[str, Any]) -> None:
    assert built(Plugin, {"number": 1, "pair": [0, 1]}) == Plugin(1.0, pair=(0.0, 1.0))
    with pytest.raises(ValidationError):
        built(Plugin, given)
