"""What a shell call does, as far as its exit code needs explaining: search, probe, test run, check, plain command.

A non-zero exit code is not always a mistake: `grep` says "no match" with 1, `test -f` says "no". The deciding
program is the last one of the line, for its code is the line's code. Not covered: shell functions, here-documents
that contain separators, PowerShell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from postgrad.core.message import ToolCall

SEARCHES = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "diff", "cmp", "test", "[", "pgrep", "which"})
PROBES = frozenset({"ls", "cat", "test", "[", "stat", "file"})
WAITS = frozenset({"sleep", "wait"})
_COMMAND_KEYS = ("command", "cmd", "script")
_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "target_file", "filePath", "absolute_path")
_PREFIXES = frozenset({"sudo", "time", "env", "nohup", "exec", "command"})
_LAUNCHERS = r"(?:(?:\S*python[\d.]*|uv|npx|poetry|pdm|hatch|bundle|pnpm|yarn|timeout \S+)(?: (?:-m|run|exec|-\S+))* )*"
_BUILDERS = (
    r"(?:cargo|go|mix|dotnet|swift|(?:\S*/)?gradlew?|mvn|deno|bun|rake|rails|npm|pnpm|yarn|make)(?: run)?(?: -\S+)*"
)
_TESTS = re.compile(
    rf"{_LAUNCHERS}(?:(?:\S*/)?(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|tox|nox|ctest)(?: |$)"
    rf"|{_BUILDERS} test)"
)
_CHECKS = re.compile(
    rf"{_LAUNCHERS}(?:(?:\S*/)?(?:tsc|mypy|pyright|ruff|eslint|flake8|pylint|golangci-lint|rubocop)(?: |$)"
    rf"|{_BUILDERS} (?:build|check|lint|typecheck|type-check|vet|compile|format|clippy|credo|dialyzer))"
)


def command_of(call: ToolCall) -> str | None:
    """The command line of a shell call, None for other tools. ``["bash", "-lc", LINE]`` gives LINE."""
    for key in _COMMAND_KEYS:
        value = (call.arguments or {}).get(key)
        if isinstance(value, str) and (key != "command" or "path" not in (call.arguments or {})):
            return value  # an edit tool with `command` and `path` (view, str_replace) is no shell
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            shell = len(value) == 3 and value[1] in ("-c", "-lc")
            return value[2] if shell else shlex.join(value)
    return None


def path_of(arguments: Mapping[str, Any] | None) -> str | None:
    """The file that a call is about, where an argument names one."""
    values = ((arguments or {}).get(key) for key in _PATH_KEYS)
    return next((value for value in values if isinstance(value, str) and value), None)


def simple_commands(line: str) -> list[list[str]]:
    """The simple commands of a line, in order, each as words without redirections, assignments and `sudo`-likes."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if set(word) <= set(";|&\n"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:  # an open quote: fall back to plain words
        commands = [part.split() for part in re.split(r"[;|&\n]+", line)]
    return [kept for words in commands if (kept := _program_first(words))]


def _program_first(words: list[str]) -> list[str]:
    kept = [word for word in words if not re.match(r"^\d*[<>]", word) and not re.fullmatch(r"\d", word)]
    while kept and (kept[0] in _PREFIXES or re.match(r"^\w+=", kept[0])):
        kept = kept[1:]
    return kept


def programs(line: str) -> list[str]:
    """The program of each simple command; ``git grep`` and ``git diff`` count as the search that they are."""
    names = []
    for words in simple_commands(line):
        name = words[0].rsplit("/", 1)[-1]
        if name == "git" and len(words) > 1 and words[1] in ("grep", "diff"):
            name = words[1]
        names.append(name)
    return names


def is_test_run(line: str) -> bool:
    """Whether the line runs tests."""
    return _runs(_TESTS, line)


def is_check(line: str) -> bool:
    """Whether the line runs a type check, a linter or a build."""
    return _runs(_CHECKS, line)


def _runs(pattern: re.Pattern[str], line: str) -> bool:
    """Only the words that start a command count: a quoted text may speak of tests."""
    return any(pattern.match(" ".join(words)) for words in simple_commands(line))


def target_of(call: ToolCall) -> str | None:
    """What a call works on: a file, or a shell line's deciding program with its subcommand (``git push``)."""
    line = command_of(call)
    if line is None:
        return path_of(call.arguments)
    last = (simple_commands(line) or [[]])[-1]
    words = [word for word in last if not word.startswith("-")][:2]
    return " ".join(words) or None
