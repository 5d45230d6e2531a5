"""What a call does, as far as its result needs explaining: its sort of tool, its command line, the files it is about.

What the programs of a command line mean: `shell_programs`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from postgrad.core.message import ToolCall
from postgrad.signals.shell.lines import parse_line, written_files

ToolKind = Literal["shell", "code", "edit", "read", "search", "wait", "other"]

_COMMAND_KEYS = ("command", "cmd", "script", "commands", "CommandLine", "command_line", "keystrokes")
_ARGUMENT_KEYS = ("args", "arguments", "argv", "subcommand", "input")  # of a program that is a tool
_CODE_KEYS = ("code", "python_code", "cell", "source", "new_source")
_PATH_KEYS = (
    *("file_path", "path", "notebook_path", "filename", "target_file", "filePath", "absolute_path", "relative_path"),
    *("file", "TargetFile", "AbsolutePath", "target", "uri", "file_name", "relative_workspace_path", "filepath"),
    *("dir_path", "directory", "dirPath", "DirectoryPath"),
)
_PATHS_KEYS = ("paths", "files", "file_paths", "filePaths", "include")
_EDITS = re.compile(
    r"edit|write|patch|replace|create_file|create|insert|append|update_file|save|apply_diff|undo", re.IGNORECASE
)
_EDIT_KEYS = frozenset(
    {
        *("old_str", "new_str", "old_string", "new_string", "oldString", "newString", "old_text", "new_text"),
        *("file_text", "diff"),
    }
)
_FILE_KEYS = _EDIT_KEYS | frozenset(["pattern", "regex", "glob", "include", "content", "patch", "input"])
_OF_FILES = re.compile(r"edit|patch|diff|file|write|notebook|cell", re.IGNORECASE)
_READS = re.compile(
    r"\A\w*[a-z]_(?:read|view|cat)\Z|\A(?:read|view|open|cat|get_?file|fetch_?file|show|scroll|goto|list|ls|tree"
    r"|notebookread)",
    re.IGNORECASE,
)
_SEEKS = re.compile(r"grep|glob|search|find|lookup|query", re.IGNORECASE)
_SHELLS = re.compile(r"bash|shell|terminal|exec|command|cmd|powershell|\brun\b|process|console", re.IGNORECASE)
_CODES = re.compile(
    r"python|ipython|jupyter|notebook|code_?interpreter|execute_?code|code_?execution|run_?code|repl\b", re.IGNORECASE
)
_SHELL = re.compile(r"(?:.*[\\/])?(?:(?:ba|z|da|k|fi|c|tc)?sh|cmd|powershell|pwsh)(?:\.exe)?", re.IGNORECASE)
_LINE_FOLLOWS = frozenset(["-c", "-lc", "-ic", "-ilc", "/c", "/k", "-command"])
_PROGRAMS = frozenset(
    [
        *("kubectl", "oc", "helm", "docker", "podman", "git", "gh", "glab", "aws", "gcloud", "az", "terraform", "tofu"),
        *("npm", "pnpm", "yarn", "pip", "cargo", "psql", "redis-cli"),
    ]
)
"""Programs that are offered as tools under their own names."""
_KEYS = re.compile(r"C-\w|\^[A-Z]|q|y|n", re.IGNORECASE)
_AWAITS = re.compile(
    r"\A(?:task_?output|bash_?output|get_?(?:terminal|command|process)_?output|command_status|wait\w*|sleep|poll\w*"
    r"|await\w*|read_?terminal|write_?stdin|agentoutput\w*)\Z",
    re.IGNORECASE,
)


def command_of(call: ToolCall) -> str | None:
    """The command line of a shell call, None for other tools. ``["bash", "-lc", LINE]`` gives LINE."""
    arguments = call.arguments or {}
    for key in (*_COMMAND_KEYS, *(_ARGUMENT_KEYS if _own_name(call.name) in _PROGRAMS else ())):
        value = arguments.get(key)
        if isinstance(value, str) and (key != "command" or "path" not in arguments):
            # an edit tool with `command` and `path` (view, str_replace) is no shell
            return value.strip("\n") if key == "keystrokes" else _with_program(call.name, value)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            if key == "commands":
                return "\n".join(value)
            return str(value[-1]) if _starts_a_shell(value) else shlex.join(value)
    only = arguments.get("input") if _SHELLS.search(call.name) else None
    return only if isinstance(only, str) else None


def _with_program(tool: str, line: str) -> str:
    """``kubectl {"command": "get pods"}``: a command-line program that is offered as a tool of its own."""
    name = _own_name(tool)
    return f"{name} {line}" if name in _PROGRAMS and line.split()[:1] not in ([name], []) else line


@lru_cache(maxsize=1024)
def _own_name(tool: str) -> str:
    """The name of a tool without that of its server."""
    return re.split(r"__|[.:/]", tool)[-1].lower()


def _starts_a_shell(words: Sequence[str]) -> bool:
    """``bash -lc LINE``, ``powershell.exe -NoProfile -Command LINE``: a shell, options, and a line for it."""
    named = len(words) > 2 and _SHELL.fullmatch(words[0]) is not None
    return named and words[1][:1] in "-/" and words[-2].lower() in _LINE_FOLLOWS


def code_of(call: ToolCall) -> str | None:
    """The program text of a call that runs code cells, None for other tools."""
    values = ((call.arguments or {}).get(key) for key in _CODE_KEYS)
    return next((value for value in values if isinstance(value, str) and _CODES.search(call.name)), None)


def path_of(arguments: Mapping[str, Any] | None) -> str | None:
    """The file that a call is about, where an argument names one."""
    values = ((arguments or {}).get(key) for key in _PATH_KEYS)
    return next((value for value in values if isinstance(value, str) and value), None)


def names_path(arguments: Mapping[str, Any] | None) -> bool:
    """Whether an argument names a file or a folder, or a list of them."""
    lists = ((arguments or {}).get(key) for key in _PATHS_KEYS)
    return path_of(arguments) is not None or any(isinstance(value, list) and value for value in lists)


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
        typed = (
            arguments.get("is_input") in (True, "true") or "keystrokes" in arguments
        )  # to a program that still runs; nothing typed: a look at it
        return "wait" if not line.strip() or (typed and _KEYS.fullmatch(line.strip())) else "shell"
    if code_of(call) is not None and not _EDITS.search(call.name):
        return "code"
    if _EDIT_KEYS & arguments.keys() or _EDITS.search(call.name):
        return "edit"
    if _SEEKS.search(call.name):
        return "search"
    return "read" if _READS.match(_own_name(call.name)) else "other"


def about_files(call: ToolCall) -> bool:
    """Whether a call that edits, reads or searches does so in files: `create_ticket` and `lookup_user` do not."""
    arguments = call.arguments or {}
    return names_path(arguments) or bool(_FILE_KEYS & arguments.keys()) or _OF_FILES.search(call.name) is not None


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


def target_of(call: ToolCall) -> str | None:
    """What a call works on: a file, or a shell line's deciding program with its subcommand (``git push``)."""
    line = command_of(call)
    if line is None:
        return path_of(call.arguments)
    words = [word for word in parse_line(line).deciding if not word.startswith("-")][:2]
    return " ".join(words) or None
