"""What every verb gets from `verb_command`: options, run folders, resuming, --json, exit codes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from click.testing import CliRunner, Result
from pydantic import Field

from postgrad.core.errors import DataError, DeadChannel, OutsideFailure
from postgrad.run.config import Config
from postgrad.verbs.command import verb_command


class Section(Config):
    rank: int = 8


class Fake(Config):
    model: str = "tiny"
    section: Section = Section()
    paths: list[str] = []  # noqa: RUF012  # pydantic copies defaults
    fast: bool = False
    lr: float = 0.1
    most: Annotated[float, Field(ge=0)] | None = None


ERRORS: dict[str, BaseException] = {
    "data": DataError("no trace", got="x", expected="y", do="z"),
    "dead": DeadChannel("policy_gradient", "no items in 8 steps"),
    "network": OutsideFailure("the endpoint does not answer"),
    "full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk/file"),
    "missing": FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/no/file"),
    "stopped": KeyboardInterrupt(),
    "extra": ModuleNotFoundError("No module named 'xgrammar'", name="xgrammar"),
    "bug": ZeroDivisionError("division by zero"),
}


def work(config: Fake, out: Path) -> dict[str, Any]:
    print("a library talks")
    if config.model in ERRORS:
        raise ERRORS[config.model]
    return {"config": config.resolved(), "out": str(out), "passed": config.lr < 1}


command = verb_command("fake", Fake, work, help="A fake.", short={"-m": "model"})
looking = verb_command(
    "look", Fake, work, positional="paths", keeps_run=False, exit_code=lambda result: 0 if result["passed"] else 1
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(*arguments: str, of: Any = command) -> Result:
    return CliRunner().invoke(of, list(arguments))


def config_of(*arguments: str, of: Any = command) -> dict[str, Any]:
    done = call(*arguments, "--json", of=of)
    assert done.exit_code == 0, done.stderr
    config: dict[str, Any] = json.loads(done.stdout)["config"]
    return config


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (["--section.rank", "4"], {"section": {"rank": 4}}),
        (["--section.rank=4"], {"section": {"rank": 4}}),
        (["--lr", "-1"], {"lr": -1.0}),
        (["--lr=-1e-3"], {"lr": -0.001}),
        (["--fast"], {"fast": True}),
        (["--fast", "--lr", "2"], {"fast": True, "lr": 2.0}),
        (["--fast", "no"], {"fast": False}),
        (["-m", "2024"], {"model": "2024"}),
        (["--model", ""], {"model": ""}),
        (["--model=a=b"], {"model": "a=b"}),
        (["--paths", "a", "--paths", "b"], {"paths": ["a", "b"]}),
        (["--paths", "a"], {"paths": ["a"]}),
    ],
)
def test_options(arguments: list[str], changed: dict[str, Any]) -> None:
    assert config_of(*arguments) == {**Fake().resolved(), **changed}


def test_a_recipe_first_then_options(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("lr: 5\nmodel: file\n")
    assert config_of("r.yaml", "--lr", "7") == {**Fake().resolved(), "lr": 7.0, "model": "file"}
    assert config_of("--fast", "r.yaml")["model"] == "file", "a flag does not swallow the recipe"


def test_bare_words_fill_the_positional_field() -> None:
    assert config_of("a", "--fast", "b", "--lr", "0.5", of=looking)["paths"] == ["a", "b"]
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--lr"], "option --lr needs a value; write --lr VALUE, or --lr=VALUE"),
        (["--most", ""], "option --most needs a value; got 'an empty text'; give a number, or leave it out"),
        (["--most= "], "option --most needs a value"),
        (["--lr", "1", "--lr", "2"], "option --lr is given twice"),
        (["-x", "1"], "unknown option; got '-x'; expected -m"),
        (["a.yaml", "b.yaml"], "unexpected argument 'b.yaml'"),
        (["none.yaml"], "recipe not found"),
        (["--sektion.rank", "1"], "unknown key --sektion: did you mean 'section'?"),
        (["--resume", "x", "--lr", "1"], "--resume takes nothing else"),
        (["--resume", "x"], "nothing to resume"),
    ],
)
def test_wrong_words(arguments: list[str], told: str) -> None:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("data", 2, "error: no trace; got 'x'; expected y; z\n"),
        ("dead", 2, "error: channel 'policy_gradient': no items in 8 steps\n"),
        ("network", 3, "error: the endpoint does not answer; to go on: postgrad fake --resume runs/r\n"),
        ("full", 3, "error: No space left on device: /disk/file; to go on: postgrad fake --resume runs/r\n"),
        ("missing", 2, "error: No such file or directory: /no/file\n"),
        ("stopped", 3, "error: interrupted; to go on: postgrad fake --resume runs/r\n"),
        ("extra", 2, "error: xgrammar is not installed; run: pip install 'postgrad[eval]'\n"),
        ("bug", 70, "error: ZeroDivisionError: division by zero (a bug in postgrad; set POSTGRAD_DEBUG=1 for the"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(kind: str, code: int, told: str) -> None:
    done = call("--model", kind, "--run", "runs/r")
    assert done.exit_code == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    again = call("--model", kind, "--run", "runs/r", "--json")
    error = json.loads(again.stdout)["error"]
    assert (error["exit_code"], error["type"]) == (code, type(ERRORS[kind]).__name__)


def test_the_traceback_is_there_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRAD_DEBUG", "1")
    assert "Traceback" in call("--model", "bug").stderr


def test_a_verb_that_says_no() -> None:
    assert call("--lr", "2", of=looking).exit_code == 1


def test_dry_run_prints_the_whole_configuration_and_runs_nothing() -> None:
    done = call("--dry-run", "--lr", "2", "--run", "here", "-m", "bug")
    assert done.exit_code == 0
    assert yaml.safe_load(done.stdout) == {
        "verb": "fake",
        "config": {**Fake().resolved(), "lr": 2.0, "model": "bug"},
        "run": "here",
    }
    assert json.loads(call("--dry-run", "--json", "--run", "here").stdout)["config"] == Fake().resolved()
    assert not Path("here").exists()


def test_the_run_folder_says_what_was_run_and_what_came_out() -> None:
    call("--lr", "0.5", "--run", "here")
    assert json.loads(Path("here/config.json").read_text()) == {
        "verb": "fake",
        "config": {**Fake().resolved(), "lr": 0.5},
    }
    assert json.loads(Path("here/result.json").read_text())["out"] == "here"


def test_the_run_folder_names_what_was_read_by_content(tmp_path: Path) -> None:
    """The file that a key names, not the run's own folder and not what is not there."""
    (tmp_path / "rows.jsonl").write_text("{}")
    call("--paths", "rows.jsonl", "--paths", "runs", "--paths", "nowhere", "--run", "runs/a")
    digest = hashlib.sha256(b"{}").hexdigest()
    assert json.loads(Path("runs/a/inputs.json").read_text()) == {"rows.jsonl": digest}


def test_resume_takes_the_stored_configuration() -> None:
    call("--lr", "0.5", "--run", "here")
    assert config_of("--resume", "here")["lr"] == 0.5
    other = verb_command("other", Fake, work)
    assert "belongs to 'postgrad fake'" in call("--resume", "here", of=other).stderr


def test_a_run_folder_is_not_given_to_another_configuration() -> None:
    call("--lr", "0.5", "--run", "here")
    assert call("--lr", "0.5", "--run", "here").exit_code == 0
    refused = call("--lr", "0.7", "--run", "here")
    assert (refused.exit_code, "lr: 0.5 there, 0.7 now" in refused.stderr) == (2, True)
    revisable = verb_command("fake", Fake, work, revisable=True)
    assert config_of("--lr", "0.7", "--run", "here", of=revisable)["lr"] == 0.7


def test_the_same_command_goes_on_in_its_unfinished_run() -> None:
    """A run without a result is taken up again by the same configuration only; a finished one never is."""
    assert call("--model", "network").exit_code == 3
    call("--model", "network")
    call("--model", "full")
    assert len(list(Path("runs").iterdir())) == 2
    call()
    call()
    assert len(list(Path("runs").iterdir())) == 4


def test_json_is_all_that_reaches_stdout(tmp_path: Path) -> None:
    """A print, and a subprocess that writes to the inherited descriptor 1, go to stderr."""
    (tmp_path / "noisy.py").write_text(
        "import subprocess\n"
        "from postgrad.run.config import Config\n"
        "from postgrad.verbs.command import verb_command\n"
        "class C(Config):\n    pass\n"
        "def run(config, out):\n    print('printed'); subprocess.run(['echo', 'echoed']); return {'ä': 1}\n"
        "verb_command('noisy', C, run)()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src"), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "noisy.py", "--json"], capture_output=True, env=environment, timeout=60, check=True
    )
    assert done.stdout.decode() == '{"ä": 1}\n'
    assert {b"printed", b"echoed"} <= set(done.stderr.split())


def test_what_is_not_finite_is_null() -> None:
    def diverged(config: Fake, out: Path) -> dict[str, Any]:
        return {"loss": float("nan"), "by": [float("inf"), 1.5]}

    done = call("--json", "--run", "here", of=verb_command("fake", Fake, diverged))
    assert (
        json.loads(done.stdout) == {"loss": None, "by": [None, 1.5]} == json.loads(Path("here/result.json").read_text())
    )


class Needy(Config):
    name: str


def test_a_bare_verb_says_what_it_lacks_and_where_that_is_listed() -> None:
    done = call(of=verb_command("fake", Needy, lambda config, out: {}))
    assert done.exit_code == 2
    assert done.stderr == (
        "error: missing name; expected a recipe, or --name; `postgrad fake --help` lists what there is\n"
    )


def test_help_of_a_verb_with_a_recipe_and_a_folder_of_its_own_asks_for_neither() -> None:
    own = verb_command(
        "fake", Needy, lambda config, out: {}, default_recipe="demo", default_run=lambda config: Path("runs/own")
    )
    page = call("--help", of=own).stdout
    assert "[runs/own]" in page
    assert "(from recipe demo)" in page
    assert "required" not in page


def test_help_lists_every_field() -> None:
    help_text = call("--help").stdout
    for part in ("--section.rank integer", "-m, --model text", "(default 0.1)", "--dry-run", "--resume DIR", "A fake."):
        assert part in help_text
    assert "--resume" not in call("--help", of=looking).stdout


def test_a_users_mistake_leaves_no_folder_behind() -> None:
    """Nothing was done, so nothing stays; what was there before, and what a run has made, does."""

    def halfway(config: Fake, out: Path) -> dict[str, Any]:
        (out / "items.jsonl").write_text("{}")
        raise DataError("too late")

    assert call("--model", "data", "--run", "new/folder").exit_code == 2
    assert not Path("new").exists()
    assert call("--model", "data").exit_code == 2
    assert not Path("runs").exists()
    Path("mine").mkdir()
    assert call("--model", "data", "--run", "mine").exit_code == 2
    assert Path("mine").is_dir()
    assert call("--run", "kept", of=verb_command("fake", Fake, halfway)).exit_code == 2
    assert Path("kept/items.jsonl").exists()
