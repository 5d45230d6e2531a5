"""Rule 6: which failed test run or check is a mistake, and whose?

A failed run counts when the model edited something since the last run that passed (or the start), and the failure was
not wanted. Wanted (`expected`): a script or a command that shows the bug fails before anything was fixed (but not on
its own syntax or imports); a test that was written before its fix fails. The blame goes to the latest edit whose file
the failure names, else to the latest edit (`edits`).
"""

from __future__ import annotations

import re

from postgrad.core.trace import Step
from postgrad.signals.error_sites.edits import (
    BROKEN,
    FRAMES,
    TEST_FILE,
    Edit,
    base,
    blamed,
    edits_before_run,
    edits_since_pass,
    names_file,
)
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.rules import Verdict
from postgrad.signals.shell.commands import edited_files
from postgrad.signals.shell.programs import is_test_run

_REPRODUCES = re.compile(r"(?:\b|(?<=[_\-/]))repro(?:duc\w*|[_-]?\d*|[_-]\w*)?(?![a-zA-Z])", re.IGNORECASE)
# What the model says before it runs a command that is to fail.
_MEANS_TO_SHOW = re.compile(
    r"\A[^\n]{0,400}?\breproduc(?:e|ing|es)\b|\A\W*(?:\w+\W+){0,12}?(?:(?:see|watch|confirm|show|verify"
    r"|check) (?:\w+ ){0,4}?(?:bug|fails?|failing|breaks|crash(?:es)?|is broken))\b",
    re.IGNORECASE,
)
_NEVER_SHOWN = re.compile(
    r"^usage: |no such file|command not found|: not found$|syntax error|unrecogni[sz]ed", re.I | re.M
)

# What a program that was there before shows, and not what a line typed for the occasion does.
_CRASHES = re.compile(
    r"segmentation fault|core dumped|^panic: |^thread '[^'\n]*'(?: \(\d+\))? panicked|^Traceback \(most recent"
    r"|^Exception in thread"
    r"|^Unhandled |assertion .{0,80}failed|\bAborted\b",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE = re.compile(r"\s-(?:c|e|r|-eval)\b|<<|/tmp/")
_OWN_PANIC = re.compile(r"^thread '[^'\n]*'(?: \(\d+\))? panicked at (?!/rustc/|[^\n]*[/\\]\.cargo[/\\])", re.MULTILINE)
_NOT_OWN = re.compile(r"^<|site-packages|dist-packages|[/\\]lib[/\\]python|^/tmp/")
_FAILURE = re.compile(
    r"\b(?:seg-?fault\w*|crash\w*|fail(?:s|ed|ing|ure)?|throws?|panics?|hangs?|broken|bugs?|traceback|exceptions?"
    r"|errors?|revient\w*|fall[aoóe]\w*|peta|plante\w*|abst[uü]rz\w*|st[uü]rzt|kaputt|fehler|casse|erreur|quebra\w*"
    r"|erro"
    r"|trava|rompe|падает|упал\w*|ошибк\w*|сломан\w*)\b|报错|崩溃|崩潰|失败|失敗|エラー|落ち|壊れ",
    re.IGNORECASE,
)
_LONGEST = 4000  # characters of the user's words


def judge_run(history: History, evidence: Evidence, *, step: int) -> tuple[Verdict, int]:
    """Verdict on the failed run of `evidence` at `step`, and the index of the step to blame."""
    line, text = evidence.line or "", evidence.outcome.output
    at_once = edits_before_run(evidence, step)
    edits = [*edits_since_pass(history, step, line=line), *at_once]
    if reproduces(line):
        edits = [edit for edit in edits if not _shows_the_bug(edit.path)]
        if edits:
            return "real", blamed(edits, text)
        return ("real" if _broken_itself(text) else "expected"), step
    if not edits:
        return "benign", step
    asked = "" if at_once else line  # `sed -i ... ring.c && make test` names the file that it edits
    first = is_test_run(line) and _test_first(edits, asked) and not _tests_were_wrong(history, step)
    if first or (is_test_run(line) and _code_made_it_pass(history, evidence, edits, step)):
        return "expected", step
    return "real", blamed(edits, text)


def shows_bug(history: History, evidence: Evidence, step: Step) -> bool:
    """Whether a command is there to show the bug, and nothing was changed so far.

    The model says so itself; or a program that is there crashes, in its own code or as the user had said.
    """
    if evidence.line is None or reproduces(evidence.line):
        return False
    said = evidence.outcome.output
    crashes = _CRASHES.search(said) is not None and not _INLINE.search(evidence.line)
    falls = crashes and (_FAILURE.search(_asked(history, step)) is not None or _own_crash(said))
    meant = falls or _MEANS_TO_SHOW.match(step.action.text) is not None
    never = [found[0].lower() for found in _NEVER_SHOWN.finditer(said)]  # but what the user had told of is the bug
    asked = _asked(history, step).lower() if never else ""
    if not meant or any(words not in asked for words in never) or BROKEN.search(said):
        return False
    return all(_shows_the_bug(edit.path) for edit in edits_since_pass(history, step.index, line=evidence.line))


def _own_crash(said: str) -> bool:
    """Whether a program of the project fell in its own code: it did so before the model came."""
    frames = FRAMES.findall(said)
    return (bool(frames) and _NOT_OWN.search(frames[-1]) is None) or _OWN_PANIC.search(said) is not None


def _asked(history: History, step: Step) -> str:
    """The user's last words before a step."""
    messages = (history.trace.messages[key] for key in reversed(step.request.messages))
    return next((message.text for message in messages if message.role == "user" and message.text), "")[:_LONGEST]


def _broken_itself(text: str) -> bool:
    """The script that shows the bug does not come to it: it has no right syntax, or imports what is not there."""
    frames = FRAMES.findall(text)
    return bool(frames) and BROKEN.search(text) is not None and _REPRODUCES.search(base(frames[-1])) is not None


def reproduces(line: str) -> bool:
    """Whether the line runs something made to show a bug."""
    return _REPRODUCES.search(line) is not None


def _shows_the_bug(path: str) -> bool:
    return _REPRODUCES.search(base(path)) is not None or TEST_FILE.search(path) is not None


def _test_first(edits: list[Edit], line: str) -> bool:
    """Only test files were touched since the last pass, the first touch made one, and the run names them or all."""
    named = all(names_file(line, edit.name) for edit in edits)
    whole = all(edit.tests for edit in edits)
    return edits[0].creates and (named or whole)


def _tests_were_wrong(history: History, step: int) -> bool:
    """Whether the tests were mended next, and nothing else, until a run of tests passed."""
    changed = False
    for _, other in history.answered(after=step):
        paths = edited_files(other.call)
        if any(not TEST_FILE.search(path) for path in paths):
            return False
        changed = changed or bool(paths)
        if other.line is not None and is_test_run(other.line) and history.succeeded(other):
            return changed
    return False


def _code_made_it_pass(history: History, evidence: Evidence, edits: list[Edit], step: int) -> bool:
    """Only tests were touched since the last pass, and the next edits, of code alone, made the very same run pass."""
    if not all(edit.tests for edit in edits):
        return False
    changed = False
    for _, other in history.answered(after=step):
        paths = edited_files(other.call)
        if any(TEST_FILE.search(path) for path in paths):
            return False
        changed = changed or bool(paths)
        if other.line == evidence.line and history.succeeded(other):
            return changed
    return False
