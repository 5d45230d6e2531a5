"""What a call does, as far as its result needs explaining: search, probe, test run, check, edit, plain command.

A non-zero exit code is not always a mistake: `grep` says "no match" with 1, `test -f` says "no". The deciding
program is the last one of the line, for its code is the line's code. How lines are taken apart: `shell_lines`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from postgrad.core.message import ToolCall
from postgrad.signals.shell_lines import parse_line, written_files

ToolKind = Literal["shell", "code", "edit", "read", "search", "wait", "other"]

SEARCHES = frozenset(
    {
        *("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "fdfind", "diff", "cmp", "comm", "test"),
        *("[", "[[", "pgrep", "pidof", "which", "whereis", "type", "hash", "lsof", "command -v", "where", "findstr"),
        *(
            "select-string",
            "test-path",
            "get-command",
            "get-process",
            "show-ref",
            "rev-parse",
            "check-ignore",
            "locate",
        ),
    }
)
PROBES = frozenset(
    {
        *("ls", "cat", "test", "[", "[[", "stat", "file", "dir"),
        *("get-item", "get-childitem", "get-content", "gc", "test-path"),
    }
)
WAITS = frozenset({"sleep", "wait", "start-sleep", "timeout"})
READERS = frozenset(
    {
        *(
            "cat",
            "head",
            "tail",
            "less",
            "more",
            "sed",
            "awk",
            "nl",
            "bat",
            "grep",
            "egrep",
            "fgrep",
            "rg",
            "ag",
            "find",
        ),
        *(
            "ls",
            "wc",
            "jq",
            "cut",
            "sort",
            "uniq",
            "tr",
            "diff",
            "strings",
            "xxd",
            "od",
            "tree",
            "stat",
            "file",
            "echo",
        ),
        *("printf", "get-content", "select-string", "type", "gc", "yq", "column", "fold", "history", "log", "show"),
        *(
            "curl",
            "wget",
            "http",
            "gh",
            "journalctl",
            "dmesg",
            "cd",
            "pwd",
            "true",
            "export",
            "set",
            "source",
            "sleep",
            "fd",
            "ack",
            "tee",
            "xargs",
            "env",
            "printenv",
        ),
    }
)
_COMMAND_KEYS = ("command", "cmd", "script", "commands", "CommandLine", "command_line")
_CODE_KEYS = ("code", "python_code", "cell", "source", "new_source")
_PATH_KEYS = (
    *("file_path", "path", "notebook_path", "filename", "target_file", "filePath", "absolute_path", "relative_path"),
    *("file", "TargetFile", "AbsolutePath", "target", "uri", "file_name", "relative_workspace_path"),
)
_EDITS = re.compile(
    r"edit|write|patch|replace|create_file|create|insert|append|update_file|save|apply_diff|undo", re.IGNORECASE
)
_EDIT_KEYS = frozenset(
    {
        "old_str",
        "new_str",
        "old_string",
        "new_string",
        "oldString",
        "newString",
        "old_text",
        "new_text",
        "file_text",
        "diff",
    }
)
_READS = re.compile(
    r"\A(?:read|view|open|cat|get_?file|fetch_?file|show|scroll|goto|list|ls|tree|notebookread)", re.IGNORECASE
)
_SEEKS = re.compile(r"grep|glob|search|find|lookup|query", re.IGNORECASE)
_SHELLS = re.compile(r"bash|shell|terminal|exec|command|cmd|powershell|\brun\b|process|console", re.IGNORECASE)
_CODES = re.compile(r"python|ipython|jupyter|notebook|code_?interpreter|execute_?code|run_?code|repl\b", re.IGNORECASE)
_KEYS = re.compile(r"C-\w|\^[A-Z]|q|y|n", re.IGNORECASE)
_AWAITS = re.compile(
    r"\A(?:task_?output|bash_?output|get_?(?:terminal|command|process)_?output|command_status|wait\w*|sleep|poll\w*"
    r"|await\w*|read_?terminal|write_?stdin|agentoutput\w*)\Z",
    re.IGNORECASE,
)

_LAUNCHERS = (
    r"(?:(?:\S*python[\d.]*|uv|npx|bunx|poetry|pdm|pipenv|hatch|rye|pixi|conda|bundle|pnpm|yarn|npm|php|xcrun|dotnet"
    r"|nx|turbo"
    r"|coverage|catchsegv)(?: (?:-m|run|exec|dlx|tool|--|-\S+))* )*"
)
_BUILDERS = (
    r"(?:cargo|go|mix|dotnet|swift|(?:\S*/)?gradlew?|(?:\S*/)?mvnw?|deno|bun|rake|rails|npm|pnpm|yarn|make|gmake"
    r"|just|sbt|lein"
    r"|stack|cabal|zig|bazel|flutter|dart|mage|nx|turbo|xcodebuild|ng|php artisan|composer|gleam|rebar3|julia)"
    r"(?: run)?(?: -\S+)*"
)
_RUNNERS = (
    r"(?:py\.?test|unittest|nose2?|jest|vitest|mocha|ava|karma|cypress|playwright test|rspec|minitest|phpunit|pest"
    r"|tox|nox"
    r"|ctest|bats|gotestsum|cargo-nextest|busted|trial|runtests\.py|run_?tests?\.(?:sh|py)|manage\.py test|doctest)"
)
_TESTS = re.compile(
    rf"{_LAUNCHERS}(?:(?:\S*/)?{_RUNNERS}(?: |$)|{_BUILDERS} (?:\S*:)?(?:tests?|test:\S+|spec|nextest|verify|t)(?: |$))"
)
_CHECKS = re.compile(
    rf"{_LAUNCHERS}(?:(?:\S*/)?(?:tsc|vue-tsc|mypy|pyright|basedpyright|ty|ruff|black|isort|eslint|biome|oxlint"
    rf"|prettier"
    r"|flake8|pylint|golangci-lint|rubocop|stylelint|shellcheck|hadolint|ktlint|clang-tidy|phpstan|psalm|credo"
    r"|pre-commit"
    r"|gcc|g\+\+|cc|c\+\+|clang|clang\+\+|javac|rustc|kotlinc|scalac|ghc|csc|cmake|ninja|meson|msbuild|\S*configure"
    r"|xelatex"
    r"|pdflatex|webpack|rollup|vite build|next build|esbuild|py_compile|compileall|sphinx-build|mkdocs build)(?: |$)"
    rf"|{_BUILDERS} (?:\S*:)?(?:build|check|lint|typecheck|type-check|types|vet|compile|format|fmt|clippy|credo"
    rf"|dialyzer"
    r"|assemble|package|bundle|analyze|tsc|ci)\b|(?:make|gmake)(?: (?:-\S+|\d+|all|clean|default|release|debug"
    r"|\w+=\S*))*$|docker (?:compose )?build|bazel build)"
)


def command_of(call: ToolCall) -> str | None:
    """The command line of a shell call, None for other tools. ``["bash", "-lc", LINE]`` gives LINE."""
    arguments = call.arguments or {}
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and (key != "command" or "path" not in arguments):
            return value  # an edit tool with `command` and `path` (view, str_replace) is no shell
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            if key == "commands":
                return "\n".join(value)
            shell = len(value) == 3 and value[1] in ("-c", "-lc", "-Command", "/c", "-ic", "-ilc")
            return str(value[2]) if shell else shlex.join(value)
    only = arguments.get("input") if _SHELLS.search(call.name) else None
    return only if isinstance(only, str) else None


def code_of(call: ToolCall) -> str | None:
    """The program text of a call that runs code cells, None for other tools."""
    values = ((call.arguments or {}).get(key) for key in _CODE_KEYS)
    return next((value for value in values if isinstance(value, str) and _CODES.search(call.name)), None)


def path_of(arguments: Mapping[str, Any] | None) -> str | None:
    """The file that a call is about, where an argument names one."""
    values = ((arguments or {}).get(key) for key in _PATH_KEYS)
    return next((value for value in values if isinstance(value, str) and value), None)


def kind_of(call: ToolCall) -> ToolKind:
    """What sort of tool a call uses: by its arguments first, then by its name."""
    arguments = call.arguments or {}
    if _AWAITS.match(call.name):
        return "wait"
    subcommand = arguments.get("command")
    if isinstance(subcommand, str) and "path" in arguments:  # text editors with sub-commands
        return "read" if subcommand == "view" else "edit"
    line = command_of(call)
    if line is not None:
        typed = arguments.get("is_input") in (True, "true")  # to a program that still runs; nothing typed: a look at it
        return "wait" if not line.strip() or (typed and _KEYS.fullmatch(line.strip())) else "shell"
    if code_of(call) is not None and not _EDITS.search(call.name):
        return "code"
    if _EDIT_KEYS & arguments.keys() or _EDITS.search(call.name):
        return "edit"
    if _SEEKS.search(call.name):
        return "search"
    return "read" if _READS.match(call.name) else "other"


def edited_files(call: ToolCall) -> tuple[str, ...]:
    """The files that a call means to change: an edit tool's file, a patch's files, what a shell line writes."""
    line = command_of(call)
    if line is not None:
        return written_files(line)
    if kind_of(call) != "edit":
        return ()
    path = path_of(call.arguments)
    if path is not None:
        return (path,)
    texts = [value for value in (call.arguments or {}).values() if isinstance(value, str)] or [call.arguments_raw]
    return tuple(file for text in texts for file in written_files(text) if "*** " in text or "+++ " in text)


def simple_commands(line: str) -> list[list[str]]:
    """The simple commands of a line, in order, each as words with its program first."""
    return [list(words) for words in parse_line(line).commands]


@lru_cache(maxsize=4096)
def programs(line: str) -> tuple[str, ...]:
    """The program of each simple command; ``git grep``, ``xargs grep`` count as what they are."""
    return tuple(_program(words) for words in parse_line(line).commands)


def _program(words: tuple[str, ...]) -> str:
    name = re.split(r"[\\/]", words[0])[-1].lower() or words[0]
    name = name.removesuffix(".exe")
    rest = [word for word in words[1:] if not word.startswith("-")]
    if name == "git":
        verbs = ("grep", "diff", "show-ref", "rev-parse", "check-ignore", "log", "show")
        return next((word for word in rest if word in verbs), name) if rest else name
    if "logs" in rest[:2]:  # docker logs, kubectl logs: what another program wrote
        return "log"
    if name == "xargs" and rest:
        return next((word for word in rest if word in SEARCHES), name)
    return name


def is_test_run(line: str) -> bool:
    """Whether the line runs tests."""
    return _runs(_TESTS, line)


def is_check(line: str) -> bool:
    """Whether the line runs a type check, a linter or a build."""
    return _runs(_CHECKS, line)


def _runs(pattern: re.Pattern[str], line: str) -> bool:
    """Only the words that start a command count: a quoted text may speak of tests."""
    return any(pattern.match(" ".join(words)) for words in parse_line(line).commands)


def only_reads(line: str) -> bool:
    """Whether every program of the line shows text that somebody else wrote, errors quoted in it included."""
    names = programs(line)
    return bool(names) and all(name in READERS for name in names)


def target_of(call: ToolCall) -> str | None:
    """What a call works on: a file, or a shell line's deciding program with its subcommand (``git push``)."""
    line = command_of(call)
    if line is None:
        return path_of(call.arguments)
    words = [word for word in parse_line(line).deciding if not word.startswith("-")][:2]
    return " ".join(words) or None
