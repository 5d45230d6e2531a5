"""`postgrad train --help`: methods, channels and recipes; with a method's or a recipe's name, its keys. No torch."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from postgrad.methods import METHODS
from postgrad.objectives import CHANNELS
from postgrad.run.outline import headline, outline
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


def test_a_page_says_what_the_recipe_of_that_name_sets() -> None:
    """`postgrad train sft` runs the recipe, whose values are not the method's defaults; cpo has no recipe."""
    rows = next(topic.rows for topic in topics(["sft"])[0] if topic.title.startswith("Recipe sft,"))
    assert {("--method.batch_size", "8"), ("--method.records", '"runs/build/records.jsonl"')} <= {*rows}
    bare = next(name for name in METHODS if name not in recipe_names())
    assert not any(topic.title.startswith("Recipe") for topic in topics([bare])[0])


def test_keys_of_a_section_that_may_be_left_out_are_required_with_it() -> None:
    page = " ".join(helped("sft").split())
    assert "policy's own answers. (required with rehearsal)" in page


def test_a_section_is_opened() -> None:
    told = {line.path: line.default for line in outline(CHANNELS["divergence"]).fields}
    assert told["teacher.kind"] == "default live"


def test_a_constant_is_told_by_its_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "losses_of_mine.py").write_text("WIDTH = 1 << 21\n\nclass Mine:\n    tile: int = WIDTH\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [line.default for line in outline("losses_of_mine:Mine").fields] == ["default 2097152"]


def test_a_recipe_stands_for_its_method() -> None:
    assert "Method composer: " in helped("ladder/a4-all")
    assert topics(["no-such-thing"]) == topics([])


@pytest.mark.parametrize("name", CHANNELS)
def test_an_outline_says_what_the_class_says(name: str) -> None:
    """Read from the source, the fields are those of the imported class, and every one is explained."""
    told = outline(CHANNELS[name]).fields
    fields = dataclasses.fields(resolve("channel", name, CHANNELS))
    assert list(dict.fromkeys(line.path.partition(".")[0] for line in told)) == [field.name for field in fields]
    assert all(line.description for line in told)
    plain = {line.path: line for line in told if "." not in line.path}
    for field in fields:
        line = plain.get(field.name)
        if line is None:  # a section, told by its fields
            continue
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


def test_arrays_are_not_loaded_for_the_keys_of_any_method() -> None:
    """A page is asked for again and again: it must not wait for libraries that only a training needs."""
    code = (
        "import sys; from postgrad.methods import METHODS; from postgrad.verbs.train_help import topics\n"
        "for name in METHODS: topics([name])\n"
        "print(sorted({'torch', 'numpy', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_a_headline_is_the_first_paragraph_of_the_docstring() -> None:
    """Read from the class's own lines, it is what the whole module's tree says."""
    for target in (*METHODS.values(), *CHANNELS.values()):
        assert headline(target) == outline(target).summary.removesuffix(".") != ""
