"""Rules on one failed result: what kind of failure is it, and is the model to blame?

The rules run in the order of `RULES` (rules 2, 4, 5, 6 and 7 of the eleven; `sites` names them all); the first that
speaks decides. They read role, flag and status before words, and words only where an application puts them, so a file
that quotes an error is no error. What needs the rest of the trace is decided elsewhere: a user's decision
(`decisions`), test runs (`test_runs`), repeats (`repeats`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from postgrad.signals.error_sites.absences import is_absent
from postgrad.signals.error_sites.asking import (
    SUGGESTS,
    answers_no,
    looked_up,
    merge_conflict,
    no_match,
    probe,
    stopped,
)
from postgrad.signals.error_sites.environment import is_lost, lacks, slipped
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.silent import BROKEN_BY_EDIT, REFUSED_CALL, fails_in_text
from postgrad.signals.shell.commands import names_path
from postgrad.signals.shell.lines import parse_line
from postgrad.signals.shell.programs import WAITS, is_check, is_test_run, programs
from postgrad.signals.words.failed_runs import MISUSED, NO_PROJECT, NO_TARGET
from postgrad.signals.words.fault_texts import text_fault
from postgrad.signals.words.faults import call_fault
from postgrad.signals.words.phrases import Phrases
from postgrad.signals.words.wordings import (
    COMMAND_NOT_FOUND,
    NO_RULE,
    NO_SUCH_FILE,
    NOTHING_TO_DO,
    PERMISSION_DENIED,
    TIMED_OUT,
)

Verdict = Literal["real", "user_correction", "user_stop", "user_followup", "benign", "env", "cascade", "expected"]

_CASCADE = re.compile(
    r"\A\W*(tool_use_error\W+)?(sibling tool call errored|cancelled: parallel tool call|skipped (because|due to)"
    r"|(tool call )?(was )?not executed (because|due to) (an? )?(earlier|previous|other|parallel))"
    r"|\A[^\n]{0,120}(?:non exécutée?|nicht ausgeführt|no ejecutad[oa]|não executad[oa]|non eseguit[oa]|not executed"
    r"|не выполнен\w*|未执行|未執行|実行されません)\W[^\n]{0,80}(?:autre|ander\w+|otr[oa]|outr[oa]|altr[oa]|another"
    r"|друг\w+|另|其他|他の|別の)",
    re.IGNORECASE,
)
_SECOND_TOOL = re.compile(
    r"was not executed because a tool has already been used|only one tool (may|can) be used", re.IGNORECASE
)
_HOOK = re.compile(
    r"\A\W*(tool_use_error\W+|error\W+)?((pre|post)tooluse\b|\S+ hook (error|blocked|failed)|(command |call "
    r"|action )?(was )?(blocked|denied|rejected) by"
    r"( the)? (\w+ )?(hook|policy|rule|guard|sandbox|permission|setting|admin|config)"
    r"|permission to use .{0,300}has been denied|permission for this tool use was denied|hook (error|blocked)"
    r"|operation .{0,80} is not supported by this environment|(command|action|operation"
    r"|tool) .{0,80}(is )?(not allowed|forbidden|disallowed|blocked)"
    r"|the user has (specified|configured) a rule|\S+ reached[;,.:] refus(ed|ing))",
    re.IGNORECASE,
)
_UNASKED = re.compile(
    r"\A\W*(.{0,200}\bauto-denied\b|.{0,200}prompts? (is |are )?unavailable|[^\n]{0,200}\brequires? approval\b"
    r"|claude requested permissions?|.{0,80}haven't granted (it|permission)|permission prompt|(requires|needs"
    r"|waiting for) (user )?approval"
    r"|approval (is )?required)",
    re.IGNORECASE,
)
_COMMIT_HOOK = Phrases(
    r"pre-commit|husky|lint-staged|lefthook|commitlint|hook id: |hook declined|remote rejected.{0,200}hook"
    r"|\bhooks?\b.{0,60}(failed|exited|declined)",
    flags=re.IGNORECASE,
)
# What was to be ended has ended.
_OVER = re.compile(r"\b(?:is not running|already (?:completed|stopped|exited|finished|closed|killed))\b", re.IGNORECASE)
_MAKES_FOLDER = re.compile(r"(?:create|make|mk)_?(?:dir|folder)", re.IGNORECASE)
_IS_THERE = re.compile(r"\bEEXIST\b|\balready exists\b", re.IGNORECASE)
_FIRST_WORDS = 300
_SHOW = frozenset(["cat", "head", "tail", "nl", "less", "bat"])
_SHELLS = frozenset({"bash", "sh", "zsh", "shell", "terminal", "python", "node", "cmd", "powershell"})
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127  # exit code of a shell without the program
_COMMITS = re.compile(r"\b(?:commit|push|merge)\b")
# A program that ran into what is there already, and ended.
_BROKE_OFF = re.compile(
    r"^Traceback \(most recent|\bSQLSTATE\b|^\S*(?:Error|Exception): .*(?:relation|column|table|index|key)\b"
    r"|^\w+ aborted!",
    re.MULTILINE,
)
_CANNOT_OPEN = re.compile(r"\S*python\S*: can't open file ")


class Finding(msgspec.Struct, frozen=True):
    """What a rule says."""

    kind: str
    verdict: Verdict
    rule: str


Rule = Callable[[Evidence], Finding | None]


def has_failed(evidence: Evidence) -> bool:
    """Whether the call failed: by the source's flag or status, or by what the result says."""
    if evidence.flagged:
        return evidence.result.status not in ("ok", "error") or not _shows_a_file(evidence)
    return evidence.result.status != "pending" and fails_in_text(evidence)


def _shows_a_file(evidence: Evidence) -> bool:
    """`cat log` without an exit code and without a complaint of its own: the flag is for what the file says."""
    names, output = evidence.programs, evidence.outcome.output.strip()
    if not output or evidence.outcome.code is not None or not all(name in _SHOW for name in names) or not names:
        return False
    first = output.splitlines()[0]
    complaint = (
        any(f"{name}: " in output for name in names) or NO_SUCH_FILE.search(first) or COMMAND_NOT_FOUND.search(first)
    )
    return not complaint and not TIMED_OUT.search(output[-400:]) and not _HOOK.match(evidence.opening)


def judge(evidence: Evidence) -> Finding | None:
    """What the rules say about a failed result; a failure that no flag told is named as silent."""
    finding = next((said for rule in RULES if (said := rule(evidence)) is not None), None)
    if finding is None or evidence.flagged or finding.rule.startswith(("cascade/", "hook/")):
        return finding
    return msgspec.structs.replace(finding, rule="silent_failure/3")


def is_wait(evidence: Evidence) -> bool:
    """A call that only waits or polls; cutting it short says nothing about it."""
    if evidence.kind == "wait":
        return True
    return evidence.line is not None and bool(names := programs(evidence.line)) and names[0] in WAITS


def cascade(evidence: Evidence) -> Finding | None:
    """Rule 2. Another call of the same response failed first; the root call has the site."""
    if evidence.result.status == "cascade" or _CASCADE.match(evidence.opening):
        return Finding("cascade", "cascade", "cascade/2")
    if _SECOND_TOOL.search(evidence.opening[:300]):
        return Finding("invalid_call", "real", "cascade/2")
    return None


def hook(evidence: Evidence) -> Finding | None:
    """Rule 4. A hook or a permission rule blocked the call; its text is the hint. Nobody to ask is nobody's mistake."""
    if _UNASKED.match(evidence.opening):
        return Finding("hook_block", "env", "hook/2")
    if _HOOK.match(evidence.opening):
        return Finding("hook_block", "real", "hook/2")
    commits = "git" in evidence.programs[-1:] and _COMMITS.search((evidence.line or "").partition("git")[2])
    return Finding("hook_block", "real", "hook/2") if commits and _COMMIT_HOOK.search(evidence.text[:6000]) else None


def invalid_call(evidence: Evidence) -> Finding | None:
    """Rule 5. The call itself is wrong: unknown tool, broken or unfit arguments, an edit that does not apply."""
    call, text = evidence.call, evidence.text
    found = Finding("invalid_call", "real", "invalid_call/2")
    tagged = text.lstrip().startswith("<tool_use_error>")
    by_tool = tagged or evidence.kind not in ("shell", "code", "wait")
    fault = text_fault(evidence.opening) if by_tool else None
    looks = evidence.kind in ("read", "search") and names_path(call.arguments)
    unheard = fault is None and looks and NO_SUCH_FILE.search(evidence.opening[:400])  # in another language
    if unheard or (fault is not None and fault.kind == "missing_file"):
        probing = looks and not SUGGESTS.search(text[:2000])
        return Finding("invalid_call", "benign", "invalid_call/2") if probing else found
    if tagged and _OVER.search(text[:_FIRST_WORDS]):
        return Finding("invalid_call", "benign", "invalid_call/2")
    if _MAKES_FOLDER.search(call.name) and _IS_THERE.search(text[:_FIRST_WORDS]):
        return Finding("invalid_call", "benign", "invalid_call/2")
    if call_fault(call, evidence.tools) is not None or tagged:
        return found
    if fault is not None and (fault.kind != "wrong_type" or evidence.kind != "other") and not lacks(evidence):
        return found
    refused = REFUSED_CALL.match(evidence.opening) or _is_tool_name(evidence)
    return found if refused or (evidence.kind == "edit" and BROKEN_BY_EDIT.search(text)) else None


def _is_tool_name(evidence: Evidence) -> bool:
    """The name of a tool was typed into the shell."""
    names = {tool.name.lower() for tool in evidence.tools} | {"str_replace_editor", "apply_patch", "applypatch"}
    names -= _SHELLS
    unknown = evidence.line is not None and COMMAND_NOT_FOUND.search(evidence.outcome.output[:2000])
    return bool(unknown) and bool(names & set(evidence.programs))


def failed_run(evidence: Evidence) -> Finding | None:
    """Rule 6. A test run, a type check or a build failed; whether it is a site depends on the edits before it."""
    line = evidence.line
    if line is None or not (is_test_run(line) or is_check(line)) or _never_ran(evidence) or _guessed_program(evidence):
        return None
    kind = "test_failed" if is_test_run(line) else "check_failed"
    if answers_no(evidence):
        return Finding("no_match", "benign", "command/4")
    said = evidence.outcome.output[:2000]
    if (NO_PROJECT.search(said) or _names_missing(evidence, said)) and not _counted(evidence):
        return None
    if NO_TARGET.search(said):
        return None
    if lacks(evidence):
        return Finding(kind, "env", "test_failed/3")
    if (MISUSED.search(said) or NO_RULE.search(said)) and not _counted(evidence):
        return None
    return Finding(kind, "real", "test_failed/3")


def _never_ran(evidence: Evidence) -> bool:
    """`cd nowhere && pytest`, `python edit.py && pytest`: what had to go well before the run complains, and no more."""
    rows, before = evidence.outcome.output.strip().splitlines(), evidence.programs[:-1]
    if len(rows) != 1 or not before:
        return False
    complains = any(rows[0].startswith(f"{name}: ") for name in before if name != evidence.programs[-1])
    opens = _CANNOT_OPEN.match(rows[0]) is not None and any(name.startswith("python") for name in before)
    return complains or opens or ("cd" in before and is_lost(rows[0]))


def _guessed_program(evidence: Evidence) -> bool:
    """`./node_modules/.bin/eslint`, where there is none, or none that may be run."""
    output = evidence.outcome.output
    if evidence.outcome.code == _NOT_EXECUTABLE and PERMISSION_DENIED.search(output):
        return True
    return evidence.outcome.code == _NOT_FOUND and NO_SUCH_FILE.search(output) is not None and not lacks(evidence)


def _names_missing(evidence: Evidence, said: str) -> bool:
    """`gcc nowhere.c`: the file that is missing is one that the line names, and no other failure hides behind it."""
    if not NO_SUCH_FILE.possible(said):
        return False
    commands = parse_line(evidence.line or "").commands
    words = [word for words in commands for word in words[1:] if "." in word and not word.startswith("-")]
    rows = [row for row in said.splitlines() if NO_SUCH_FILE.search(row)]
    return any(word in row and not re.search(rf"{re.escape(word)}:\d", row) for row in rows for word in words)


def _counted(evidence: Evidence) -> bool:
    return re.search(r"\b\d+ (passed|failed|failures?|tests?|examples?)\b", evidence.outcome.output) is not None


def failed_command(evidence: Evidence) -> Finding | None:
    """Rule 7. Any other failure, minus searches without a match, probes, and what the environment lacks."""
    output = evidence.outcome.output
    if evidence.line is not None and stopped(evidence):
        return Finding("tool_error", "benign", "command/4")
    if not slipped(evidence):
        if no_match(evidence) or looked_up(evidence):
            return Finding("no_match", "benign", "command/4")
        if probe(evidence) or merge_conflict(evidence):
            return Finding("tool_error", "benign", "command/4")
    if _has_nothing_to_do(output[:2000]) and evidence.programs[:1] != ("create",):  # an agent's own command
        return Finding("tool_error", "benign", "command/4")
    if lacks(evidence):
        return Finding("tool_error", "env", "command/4")
    return (
        Finding("no_match", "benign", "command/4")
        if is_absent(evidence)
        else Finding("tool_error", "real", "command/4")
    )


def _has_nothing_to_do(output: str) -> bool:
    """Somebody did it before; a complaint beside that must be about the same."""
    complaints = [row for row in output.splitlines() if row.startswith(("error:", "fatal:"))]
    if _BROKE_OFF.search(output):
        return False
    return NOTHING_TO_DO.search(output) is not None and all(NOTHING_TO_DO.search(row) for row in complaints)


RULES: tuple[Rule, ...] = (cascade, hook, invalid_call, failed_run, failed_command)
