"""Rule 6: which failed test run or check is a mistake, and whose?

A failed run counts when the model edited something since the last run that passed (or the start), and the failure was
not wanted. Wanted (`expected`): a script that shows the bug fails before anything was fixed (but not on its own syntax
or imports); a test that was written before its fix fails. The blame goes to the latest edit whose file the failure
names, else to the latest edit. An edit is whatever writes a file: an edit tool, a patch, a redirection, `sed -i`.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from postgrad.signals.commands import edited_files, simple_commands
from postgrad.signals.evidence import Evidence
from postgrad.signals.history import History
from postgrad.signals.rules import Verdict
from postgrad.signals.shell_programs import checkers, is_check, is_test_run

_REPRODUCES = re.compile(
    r"\brepro(?:duce\w*|duction|_?\d*)?(?=[\W_\d]|$)|(?<=[_\-/])repro\w*|\brepro\w*", re.IGNORECASE
)
_FRAMES = re.compile(r"^\s*File \"([^\"]+)\", line \d+", re.MULTILINE)
_BROKEN = re.compile(r"^(?:SyntaxError|IndentationError|TabError|NameError|ImportError): ", re.MULTILINE)
_TEST_FILE = re.compile(r"(?:^|[/\\_.-])(?:tests?|specs?)(?:[/\\_.-]|$)|[a-z]Tests?\.|__tests__", re.IGNORECASE)
_INERT = re.compile(r"\.(?:md|txt|rst|log|out|adoc)$|(?:^|/)tmp/", re.IGNORECASE)


class Edit(NamedTuple):
    """A file that was changed at a step; `creates` when the call made or overwrote it whole."""

    step: int
    path: str
    creates: bool


def judge_run(history: History, evidence: Evidence, *, step: int) -> tuple[Verdict, int]:
    """Verdict on the failed run of `evidence` at `step`, and the index of the step to blame."""
    line, text = evidence.line or "", evidence.outcome.output
    edits = [*edits_since_pass(history, step, line=line), *_edits_before_run(evidence, step)]
    if reproduces(line):
        edits = [edit for edit in edits if not _shows_the_bug(edit.path)]
        if edits:
            return "real", _blamed(edits, text)
        return ("real" if _broken_itself(text) else "expected"), step
    if not edits:
        return "benign", step
    if is_test_run(line) and _test_first(edits, line):
        return "expected", step
    return "real", _blamed(edits, text)


def _broken_itself(text: str) -> bool:
    """The script that shows the bug does not come to it: it has no right syntax, or imports what is not there."""
    frames = _FRAMES.findall(text)
    return bool(frames) and _BROKEN.search(text) is not None and _REPRODUCES.search(_base(frames[-1])) is not None


def reproduces(line: str) -> bool:
    """Whether the line runs something made to show a bug."""
    return _REPRODUCES.search(line) is not None


def edits_since_pass(history: History, stop: int, *, line: str) -> list[Edit]:
    """A build that passes does not vouch for the tests, nor one linter for another: only a run of the kind does."""
    edits: list[Edit] = []
    for step, evidence in history.answered(before=stop):
        files = [path for path in edited_files(evidence.call) if not _INERT.search(path)]
        runs = evidence.line is not None and _vouches(evidence.line, line)
        went_well = history.succeeded(evidence)
        if not went_well:  # `cat > a.py <<EOF ...; python a.py`: what failed is the run, the file is there
            files = [path for path in files if evidence.line is not None and _writes_first(evidence.line, path)]
        if runs and went_well:
            edits.clear()
        creates = evidence.kind == "shell" or re.search(r"write|create", evidence.call.name, re.IGNORECASE) is not None
        sub = (evidence.call.arguments or {}).get("command")
        edits += [Edit(step.index, path, creates or sub == "create") for path in files]
    return edits


def _vouches(passed: str, line: str) -> bool:
    """Whether a run of `passed` that went well says that `line` would have, too."""
    return is_test_run(passed) if is_test_run(line) else bool(checkers(passed) & checkers(line))


def _writes_first(line: str, path: str) -> bool:
    """Whether a file is written by the line before its last command."""
    commands = simple_commands(line)
    return len(commands) > 1 and -1 < line.find(path) < line.rfind(commands[-1][0])


def _edits_before_run(evidence: Evidence, step: int) -> list[Edit]:
    """``sed -i ... && pytest``: the line itself edits, and then runs."""
    line = evidence.line or ""
    runs = [words for words in simple_commands(line) if is_test_run(shlex.join(words)) or is_check(shlex.join(words))]
    start = line.rfind(runs[0][0]) if runs else 0
    made = [path for path in edited_files(evidence.call) if -1 < line.find(path) < start and not _INERT.search(path)]
    return [Edit(step, path, creates=_TEST_FILE.search(path) is not None) for path in made]


def _shows_the_bug(path: str) -> bool:
    return _REPRODUCES.search(_base(path)) is not None or _TEST_FILE.search(path) is not None


def _test_first(edits: list[Edit], line: str) -> bool:
    """Only test files were touched since the last pass, the first touch made one, and the run names them or all."""
    named = all(_base(edit.path) in line for edit in edits)
    whole = all(_TEST_FILE.search(edit.path) for edit in edits)
    return edits[0].creates and (named or whole)


def _blamed(edits: list[Edit], text: str) -> int:
    named = [edit for edit in edits if _base(edit.path) in text]
    return (named or edits)[-1].step


def _base(path: str) -> str:
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
