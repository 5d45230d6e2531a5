"""Results that the application cut before the model saw them, found by the marks that applications leave.

The model saw the cut text, so the context is as it stands; what is lost is the rest, and whoever runs the call again
gets another text. Every such result is an event `cut_output` with the mark as its text and the rule in its data, as
`claude_code` has it for outputs that were kept elsewhere. A mark counts where the application writes it: at the
beginning of a line, or between its own signs, and with its own words; a sentence that speaks of truncation is none.
All rules are tried whatever wrote the source, because agents are also known by their requests (API logs, spans).

Not covered: pages of a file that the model asked for in pages, and texts that only the log cut (the format's reader
says so).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from postgrad.core.message import ToolResult
from postgrad.core.trace import Event, Trace

KIND = "cut_output"
_COUNT = r"\d[\d,.]*[kKMG]?B?\+?(?: (?:more|of \d[\d,]*))?"
_UNIT = r"(?:lines?|chars?|characters?|bytes|tokens|[kKM]i?B|items|entries|results|matches|files|rows|words)"
_GONE = r"(?:truncated|omitted|elided|clipped|removed|hidden|cut off|skipped|dropped)"
_SIGNS = r"[ \t]*(?:\[|\(|<|\.\.\.|…|-{2,}|#|\*{1,3}|\.\.)[ \t\[(<.…*-]*"

_RULES = {
    "claude_code": (
        r"<persisted-output>",
        r"\[Truncated: PARTIAL view",
        r"Output too large \([^)\n]{1,20}\)\. Full output saved to",
        r"Error: result \(\d[\d,]* characters\) exceeds maximum",
    ),
    "codex_cli": (r"Total output lines: \d+\s*$",),
    "gemini_cli": (
        r"Tool output was too large and has been truncated",
        r"IMPORTANT: The file content has been truncated",
        r"Output too large\. Showing (?:the )?first",
        r"<tool_output_masked>",
    ),
    "opencode": (
        r"\(Output was truncated",
        r"bash tool truncated output as it exceeded",
        r"The tool call succeeded but the output was truncated",
        r"\(Results (?:are|were) truncated",
        r"\[Old tool result content cleared\]",
    ),
    "openhands": (r"<NOTE>This file is too large to display entirely",),
    "swe_agent": (
        r"Observations should not exceed(?:ed)? \d+ characters",
        r"Old environment output: \(\d+ lines? omitted\)",
    ),
    "mini_swe_agent": (r"<elided_chars>", r"The output of your last command was too long"),
    "cline": (
        r"\(File list truncated",
        r"Showing (?:only )?(?:the )?first [\d,]+ of [\d,]+\+? (?:results|matches|lines)",
        r"Showing only [\d,]+ of [\d,]+ total lines",
        r"\[\[NOTE\] This file read has been removed to save space",
        r"\[File truncated",
    ),
    "copilot": (
        r"\[File content truncated",
        r"(?:Output|File) too large to read at once",
        r"<output too long",
    ),
}
_INLINE = {
    "codex_cli": rf"…{_COUNT} {_UNIT} truncated…",
    "openhands": r"\[\.\.\. Observation truncated due to length \.\.\.\]|<response clipped>",
    "counted": rf"(?:\.\.\.|…) ?\[?{_COUNT} {_UNIT} {_GONE}\]? ?(?:\.\.\.|…)|\[{_COUNT} {_UNIT} {_GONE}[\].]",
}
_GENERAL = (
    rf"{_SIGNS}{_COUNT} {_UNIT} (?:were |was |have been |has been )?{_GONE}\b",
    rf"{_SIGNS}(?:removed|omitted|skipped|truncated|elided|dropped) {_COUNT}(?: {_UNIT})?\b",
    rf"{_SIGNS}(?i:(?:previous |remaining |command |tool |the |file |rest of )*"
    rf"(?:output|content|contents|result|results|response|text|observation|log|diff) (?:was |were |is |are |has been )?"
    r"(?:truncated|clipped|omitted|elided|cut off))\b",
    rf"{_SIGNS}(?i:truncated)\b[^\n]{{0,80}}$",
)
_NEEDLES = (
    *("runcated", "RUNCATED", "mitted", "lided", "lipped", "emoved", "leared]", "too large", "too long"),
    *("howing ", "persisted-", "Total output", "_masked", "dropped", "hidden", "skipped"),
)
_LONGEST = 200  # characters of a mark that are kept


def _rule(name: str, *patterns: str) -> str:
    starts = "|".join(rf"^[ \t]*(?:{pattern})[^\n]*" for pattern in patterns)
    inline = _INLINE.get(name)
    return f"(?P<{name}>{'|'.join(part for part in (starts, inline) if part)})"


_MARKS = re.compile(
    "|".join(
        [
            *(_rule(name, *patterns) for name, patterns in _RULES.items()),
            f"(?P<counted>{_INLINE['counted']})",
            "(?P<general>" + "|".join(rf"^(?:{pattern})[^\n]*" for pattern in _GENERAL) + ")",
        ]
    ),
    re.MULTILINE,
)


def cut_by(text: str) -> tuple[str, str] | None:
    """The rule by which a result is known to be cut, and the mark in it; None for a whole one."""
    for start, stop in _suspicious(text):
        found = _MARKS.search(text, start, stop)
        if found is not None:
            return f"{KIND}/{found.lastgroup}", found[0].strip()[:_LONGEST]
    return None


def _suspicious(text: str) -> Iterator[tuple[int, int]]:
    """Where a word of a mark stands: looking for words is many times faster than the expressions."""
    for needle in _NEEDLES:
        at = text.find(needle)
        while at >= 0:
            start, stop = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            stop = min(len(text) if stop < 0 else stop, at + _LONGEST)
            yield max(start, at - _LONGEST), stop
            at = text.find(needle, stop)


def with_cut_outputs(trace: Trace) -> Trace:
    """`trace` with an event for every result that was cut and has none yet."""
    known = {event.data.get("call") for event in trace.events if event.kind == KIND}
    found = [event for step in trace.steps for event in _events(trace, step.results, step.index + 1, known)]
    found += _events(trace, trace.orphans, 0, known)
    if not found:
        return trace
    events = sorted((*trace.events, *found), key=lambda event: (event.before_step, event.record))
    return msgspec.structs.replace(trace, events=tuple(events))


def _events(trace: Trace, results: tuple[ToolResult, ...], before: int, known: set[object]) -> Iterator[Event]:
    for result in results:
        if result.call_id not in known and (cut := cut_by(result.text)) is not None:
            rule, mark = cut
            record = trace.result_records.get(result.call_id, -1)
            yield Event(KIND, before, record, mark, {"call": result.call_id, "rule": rule})
