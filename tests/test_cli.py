"""The command line as a user meets it: quick, light, helpful when a verb is misspelt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import postgrad
from postgrad.verbs import VERBS

SOURCE = Path(__file__).parents[1] / "src"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(SOURCE)}
    )


def postgrad_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return python(f"import sys; sys.argv = ['postgrad', *{list(arguments)!r}]; from postgrad.cli import main; main()")


def test_help_names_every_verb_and_imports_nothing_heavy() -> None:
    """Time is measured inside the process, by its own CPU clock, so a busy machine does not fail the test."""
    done = python(
        "import sys, time; sys.argv = ['postgrad', '--help']\n"
        "from postgrad.cli import main\n"
        "try: main()\n"
        "finally:\n"
        "    heavy = {'torch', 'pydantic', 'pyarrow', 'numpy', 'rich', 'yaml', 'msgspec'} & set(sys.modules)\n"
        "    print(sorted(heavy), time.process_time(), file=sys.stderr)"
    )
    heavy, seconds = done.stderr.rsplit(" ", 1)
    assert done.returncode == 0
    assert heavy == "[]"
    assert float(seconds) < 0.3
    assert all(f"\n  {verb} " in done.stdout for verb in VERBS)


def test_version() -> None:
    assert postgrad_command("--version").stdout == f"postgrad, version {postgrad.__version__}\n"


def test_no_verb_is_a_request_for_help() -> None:
    done = postgrad_command()
    assert (done.returncode, done.stdout.startswith("Usage: postgrad ")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["trian"], "error: unknown verb 'trian': did you mean 'train'?\n"),
        (["--no-such-option"], "error: No such option '--no-such-option'.\n"),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_code_2(arguments: list[str], told: str) -> None:
    done = postgrad_command(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_a_module_of_its_contract(verb: str) -> None:
    """Without torch: reading a verb's help or configuration needs no model."""
    module = VERBS[verb][0].partition(":")[0]
    done = python(
        f"import sys; sys.argv = ['postgrad', '{verb}', '--help']\n"
        "from postgrad.cli import main\n"
        "try: main()\n"
        "finally:\n"
        f"    import {module} as module\n"
        "    from postgrad.run.config import Config\n"
        "    assert issubclass(module.CONFIG, Config) and callable(module.run) and callable(module.show)\n"
        "    print('torch' in sys.modules, file=sys.stderr)"
    )
    assert (done.returncode, done.stderr) == (0, "False\n")
    for option in ("--dry-run", "--json"):
        assert option in done.stdout


@pytest.mark.parametrize(
    "package", ["cli", "cycle", "traces", "signals", "data", "envs", "teachers", "run", "evaluate"]
)
def test_importing_a_light_package_imports_no_torch(package: str) -> None:
    """Every module of the package, not only its __init__."""
    done = python(
        "import sys, pkgutil, importlib\n"
        f"package = importlib.import_module('postgrad.{package}')\n"
        "for module in pkgutil.walk_packages(getattr(package, '__path__', []), package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
