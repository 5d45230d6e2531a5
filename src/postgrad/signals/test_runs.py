"""Which failed test run is a mistake, and whose? Rule ``test_failed/1``.

A failed run counts when the model edited something since the last run that passed (or the start), and the failure
was not wanted: the run of a reproduction script, or of a test that was written before its fix, is `expected`. The
blame goes to the latest edit whose file the failure names, else to the latest edit. Edits are calls of tools whose
name says so and that name a file; edits by shell commands are not seen.
"""

from __future__ import annotations

import re

from postgrad.core.message import ToolCall
from postgrad.core.trace import Trace
from postgrad.signals.commands import command_of, is_check, is_test_run, path_of
from postgrad.signals.rules import Verdict, clean, failed_in_words, has_failed

_EDITS = re.compile(r"edit|write|patch|replace|create|insert", re.IGNORECASE)
_CREATES = re.compile(r"write|create", re.IGNORECASE)
_REPRODUCES = re.compile(r"\b(test_)?repro(duce|duction)?(?=[\W_\d]|$)", re.IGNORECASE)

Edit = tuple[int, ToolCall, str]


def judge_run(trace: Trace, *, step: int, line: str, text: str) -> tuple[Verdict, int]:
    """Verdict on the failed run `line` at `step`, and the index of the step to blame."""
    if _REPRODUCES.search(line):
        return "expected", step
    edits = _edits_since_pass(trace, step, tests=is_test_run(line))
    if not edits:
        return "benign", step
    if _test_first(edits, line):
        return "expected", step
    named = [edit for edit in edits if _base(edit[2]) in text]
    return "real", (named or edits)[-1][0]


def _edits_since_pass(trace: Trace, stop: int, *, tests: bool) -> list[Edit]:
    """A build that passes does not vouch for the tests, so only a run of the same kind starts afresh."""
    passes = is_test_run if tests else is_check
    edits: list[Edit] = []
    for step in trace.steps:
        if step.index >= stop:
            break
        results = {result.call_id: result for result in step.results}
        for call in step.action.tool_calls:
            result = results.get(call.id)
            line, path = command_of(call), path_of(call.arguments)
            if result is None or has_failed(call, result):
                continue
            if line is not None and failed_in_words(line, clean(result.text)) is not None:
                continue
            if line is not None and passes(line):
                edits.clear()
            elif line is None and path is not None and _EDITS.search(call.name):
                edits.append((step.index, call, path))
    return edits


def _test_first(edits: list[Edit], line: str) -> bool:
    """Only test files that the run names were touched since the last pass, and the first touch created one."""
    ours = [edit for edit in edits if _base(edit[2]) in line]
    return len(ours) == len(edits) and _CREATES.search(ours[0][1].name) is not None


def _base(path: str) -> str:
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
