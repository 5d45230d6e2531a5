"""References between stages."""

from __future__ import annotations

import pytest

from postgrad.core.errors import ConfigError
from postgrad.run.references import references, resolved, resolved_or_null

SCOPE = {"train": {"loss": 0.5, "steps": [1, {"n": 2}], "by": {"bfcl/simple_python": {"mean": 0.25}}}, "run": "/r"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${train.loss}", 0.5),
        ("${train.steps.1.n}", 2),
        ("${train.by.bfcl/simple_python.mean}", 0.25),
        ("${run}/store", "/r/store"),
        ("a ${train.loss} b ${run}", "a 0.5 b /r"),
        ("$${train.loss}", "${train.loss}"),
        ("costs $5", "costs $5"),
        (7, 7),
    ],
)
def test_what_a_text_becomes(text: object, value: object) -> None:
    assert resolved({"x": [text]}, SCOPE) == {"x": [value]}


def test_every_reference_is_found_with_its_place() -> None:
    data = {"a": "${x.y}", "b": [{"c": "${z} and ${w.v}"}], "d": "$${no}"}
    assert list(references(data)) == [(("a",), "x.y"), (("b", 0, "c"), "z"), (("b", 0, "c"), "w.v")]


def test_what_is_not_there() -> None:
    with pytest.raises(ConfigError, match="there is no 'los'; did you mean 'loss'"):
        resolved("${train.los}", SCOPE)
    with pytest.raises(ConfigError, match="there is no '2'"):
        resolved("${train.steps.2}", SCOPE)
    assert resolved_or_null({"a": "${gone.x}", "b": "${run}"}, SCOPE) == {"a": None, "b": "/r"}
    with pytest.raises(ConfigError):
        resolved_or_null("${train.los}", SCOPE)
