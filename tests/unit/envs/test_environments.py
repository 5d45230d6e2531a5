"""The table of environments, and the door to training tasks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from postgrad.core.errors import ConfigError
from postgrad.envs import ENVIRONMENTS, GoldActor, load_environment, training_tasks
from postgrad.envs.function_calling import FunctionCalling


def test_the_table_names_environments_by_their_names() -> None:
    for name in ENVIRONMENTS:
        environment = load_environment(name)
        assert environment.name == name
        assert environment.trainable == bool(environment.training_splits)
        assert set(environment.training_splits) <= set(environment.splits)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="bfcl, function_calling"):
        load_environment("function_caling")


def test_only_training_splits_give_training_tasks() -> None:
    environment = FunctionCalling()
    assert training_tasks(environment, "train", 20, 1) == environment.tasks("train", 20, 1)
    for split in ("heldout", "validation", "test"):
        with pytest.raises(ConfigError, match=f"got 'split {split}'; expected train"):
            training_tasks(environment, split)


def test_gold_answers_what_it_knows() -> None:
    """The reference by task id; nothing for another task, or for an ask without one."""
    from postgrad.core.actor import Ask, Sampling

    known, other = FunctionCalling().tasks("train", 2)
    gold = GoldActor([known])
    asks = [
        Ask(task.messages, task.tools, about) for task, about in ((known, known.id), (other, other.id), (known, None))
    ]
    answers = gold.answer(asks, Sampling())
    assert [answer.message for answer in answers] == [known.reference, None, None]
    assert (gold.kind, GoldActor([], name="truth").name) == ("gold answers", "truth")


def test_environments_need_no_torch() -> None:
    """A fresh process makes and grades tasks without importing torch or a vendor's software."""
    script = (
        "import sys; from postgrad.envs import load_environment as load\n"
        "fc = load('function_calling'); task = fc.tasks('train', 1)[0]; fc.grade(task, task.reference)\n"
        "load('bfcl').tasks('simple_python'); fc.respond(task, task.reference)\n"
        "print(sorted({'torch', 'transformers', 'bfcl_eval', 'pyarrow', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
