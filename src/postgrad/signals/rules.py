"""Rules on one failed result: what kind of failure is it, and is the model to blame?

The rules run in the order of `RULES`; the first that speaks decides. They read role, flag and status before words,
and words only at the start of a result, so a file that quotes an error is no error. What needs the rest of the
trace (a user's decision, test runs, repeats) is decided by `signals.sites`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Literal

import msgspec

from postgrad.core.message import Tool, ToolCall, ToolResult
from postgrad.signals.commands import (
    PROBES,
    SEARCHES,
    WAITS,
    command_of,
    is_check,
    is_test_run,
    path_of,
    programs,
)
from postgrad.signals.faults import call_fault, text_fault

Verdict = Literal["real", "user_correction", "user_stop", "benign", "env", "cascade", "expected"]

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_EXIT = re.compile(r"\A\s*(?:Error:\s*)?(?:Process exited with code|Exit code:?)\s*(\d+)[^\S\n]*\n?", re.IGNORECASE)
_CASCADE = re.compile(
    r"\A\W*(tool_use_error\W+)?(sibling tool call errored|cancelled: parallel tool call)", re.IGNORECASE
)
_SECOND_TOOL = re.compile(r"was not executed because a tool has already been used", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\A\W*(the user (doesn't|does not) want to|user rejected|rejected by (the )?user|the user (denied|rejected)"
    r"|user denied|request interrupted by user|(patch|command|tool call) (was )?(rejected|denied) by (the )?user)",
    re.IGNORECASE,
)
_HOOK = re.compile(
    r"\A\W*(tool_use_error\W+)?((pre|post)tooluse\b|pre-commit|\S+ hook (error|blocked|failed)|(blocked|denied) by"
    r"|permission to use .{0,300}has been denied|claude requested permissions|hook (error|blocked))",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"nothing to commit|already exists|already up[- ]to[- ]date|nothing added to commit", re.IGNORECASE
)
_MISSING_PATH = re.compile(r"no such file or directory|does not exist|cannot (access|stat)|not found", re.IGNORECASE)
_SUGGESTS = re.compile(r"did you mean|similar (file|name)|instead", re.IGNORECASE)
_ENV = re.compile(
    r"command not found|could not resolve host|network is unreachable|temporary failure in name resolution"
    r"|cannot open shared object file|error while loading shared libraries|no space left on device"
    r"|status code (429|5\d\d)|\b(429 too many requests|50[234] (bad gateway|service unavailable|gateway time))"
    r"|overloaded_error|rate limit(ed)? exceeded|(command )?timed out after",
    re.IGNORECASE,
)

_FAILED = re.compile(
    r"\b[1-9]\d* (failed|failures?|failing)\b|^FAILED[ (]|FAILED \(|\berror TS\d+|^Traceback \(most recent call last"
    r"|^--- FAIL|^error(\[E\d+\])?: |^Found [1-9]\d* errors?\b",
    re.MULTILINE,
)


class Evidence(msgspec.Struct, frozen=True):
    """A failed result with its call; `text` is the result without terminal colours."""

    call: ToolCall
    result: ToolResult
    tools: tuple[Tool, ...]
    text: str


class Finding(msgspec.Struct, frozen=True):
    """What a rule says."""

    kind: str
    verdict: Verdict
    rule: str


Rule = Callable[[Evidence], Finding | None]


def clean(text: str) -> str:
    """The text without terminal colours; the raw text stays in the trace."""
    return _ANSI.sub("", text)


def has_failed(call: ToolCall, result: ToolResult) -> bool:
    """The source's flag or status; where it says nothing, only texts that nothing but a failure starts with."""
    if result.status != "ok" or result.is_error is not None:
        return result.status not in ("ok", "pending") or result.is_error is True
    text = clean(result.text).lstrip()
    code = _EXIT.match(text)
    if text.startswith("<tool_use_error>") or (code is not None and code[1] != "0"):
        return True
    reads = command_of(call) is not None or path_of(call.arguments) is not None
    return not reads and (text.startswith("Error: ") or _json_error(text))


def _json_error(text: str) -> bool:
    """An API's error object: {"error": ...} with something in it."""
    if not text.startswith("{"):
        return False
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value.get("error"))


def is_refusal(result: ToolResult) -> bool:
    """Whether a user said no to the call or stopped it."""
    if result.status in ("rejected", "interrupted"):
        return True
    return result.is_error is not False and _REFUSAL.match(clean(result.text)) is not None


def is_wait(call: ToolCall) -> bool:
    """A call that only waits or polls; cutting it short says nothing about it."""
    line = command_of(call)
    if line is not None:
        return bool(found := programs(line)) and found[0] in WAITS
    return call.name.lower() in ("taskoutput", "bashoutput", "wait", "sleep")


def cascade(evidence: Evidence) -> Finding | None:
    """Another call of the same response failed first; the root call has the site."""
    if evidence.result.status == "cascade" or _CASCADE.match(evidence.text):
        return Finding("cascade", "cascade", "cascade/1")
    if _SECOND_TOOL.search(evidence.text[:300]):
        return Finding("invalid_call", "real", "cascade/1")
    return None


def hook(evidence: Evidence) -> Finding | None:
    """A hook or a permission rule blocked the call; its text is the hint."""
    return Finding("hook_block", "real", "hook/1") if _HOOK.match(evidence.text) else None


def invalid_call(evidence: Evidence) -> Finding | None:
    """The call itself is wrong: unknown tool, broken or unfit arguments, an edit that does not apply."""
    call, text = evidence.call, evidence.text
    fault = text_fault(text[:2000])
    from_tool = text.lstrip().startswith("<tool_use_error>") or command_of(call) is None
    if _names_missing_file(text) and from_tool:
        if not path_of(call.arguments) or _SUGGESTS.search(text):
            return Finding("invalid_call", "real", "invalid_call/1")
        probing = call.name.lower() in ("read", "read_file", "view", "ls", "cat")
        return Finding("invalid_call", "benign" if probing else "real", "invalid_call/1")
    broken = call_fault(call, evidence.tools)
    if broken is not None or text.lstrip().startswith("<tool_use_error>") or (from_tool and fault is not None):
        return Finding("invalid_call", "real", "invalid_call/1")
    return None


def _names_missing_file(text: str) -> bool:
    fault = text_fault(text[:2000])
    return fault is not None and fault.kind == "missing_file"


def failed_run(evidence: Evidence) -> Finding | None:
    """A test run, a type check or a build failed; whether it is a site depends on the edits before it."""
    line = command_of(evidence.call)
    if line is None or _environment(evidence):
        return None
    if is_test_run(line):
        return Finding("test_failed", "real", "test_failed/1")
    return Finding("check_failed", "real", "test_failed/1") if is_check(line) else None


def failed_command(evidence: Evidence) -> Finding | None:
    """Any other failure, minus searches without a match, probes, and what the environment lacks."""
    line = command_of(evidence.call)
    code, output = exit_code(evidence.text)
    if line is not None:
        if code in (130, 137, 143):
            return Finding("tool_error", "benign", "command/1")
        if _no_match(line, code, output):
            return Finding("no_match", "benign", "command/1")
        if _probe(line, output):
            return Finding("tool_error", "benign", "command/1")
    if _NOTHING.search(output[:2000]):
        return Finding("tool_error", "benign", "command/1")
    return Finding("tool_error", "env" if _environment(evidence) else "real", "command/1")


def failed_in_words(line: str, text: str) -> Finding | None:
    """A test run or check whose exit code got lost (`| tail`), but whose last words are of failure."""
    if not _FAILED.search(text):
        return None
    if is_test_run(line):
        return Finding("test_failed", "real", "silent_failure/1")
    return Finding("check_failed", "real", "silent_failure/1") if is_check(line) else None


def exit_code(text: str) -> tuple[int | None, str]:
    """The exit code that a result starts with, and the output after it."""
    found = _EXIT.match(text)
    return (int(found[1]), text[found.end() :]) if found else (None, text)


def _environment(evidence: Evidence) -> bool:
    code, output = exit_code(evidence.text)
    return code in (124, 127) or _ENV.search(output[:2000]) is not None


def _no_match(line: str, code: int | None, output: str) -> bool:
    """Exit 1 of a search that wrote no complaint of its own; after `&&`, only when nothing at all was written."""
    names = programs(line)
    if code != 1 or not names or names[-1] not in SEARCHES:
        return False
    if "&&" in line and output.strip():
        return False
    return not any(row.startswith(f"{names[-1]}:") for row in output.splitlines())


def _probe(line: str, output: str) -> bool:
    """`ls`, `cat`, `test` of a path that is not there: "no" is the answer."""
    names = programs(line)
    asked = bool(names) and all(name in PROBES | {"cd", "echo"} for name in names)
    rows = [row for row in output.splitlines() if row.strip()]
    return asked and not _SUGGESTS.search(output) and any(_MISSING_PATH.search(row) for row in rows)


RULES: tuple[Rule, ...] = (cascade, hook, invalid_call, failed_run, failed_command)
