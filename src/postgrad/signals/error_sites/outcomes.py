"""What a result says about its call: the exit code wherever an application puts it, and the output that is left.

Applications wrap a command's output in their own frame: a first line, a JSON object, tags, a last line in brackets.
The frame is read only where it stands (the first or the last lines), because output quotes exit codes too. Not covered:
frames in the middle of an output, several exit codes in one result (the last frame counts).
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from postgrad.signals.words.phrases import Phrases

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CODE_WORDS = (
    r"(?:exit(?:ed)?|return)[ _-]?(?:code|status)|exited with(?: an?)?(?: exit)?(?: code| status)?"
    r"|returned(?: non-zero exit status)?"
    r"|code de (?:sortie|retour)|c[oó]digo de (?:salida|sa[ií]da|retorno)|codice di uscita"
    r"|(?:R[uü]ckgabe|Beendigungs|Exit-?)code|退出(?:代码|代碼|码|碼|状态|狀態)|返回(?:代码|码|值)|終了(?:コード|ステータス)"
    r"|код (?:выхода|возврата|завершения)|종료 코드|kod wyjścia|afsluitcode"
)
# A line that is nothing but a frame: "Exit code 1", "[Command finished with exit code 1]", "<exited with exit code 1>".
_FRAME = re.compile(
    rf"^\W*(?:(?:error|the )?\W*(?:command|process|script|shell|bash)\b[^:\n]{{0,60}}?|error\W+)?\(?(?:{_CODE_WORDS})"
    r"\W{0,4}?(-?\d{1,10})\b(?P<rest>.{0,80})$",
    re.IGNORECASE | re.MULTILINE,
)
_FRAMED = Phrases(_CODE_WORDS)
_NUMBER = re.compile(r"\d")
_QUOTED = re.compile(r"\W*error\b", re.IGNORECASE)
_SANDBOX = re.compile(
    r"\A\s*failed in sandbox .{0,200}?exit code: (-?\d+), stdout: (?P<out>.*), stderr: (?P<err>.*)\Z", re.DOTALL
)
_TAGGED = re.compile(
    r"\A\s*(?:<(?!output|stdout)(\w+)>[^<\n]{0,200}</\1>\s*){0,6}<(?:returncode"
    r"|exit_?code)>\s*(?P<code>-?\d+)\s*</(?:returncode|exit_?code)>",
    re.IGNORECASE,
)
_TAGS = re.compile(r"</?(?:output|stdout|stderr|output_head|output_tail|tool_use_error|error|warning)>", re.IGNORECASE)
# The frame of a shell tool that lists what it knows: every field on its own line.
_FIELDS = re.compile(r"^(?:Command|Directory|Working directory|Stdout|Stderr|Output|Error|Exit Code|Signal): ?", re.M)
_EMPTY_FIELD = re.compile(
    r"^(?:Directory|Error|Signal|Background PIDs|Process Group PGID|PGID): *(?:\(none\)|\(root\)|\d+|) *$\n?"
    r"|^(?:Wall time: [\d.]+ seconds|(?:Chunk ID|Original token count|Total output lines): \w+)$\n?",
    re.M,
)
_EDGE_LINES = 8
_LONGEST = 30_000  # characters kept at each end
# What applications that answer in plain text put around a result: a headline with the call, the state of the editor.
_HEADLINE = re.compile(
    r"\A\s*\[[\w-]+(?: (?:for|in|to|with) (?:'[^\n]{0,4000}?'|[^\n]{0,400}?))?\] Result:\s*", re.DOTALL
)
_EDITOR_STATE = re.compile(
    r"<environment_details>.*\Z|\n\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*\Z", re.DOTALL
)
_PROMPT = re.compile(r"^(?:\([\w.-]+\) )?[\w.-]+@[\w.-]+:[^\n]*?[#$%](?: |$)")
_CODE_KEYS = ("exit_code", "exitCode", "exitcode", "returncode", "return_code", "exit_status")


class Outcome(msgspec.Struct, frozen=True):
    """`code`: the exit code where the result tells one. `output`: what the command or tool wrote, frame taken off."""

    code: int | None
    output: str


def clean(text: str) -> str:
    """The text without terminal colours, application's frame and carriage returns; the raw text stays in the trace.

    Of a very long text the beginning and the end are kept: what went wrong stands there.
    """
    cut = text if len(text) <= 2 * _LONGEST else f"{text[:_LONGEST]}\n[...]\n{text[-_LONGEST:]}"
    plain = (_ANSI.sub("", cut) if "\x1b" in cut else cut).replace("\r\n", "\n")
    headline = _HEADLINE.match(plain)
    bare = plain[headline.end() :] if headline else plain
    if "<environment_details>" in bare or "\n(Open file: " in bare:
        bare = _EDITOR_STATE.sub("", bare)
    return bare if len(bare) == len(plain) else bare.rstrip()


def typed_output(text: str, line: str | None) -> str:
    """What a terminal shows after keys were typed, without the prompts and the typed line itself."""
    rows = text.split("\n")
    typed = {row.strip() for row in (line or "").split("\n") if row.strip()}
    kept = (row for row in rows if not _PROMPT.match(row) and row.strip().removeprefix("> ") not in typed)
    return "\n".join(kept)


def read_outcome(text: str, *, quotes: bool = False) -> Outcome:
    """Exit code and output of a result's text (colours already taken off).

    `quotes`: the output is text that another program wrote, which may end in that program's own "Error: ... code 1".
    """
    found = _json(text) or _sandboxed(text) or _tagged(text) or _framed(text, quotes=quotes)
    return Outcome(None, found.output) if found.code == -1 else found  # -1: it still runs


def _json(text: str) -> Outcome | None:
    """``{"output": ..., "metadata": {"exit_code": 1}}`` and objects with streams and a code of their own."""
    value = json_object(text)
    if value is None:
        return None
    metadata = value.get("metadata")
    found = _code(value) if _code(value) is not None else _code(metadata if isinstance(metadata, dict) else {})
    if found is None:
        return None
    streams = (value.get(key) for key in ("output", "stdout", "stderr", "error", "aggregated_output"))
    return Outcome(found, "\n".join(stream for stream in streams if isinstance(stream, str) and stream))


def json_object(text: str) -> dict[str, Any] | None:
    """The text as a JSON object, None if it is none."""
    if not text.lstrip().startswith("{") or not text.rstrip().endswith("}"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _code(value: dict[str, Any]) -> int | None:
    return next((value[key] for key in _CODE_KEYS if isinstance(value.get(key), int)), None)


def _sandboxed(text: str) -> Outcome | None:
    """In spite of its words mostly the command's own exit code (Codex)."""
    found = _SANDBOX.match(text)
    return Outcome(int(found[1]), f"{found['out']}\n{found['err']}".strip("\n")) if found else None


def _tagged(text: str) -> Outcome | None:
    found = _TAGGED.match(text)
    return Outcome(int(found["code"]), _TAGS.sub("", text[found.end() :]).strip("\n")) if found else None


def _framed(text: str, *, quotes: bool) -> Outcome:
    """A frame line among the first or the last lines; both ends of a long text are looked at, never all of it."""
    lines = text.split("\n")
    edges = [*range(min(_EDGE_LINES, len(lines))), *range(max(_EDGE_LINES, len(lines) - _EDGE_LINES), len(lines))]
    short = (at for at in edges if len(lines[at]) < 300 and _NUMBER.search(lines[at]) and _FRAMED.possible(lines[at]))
    own = (at for at in short if not (quotes and _QUOTED.match(lines[at])))
    framed = ((at, found) for at in own if (found := _FRAME.match(lines[at])))
    at, found = next(framed, (0, None))
    if found is None:
        return Outcome(None, text)
    rest = found["rest"].strip(" .:;,)]>}\"'")
    kept = lines[:at] + ([rest] if rest else []) + lines[at + 1 :]
    return Outcome(int(found[1]), _unframed("\n".join(kept)))


def _unframed(text: str) -> str:
    return _TAGS.sub("", _FIELDS.sub("", _EMPTY_FIELD.sub("", text)))
