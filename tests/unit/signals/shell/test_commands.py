"""Shell lines: which program decides, what it is for, and what a call works on."""

from __future__ import annotations

import pytest

from postgrad.signals.shell.commands import command_of, target_of
from postgrad.signals.shell.programs import is_check, is_test_run, programs
from unit.signals.traces_by_hand import bash, call


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cd app && rg -n 'a && b' src | head -3", ["cd", "rg", "head"]),
        ("FOO=1 sudo /usr/bin/git push 2>&1", ["git"]),
        ("git grep x; git diff --exit-code", ["grep", "diff"]),
        ("ls a\nls b", ["ls", "ls"]),
        ("echo 'open", ["echo"]),
        ("", []),
    ],
)
def test_programs(line: str, expected: list[str]) -> None:
    assert programs(line) == tuple(expected)


@pytest.mark.parametrize(
    "line", ["pytest -q", "python -m unittest", "mix test a.exs", "npm run test", "cargo test", "go test ./..."]
)
def test_test_runs(line: str) -> None:
    assert is_test_run(line)


@pytest.mark.parametrize("line", ["tsc --noEmit", "npm run build", "cargo clippy", "make lint", "mypy src"])
def test_checks(line: str) -> None:
    assert is_check(line)
    assert not is_test_run(line)


@pytest.mark.parametrize(
    "line",
    ["uv run pytest -x", "cd a && npx jest b", "timeout 60 python3 -m pytest", "./gradlew test", "npm run -s test"],
)
def test_launchers_are_looked_through(line: str) -> None:
    assert is_test_run(line)


@pytest.mark.parametrize(
    "line",
    [
        "bd create --title='run mix test and mypy'",
        "echo pytest",
        "ls tests",
        "cat testing.md",
        "make install",
        "git commit -m 'test it'",
    ],
)
def test_neither(line: str) -> None:
    assert not is_check(line)
    assert not is_test_run(line)


def test_a_shell_is_unwrapped_and_an_edit_tool_with_a_command_is_no_shell() -> None:
    assert command_of(call("shell", {"command": ["bash", "-lc", "ls -l"]})) == "ls -l"
    assert command_of(call("shell", {"command": ["ls", "a b"]})) == "ls 'a b'"
    assert command_of(call("str_replace_editor", {"command": "view", "path": "/a"})) is None


def test_targets() -> None:
    assert target_of(call("Edit", {"file_path": "/a/b.py"})) == "/a/b.py"
    assert target_of(bash("cd x && git push -u origin main")) == "git push"
    assert target_of(call("get_weather", {"city": "Rome"})) is None
