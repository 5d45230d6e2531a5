"""Rule 8: failures that no flag tells, found by what the result says.

What may count depends on the tool. A shell line is judged by the exit code in its text; where that code was lost on
the way (`| tail`, `; echo`) or never recorded, a test run or build is judged by its own summary, a program by its
complaint at the start of a line. A reader of files (`cat`, `grep`) can only complain in its own name: what it shows was
written by somebody else. An edit tool says in its first words that nothing was changed; a code cell ends in a
traceback; any other tool answers "Error: ..." or an error object. Not covered: wrong results without any word of
failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from postgrad.signals.error_sites.answers import ANSWERED_ERROR, answers_with_failure
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.shell.commands import about_files
from postgrad.signals.shell.lines import parse_line
from postgrad.signals.shell.programs import is_check, is_test_run, only_reads
from postgrad.signals.words.failed_runs import COUNTED, CRASH, FINDING, NOT_FAILED, PASSED, SUMMARY
from postgrad.signals.words.fault_texts import text_fault
from postgrad.signals.words.faults import FaultKind, broken_arguments
from postgrad.signals.words.wordings import (
    COMMAND_NOT_FOUND,
    ERROR_WORD,
    NO_SUCH_FILE,
    PERMISSION_DENIED,
    TIMED_OUT,
)

_SHELL_COMPLAINT = re.compile(
    r"^(?:\S*/)?(?:ba|z|da|k|fi|c|tc)?sh(?::? line \d+|: \d+|:\d+)?: (?!warning:)\S", re.MULTILINE
)
_SCRIPT_COMPLAINT = re.compile(r"^(\S+\.(?:ba|z)?sh): line \d+: \S", re.MULTILINE)
_GIT_COMPLAINT = re.compile(
    r"^(?:fatal|error)\s?[:：] |^merge: .* - not something we can merge|^There is no tracking information for",
    re.MULTILINE,
)
# Programs that do not begin with their name.
_UNNAMED_COMPLAINTS = {
    "jq": re.compile(r"^parse error: .* at line \d+, column \d+$", re.MULTILINE),
    "rg": re.compile(r"^regex parse error:$|^[^:\n]+: No such file or directory \(os error 2\)$", re.MULTILINE),
    "gh": re.compile(r"\A\W*(?:failed to |GraphQL: |HTTP [45]\d\d\b|could not (?!find)|unknown (?:flag|command))"),
    "bc": re.compile(r"^\(standard_in\) \d+: ", re.MULTILINE),
    "openssl": re.compile(r"^(?:Could not|Unable to|unable to|Can't) (?:open|read|load|find)\b", re.MULTILINE),
}
_OWN_WORDS = re.compile(
    r"can(?:not|'t|’t)|could not|unable|invalid|illegal|unrecogni[sz]ed|unknown|unexpected|missing|is a directory"
    r"|not a |no matches|omitting|not specified"
    rf"|bad |syntax (?!is ok)|requires|denied|failed|not found|not allowed|\b{ERROR_WORD}\b",
    re.IGNORECASE,
)
_CELL = re.compile(
    r"^-{40,}[ \t]*\n\w+(?:Error|Exception)\b|^Traceback \(most recent call last|^[ \t]*(?:Syntax"
    r"|Indentation)Error: ",
    re.M,
)
_RAISED_ALONE = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception): [^\n]{1,400}")  # all that the cell gave
_DONE = re.compile(
    r"\A\W*(?:success|the file .{1,300} has been|updated|edited|created|wrote|applied|file (?:created|written|saved"
    r"|updated))",
    re.I,
)
_UNCHANGED: tuple[FaultKind, ...] = (
    *("edit_not_found", "edit_not_unique", "file_not_read", "empty_patch", "patch_mismatch", "bad_edit", "no_change"),
    *("bad_range", "missing_file", "missing_argument", "bad_value"),
)
_CELL_EDIT = re.compile(
    r"^[\[*# ]*(?:your proposed edit has introduced|error: (?:no |invalid |the ))", re.IGNORECASE | re.MULTILINE
)
REFUSED_CALL = re.compile(
    r"\A\W*(?:error\W+)?(?:patch rejected|resources?/\w+ failed: |apply_?patch verification failed"
    r"|your command .{0,200} is not executed|unsupported call|no exact match found"
    r"|failed to parse (?:function )?arguments|your (?:proposed )?edit (?:has introduced|was not applied|could not)"
    r"|no replacement was performed|the arguments provided to the tool are invalid|invalid (?:tool|function) call)",
    re.IGNORECASE,
)
"""How applications refuse a call of any tool, a shell's included."""
_HARNESS = re.compile(
    r"\A\W*(?:<?tool_use_error>|execution error:|failed in sandbox|exec_command failed|script failed\n"
    r"|(?:the )?tool execution failed|error (?:executing|calling|running|invoking) (?:tool|function|mcp)|mcp error"
    r"|failed to (?:execute|call|run) (?:tool|function)|operation .{0,80} is not supported by this environment)",
    re.IGNORECASE,
)
# Whoever writes into `| head` complains when head has had enough.
_CUT_SHORT = re.compile(r"^.*(?:broken pipe|EPIPE|: write error).*$\n?", re.IGNORECASE | re.MULTILINE)
# An agent's own commands in its shell, and what they say instead of doing it.
_OWN_COMMANDS = frozenset(
    [
        *("open", "goto", "scroll_up", "scroll_down", "edit", "create", "search_file", "search_dir", "find_file"),
        "str_replace_editor",
    ]
)
_NOT_DONE = re.compile(
    r"\A\W*(?:(?:error: )?(?:file|directory) [^\n]{1,300} not found|no file open|usage: |invalid )[^\n]*\Z",
    re.IGNORECASE,
)
_RUN_BY_FIND = re.compile(r"\s-(?:exec|execdir|ok) (\w+)")
BROKEN_BY_EDIT = re.compile(
    r"^New problems detected after saving.*^- \[[^\]\n]*Error\] Line \d+: [^\n]*(?:syntax error|unexpected token"
    r"|(?:['\"\])};]|declaration|statement|expression|identifier)\W* expected)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""What an editor says of a file that was saved and can no longer be parsed."""
_BARE_TAG = re.compile(r"</?[\w-]+>")
_HARNESS_ROW = re.compile(r"\W*(?:the |last |command|execution|process|tool|error|bash|shell|timed out)", re.IGNORECASE)
_ABOUT_ARGUMENTS = re.compile(r"\b(?:json|arguments?|parameters?|pars(?:e|ed|ing)|malformed)\b", re.IGNORECASE)
_MISUSE = re.compile(
    r"(?:\S+: )?(?:\S+: )?(?:unknown|invalid|unrecogni[sz]ed|illegal|ambiguous) (?:predicate|option|argument|flag"
    r"|switch|command"
    r"|subcommand)\b|\S+: (?:missing|extra|too (?:many|few)) (?:\w+ )?(?:operand|argument|option)s?\b|usage: ",
    re.IGNORECASE,
)
_ALL_WELL = re.compile(r"\b(?:passed|ok|success\w*|all good|0 failed)\b", re.IGNORECASE)
_ASKS_FOR_HELP = re.compile(r"(?:^|\s)(?:-h|--help|help|-\?|man)(?:\s|$)")
_SHORT, _FIRST_WORDS, _FEW_ROWS = 600, 200, 4
_EDGE = 6000


def fails_in_text(evidence: Evidence) -> bool:
    """Whether an unflagged result shows by its text that the call failed."""
    opening, broken = evidence.opening, broken_arguments(evidence.call)
    if broken is not None and (broken[:_FIRST_WORDS] in evidence.text or _speaks_of_arguments(evidence.text)):
        return True
    untold = evidence.result.is_error is None
    if (untold or evidence.kind in ("edit", "other")) and REFUSED_CALL.match(opening):
        return True
    if (untold or evidence.kind == "edit") and _HARNESS.match(opening):
        return True
    if evidence.kind == "shell":
        return _shell(evidence)
    if evidence.kind == "code":
        edges = _edges(evidence.outcome.output)
        raised = _RAISED_ALONE.fullmatch(edges.strip()) if evidence.result.is_error is None else None
        return evidence.outcome.code not in (None, 0) or bool(raised or _CELL.search(edges) or _CELL_EDIT.search(edges))
    if evidence.kind == "edit" and BROKEN_BY_EDIT.search(evidence.text[-_EDGE:]):
        return True
    if evidence.kind == "edit" and about_files(evidence.call):
        trusted = evidence.result.is_error is False
        return _unchanged(evidence.text, within=_FIRST_WORDS if trusted else _SHORT) or (
            not trusted and answers_with_failure(evidence)
        )
    return False if evidence.kind == "wait" else answers_with_failure(evidence)


def _speaks_of_arguments(text: str) -> bool:
    """Of arguments that are no JSON a short answer says so, or none; what repaired them gives what it found."""
    return not text.strip() or (len(text) < _SHORT and _ABOUT_ARGUMENTS.search(text) is not None)


def failed_summary(line: str, text: str) -> bool:
    """Whether the output of a test run or check counts failures; "0 failures" does not."""
    if not (is_test_run(line) or is_check(line)):
        return False
    told = NOT_FAILED.sub("", _edges(text))
    if is_test_run(line) and PASSED.search(told):  # what the tests print may speak of errors
        return COUNTED.search(told) is not None
    return SUMMARY.search(told) is not None or (is_check(line) and FINDING.search(told) is not None)


def _shell(evidence: Evidence) -> bool:
    line, (code, output) = evidence.line or "", (evidence.outcome.code, evidence.outcome.output)
    if code not in (None, 0):
        return True
    if code is None and _killed(output):
        return True
    if _only_misused(line, output):
        return True
    if not parse_line(line).loses_code and (code == 0 or evidence.result.is_error is False):
        return False
    return failed_summary(line, output) or _complains(evidence, _edges(output))


def _only_misused(line: str, output: str) -> bool:
    """All that came is a program's complaint about its own arguments, whatever the exit code behind a script."""
    rows = output.strip().splitlines()
    if any(_ALL_WELL.search(row) for row in rows[1:]):  # the misuse was what it tested
        return False
    return 0 < len(rows) <= _FEW_ROWS and _MISUSE.match(rows[0]) is not None and not _ASKS_FOR_HELP.search(line)


def _killed(output: str) -> bool:
    """The harness ran out of patience: its own sentence is the first or the last row, before a closing tag."""
    rows = output.splitlines()
    ends = (_first_told(rows), _first_told(reversed(rows)))
    return any(_HARNESS_ROW.match(row) and TIMED_OUT.search(row[:400]) for row in ends)


def _first_told(rows: Iterable[str]) -> str:
    """The first row with words in it that are no tag, "" if there is none."""
    return next((row for row in rows if row.strip() and not _BARE_TAG.fullmatch(row.strip())), "")


def _complains(evidence: Evidence, output: str) -> bool:
    output = _CUT_SHORT.sub("", output)
    line = evidence.line or ""
    scripts = _SCRIPT_COMPLAINT.findall(output) if ".sh: line " in output else ()
    if any(script in line for script in scripts) or _SHELL_COMPLAINT.search(output):
        return True
    if _own_complaint(evidence.programs, line, output) or (_own_command(evidence) and _NOT_DONE.match(output)):
        return True
    if only_reads(line) or is_test_run(line):  # a test's log may speak of errors
        return False
    return CRASH.search(output) is not None or any(COMMAND_NOT_FOUND.search(row) for row in output.splitlines()[-3:])


def _own_command(evidence: Evidence) -> bool:
    return evidence.programs[:1] != () and evidence.programs[0] in _OWN_COMMANDS


def _own_complaint(names: tuple[str, ...], line: str, output: str) -> bool:
    """`grep: x: No such file or directory`: a program of the line complains in its own name."""
    starts = tuple(f"{name}: " for name in {*names, *_RUN_BY_FIND.findall(line)})
    by_git = any(words[0] == "git" for words in parse_line(line).commands)
    shown = "git" not in names  # `git show` shows what others wrote; it complains in its first row
    if by_git and (_GIT_COMPLAINT.match(output) if shown else _GIT_COMPLAINT.search(output)):
        return True
    if any(pattern.search(output) for name, pattern in _UNNAMED_COMPLAINTS.items() if name in names):
        return True
    if not starts:
        return False
    rows = (row for row in output.splitlines() if row.startswith(starts) or row.startswith(("/bin/", "/usr/bin/")))
    words = (NO_SUCH_FILE, PERMISSION_DENIED, _OWN_WORDS)
    return any(pattern.search(row[:400]) for row in rows for pattern in words)


def _unchanged(text: str, *, within: int) -> bool:
    opening = text.lstrip()[:within]
    if _DONE.match(opening):
        return False
    fault = text_fault(opening)
    return (fault is not None and fault.kind in _UNCHANGED) or ANSWERED_ERROR.match(opening) is not None


def _edges(text: str) -> str:
    """A long output says what went wrong at its start or at its end."""
    return text if len(text) <= 2 * _EDGE else f"{text[:_EDGE]}\n{text[-_EDGE:]}"
