"""`postgrad train --help`: methods, channels and recipes; with a method's or a recipe's name, its keys. No torch."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from click.testing import CliRunner

from postgrad.methods import METHODS
from postgrad.objectives import CHANNELS
from postgrad.run.outline import outline
from postgrad.run.plugins import resolve
from postgrad.run.recipes import recipe_names
from postgrad.verbs.train import command
from postgrad.verbs.train_help import topics


def helped(*words: str) -> str:
    done = CliRunner().invoke(command, [*words, "--help"], terminal_width=120)
    assert done.exit_code == 0
    return done.stdout


def test_the_page_lists_every_method_channel_and_training_recipe() -> None:
    page = helped()
    for name in (*METHODS, *CHANNELS, *recipe_names()):
        assert (f"\n  {name} " in page) == (name != "demo"), name  # the demo has stages and is no training
    assert "--optim.lr number" in page


@pytest.mark.parametrize("name", METHODS)
def test_a_methods_page_lists_its_keys_with_type_default_and_meaning(name: str) -> None:
    page = " ".join(helped(name).split())
    assert f"Method {name}: " in page
    for field in resolve("method", name, METHODS).model_fields:
        assert f"--method.{field}" in page
    assert "--optim.lr number" not in page


def test_the_keys_of_sft_and_of_its_channel() -> None:
    page = " ".join(helped("sft").split())
    assert "--method.batch_size integer Rows per optimiser step. (default 16)" in page
    assert "--channels.cross_entropy.objective nll|dft Plain likelihood, or dynamic fine-tuning. (default nll)" in page


def test_a_recipe_stands_for_its_method() -> None:
    assert "Method composer: " in helped("ladder/a4-all")
    assert topics(["no-such-thing"]) == topics([])


@pytest.mark.parametrize("name", CHANNELS)
def test_an_outline_says_what_the_class_says(name: str) -> None:
    """Read from the source, the fields are those of the imported class, and every one is explained."""
    told = outline(CHANNELS[name]).fields
    fields = dataclasses.fields(resolve("channel", name, CHANNELS))
    assert [line.path for line in told] == [field.name for field in fields]
    for line, field in zip(told, fields, strict=True):
        assert line.description
        if isinstance(field.default, (str, float)) and not isinstance(field.default, bool):
            assert line.default == f"default {field.default}"


def test_types_are_told_through_aliases_and_modules() -> None:
    """`Name` is an alias of the module, `Aggregation` one of the module that it is imported from."""
    types = {line.path: line.type for line in outline(CHANNELS["policy_gradient"]).fields}
    assert "dr_grpo" in types["objective"]
    assert types["aggregation"] == "sequence_mean|sequence_sum|length_limit|token_mean | null"
    assert types["eps_low"] == "number | null"


def test_neither_torch_nor_yaml_is_loaded_for_the_lists() -> None:
    code = (
        "import sys; from postgrad.verbs.train_help import topics; import postgrad.verbs.train\n"
        "topics([]); print(sorted({'torch', 'yaml', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
