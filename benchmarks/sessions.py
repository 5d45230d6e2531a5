"""Synthetic sessions for `ingest.py`, grown from the tests' builders: rows with the fields and lengths of real ones.

A real session of Claude Code has some 1.7 KB a row, one of Codex 1.3 KB: an answer is a row a block, each with the
usage, a result stands there twice (the second time for the screen), thoughts are encrypted.
"""

from __future__ import annotations

import base64
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
_TEXT = (
    "the file test error value return import class module path function request model token data list number config "
    "result line read write check build run name type if else for while with open self none true false assert"
)
WORDS = _TEXT.split()
STEPS = 60  # in a session
_LIMITS = {name: {"used_percent": 11.0, "window_minutes": 300, "resets_in_seconds": 9000} for name in ("a", "b")}

Session = Callable[[int], bytes]


def prose(random_: random.Random, count: int) -> str:
    """So many words."""
    return " ".join(random_.choices(WORDS, k=count))


def code(random_: random.Random, lines: int) -> str:
    """A tool's output: lines of a program."""
    pick, number = random_.choice, random_.randrange
    return "\n".join(
        f"    {pick(WORDS)}_{number(999)} = {pick(WORDS)}({pick(WORDS)}, {number(9999)})  # {prose(random_, 4)}"
        for _ in range(lines)
    )


def claude_session(seed: int, *, first: int | None = None) -> bytes:
    """`STEPS` answers, each with a call and its result; every tenth fails. Behind others of the session `first`."""
    from unit.traces.formats.claude_file import ClaudeFile, call, text

    random_ = random.Random(seed)
    file = ClaudeFile(session=f"00000000-0000-4000-8000-{seed if first is None else first:012d}")
    file.user(prose(random_, 40))
    for step in range(STEPS):
        name, answer = f"toolu_{seed}_{step}", f"msg_{seed}_{step}"
        command = f"cat src/{random_.choice(WORDS)}_{random_.randrange(99)}.py"
        said: dict[str, Any] = {
            "type": "message",
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(seed + step),
        }
        file.assistant(answer, text(prose(random_, 30)), **said)
        file.assistant(answer, call(name, command=command, description=prose(random_, 5)), **said)
        for when in ("PreToolUse", "PostToolUse"):
            hook = {"hookEvent": when, "hookName": f"{when}:Bash", "command": f"check {prose(random_, 8)}"}
            file.row("progress", data={"type": "hook_progress", **hook}, toolUseID=name, parentToolUseID=name)
        failed = random_.random() < 0.1
        output = ("Exit code 1\n" if failed else "") + code(random_, random_.randrange(5, 80))
        file.result(name, output, is_error=failed)
        screen = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
        file.rows[-1]["toolUseResult"] = f"Error: {output}" if failed else screen
    names = {row["uuid"]: _uuid(seed, place) for place, row in enumerate(file.rows)}
    about = {"cwd": "/home/u/project", "userType": "external", "gitBranch": "main", "slug": "a-walk-in-the-park"}
    for row in file.rows:
        row |= {"uuid": names[row["uuid"]], "parentUuid": names.get(row["parentUuid"]), **about}
    if first is not None and seed > first:
        file.rows[0]["parentUuid"] = _uuid(seed - 1, len(file.rows) - 1)
    return file.data


def _usage(number: int) -> dict[str, Any]:
    """What an answer of the API says about its tokens."""
    cached = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 300 + number}
    counts = {"input_tokens": 3, "cache_creation_input_tokens": 300 + number, "cache_read_input_tokens": 52000}
    return {**counts, "cache_creation": cached, "output_tokens": 100 + number, "service_tier": "standard"}


def one_session(part: int) -> bytes:
    """A part of a session that goes on for as long as it is asked for."""
    return claude_session(part, first=0)


def _uuid(seed: int, place: int) -> str:
    return f"{seed:08d}-{place:04d}-4000-8000-000000000000"


def codex_session(seed: int) -> bytes:
    """The same shape as a Codex rollout."""
    from unit.traces.formats.codex_file import CodexFile

    random_ = random.Random(seed)
    file = CodexFile(f"00000000-0000-4000-8000-{seed:012d}")
    file.user(prose(random_, 40))
    for step in range(STEPS):
        thought = prose(random_, 30)
        file.event("agent_reasoning", text=thought)
        file.thinks(thought, content=None, encrypted_content=base64.b64encode(random_.randbytes(900)).decode())
        command = json.dumps({"command": ["bash", "-lc", f"cat {random_.choice(WORDS)}.py"]})
        file.calls(f"call_{seed}_{step}", arguments=command)
        failed = random_.random() < 0.1
        output = {"output": code(random_, random_.randrange(5, 80)), "metadata": {"exit_code": int(failed)}}
        file.output(f"call_{seed}_{step}", json.dumps(output))
        used = {"input_tokens": 1000 + step, "cached_input_tokens": 500, "output_tokens": 300, "total_tokens": 1300}
        file.event("token_count", info={"total_token_usage": used, "last_token_usage": used, "rate_limits": _LIMITS})
    file.says("Done.")
    return file.data


def conversation(number: int) -> bytes:
    """A request and its response, on a line."""
    random_ = random.Random(number)
    ask = [{"role": "user", "content": f"{number} {code(random_, 20)}"}]
    answer = {"role": "assistant", "content": prose(random_, 60)}
    choices = [{"index": 0, "message": answer, "finish_reason": "stop"}]
    row = {"request": {"model": "m", "messages": ask}, "response": {"model": "m", "choices": choices}}
    return json.dumps(row).encode() + b"\n"


FORMATS: dict[str, tuple[Session, int, bool]] = {
    "claude_code": (claude_session, STEPS, True),
    "codex_cli": (codex_session, STEPS + 1, False),
}
"""Builder, steps in a session, and whether the peer reads the format."""
