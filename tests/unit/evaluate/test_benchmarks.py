"""Benchmark names as recipes write them."""

from __future__ import annotations

import pytest

from postgrad.core.errors import ConfigError
from postgrad.evaluate.benchmarks import Benchmark


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("retention/facts", Benchmark("retention", "facts")),
        ("bfcl/simple_python:50", Benchmark("bfcl", "simple_python", 50)),
        ("my.envs:Env/heldout:7", Benchmark("my.envs:Env", "heldout", 7)),
    ],
)
def test_names(text: str, parsed: Benchmark) -> None:
    assert Benchmark.parse(text) == parsed


@pytest.mark.parametrize("text", ["", "retention", "a/b:0", "a/b:-1", "a/b:x", "a/b/c", "a/b@constrained", "a /b"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ConfigError, match="not a benchmark"):
        Benchmark.parse(text)


def test_keys_leave_the_count_out_and_the_mode_in() -> None:
    benchmark = Benchmark.parse("bfcl/simple_python:50")
    assert benchmark.key("free") == "bfcl/simple_python"
    assert benchmark.key("constrained") == "bfcl/simple_python@constrained"
    assert benchmark.subset(3) == "50 drawn with seed 3"
