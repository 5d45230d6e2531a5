r"""What Codex itself says about a call in front of its output: an exit code, a refusal, a stop.

Codex writes results for the model as text, in a form that changed over time:

    {"output": "...", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}       shell, to 0.4x
    Exit code: 1\nWall time: 0.1 seconds\nOutput:\n...                             shell, later
    Chunk ID: ...\nWall time: ...\nProcess exited with code 1\n...Output:\n...     exec_command
    failed in sandbox MacosSeatbelt with execution error: ...                       the command ran and failed
    patch rejected: empty patch | apply_patch verification failed: ...              the call itself was wrong
    exec command rejected by user | aborted by user after 2.1s                      the user

Only these heads are read. The output behind them belongs to the command: whatever it says is for the site rules.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from postgrad.core.message import ResultStatus
from postgrad.traces.formats.shapes.plain import mapping

_EXIT = re.compile(r"(?:(?:Chunk ID|Wall time|Session ID)[^\n]*\n)*(?:Exit code:|Process exited with code) (-?\d+)\b")
_REJECTED = re.compile(r"(?:patch|exec command|command|apply_patch)? ?rejected by (?:the )?user", re.IGNORECASE)
_ABORTED = re.compile(r"(?:Wall time[^\n]*\n)?(?:command was )?aborted(?: by user|$)", re.IGNORECASE)
_FAILED = re.compile(
    r"failed in sandbox|execution error:|apply_patch verification failed|patch rejected|failed to parse|unsupported c"
    r"|(?:exec_command|write_stdin) failed|tool call error:|command timed out|sandbox denied",
    re.IGNORECASE,
)
_LONGEST_HEAD = 400


class Outcome(msgspec.Struct, frozen=True):
    """Whether it failed (None: the text does not say) and how."""

    is_error: bool | None = None
    status: ResultStatus = "ok"


def outcome(text: str) -> Outcome:
    """What the head of a result says."""
    head = text[:_LONGEST_HEAD]
    if _REJECTED.match(head):
        return Outcome(True, "rejected")
    if _ABORTED.match(head):
        return Outcome(True, "interrupted")
    code = _exit_code(text, head)
    if code is not None:
        return Outcome(code != 0, "error" if code else "ok")
    return Outcome(True, "error") if _FAILED.match(head) else Outcome()


def _exit_code(text: str, head: str) -> int | None:
    found = _EXIT.match(head)
    if found:
        return int(found[1])
    if not head.startswith("{") or '"metadata"' not in text:
        return None
    code: object
    try:
        code = _DECODE(text).metadata.exit_code
    except (ValueError, RecursionError):
        code = _exit_code_of(text)
    return code if isinstance(code, int) else None


def _exit_code_of(text: str) -> object:
    """Of a result of another shape, or one that only `json` reads."""
    try:
        return mapping(mapping(json.loads(text)).get("metadata")).get("exit_code")
    except (ValueError, RecursionError):
        return None


class _Metadata(msgspec.Struct):
    exit_code: Any = None


class _Result(msgspec.Struct):
    """The oldest form, without its output: that is most of it, and is skipped."""

    metadata: _Metadata


_DECODE = msgspec.json.Decoder(_Result).decode
