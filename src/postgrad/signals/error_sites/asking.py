"""Calls that only ask, and what their failure says: "no" is an answer and no mistake.

A search finds nothing, a probe finds no such path, a look-up no such thing, a page is not there, two files differ.
Whoever named the thing by its id, or was told a better name, did not ask. Beside them stand the ends of a command that
are no failure: it was stopped, it has a fallback, a merge left conflicts for the model to solve. Not covered: a probe
in a code cell, and one that only the model's words call so.
"""

from __future__ import annotations

import re

from postgrad.signals.error_sites.environment import LOST
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.outcomes import json_object
from postgrad.signals.shell.commands import about_files
from postgrad.signals.shell.lines import parse_line
from postgrad.signals.shell.programs import PROBES, SEARCHES
from postgrad.signals.words.failed_runs import CRASH
from postgrad.signals.words.phrases import Phrases
from postgrad.signals.words.wordings import NO_SUCH_FILE, NOT_FOUND, PERMISSION_DENIED

SUGGESTS = Phrases(r"did you mean|similar (file|name)|instead|meinten Sie|vouliez-vous|您是不是|もしかして")
"""A tool that knows better tells the right name with its "no"."""
_HARMLESS = frozenset({"cd", "echo", "head", "tail", "grep", "wc", "pwd", "true", "export", "set"})
_ASK_ONLY = frozenset({"test", "[", "[[", "which", "command -v", "test-path"})
_NO_CODES = {"systemctl": (1, 3, 4), "getent": (1, 2), "ls-remote": (2,), "man": (16,), "gh": (1, 8)}
# Commands that ask and answer "no" with an exit code and words of their own: command, codes, words (a blank: any).
_QUESTIONS = tuple(
    (re.compile(command), codes, re.compile(words))
    for command, codes, words in (
        (r"git apply\b.* --check\b|git merge-tree\b", (1,), r""),
        (r"(?:kubectl|oc) diff\b", (1,), r""),
        (r"(?:kubectl|oc) (?:.* )?(?:get|describe) (?!(?:pods?|po)[ /])", (1,), r"\(NotFound\)|No resources found"),
        (r"(?:terraform|tofu) (?:.* )?plan\b.* --?detailed-exitcode\b", (2,), r""),
        (
            r"(?:aws|gcloud|gsutil|az) (?:.* )?(?:ls|list\S*|describe\S*|show|get\S*|head\S*|stat)\b",
            (1, 2, 3, 252, 254, 255),
            r"NoSuch\w+|NotFound|ResourceNotFound|not found|does not exist",
        ),
        (r"kubectl auth can-i\b", (1,), r"\A\s*no\b"),
        (
            r".*\b(?:list|ls|show|status|find|search|query|info)\b",
            (1,),
            r"\A\s*No (?:\w+ ){1,3}(?:found|available)\.?\s*\Z",
        ),
        (r"gh \w+ list\b", (1,), r"could not find any|no \w+ found"),
        (r"pg_isready\b", (1, 2), r""),
        (r"psql\b.* \\d", (1,), r"Did not find any"),
        (r"curl (?!.*(?: -d| --data| -X| --request| -F| -T))(?:.* )?(?:-[A-Za-z]*f|--fail)", (22,), r"\A\s*\Z"),
    )
)
# What `diff` and its like show when two things differ.
_DIFFERS = re.compile(
    r"(?:Files|Binary files) .* differ$|Only in |[<>] |@@ |diff |--- |\+\+\+ |\d+(?:,\d+)?[acd]\d|\S+ \S+ differ"
)
_COMPARES = frozenset({"diff", "cmp", "comm", "sdiff", "colordiff"})
_MERGES = re.compile(r"git (?:.* )?(?:merge|rebase|cherry-pick|pull|revert|am|stash (?:pop|apply))\b")
_CONFLICT = Phrases(
    r"^(?:CONFLICT|KONFLIKT|CONFLIT|CONFLICTO|冲突|衝突) ?[(（]|automatic merge failed|could not apply [0-9a-f]{6}",
    flags=re.M | re.I,
)
_LOOKS_UP = re.compile(r"find|search|look_?up", re.IGNORECASE)
_ID = re.compile(r"(?:\A|_)ids?\Z|[a-z]Ids?\Z")
_OPENS_PAGE = re.compile(r"fetch|browse|navigate|goto|open|visit|read|get|scrape|crawl|url", re.IGNORECASE)
NO_PAGE = re.compile(r"\b(?:404|410)\b|page not found", re.IGNORECASE)
_SENDS = frozenset({"body", "data", "json", "form", "payload"})
_SHORT = 200  # characters
_BY_SIGNAL = 128
_STOPPED = (130, 137, 143)  # by an interrupt, a kill, a request to end


def stopped(evidence: Evidence) -> bool:
    """Whether a command was ended from outside, or its failure reckoned with."""
    return evidence.outcome.code in _STOPPED or _ends_itself(evidence) or _has_fallback(evidence.line or "")


def no_match(evidence: Evidence) -> bool:
    """Exit 1 of a search that wrote no complaint of its own, nor did a command that had to succeed before it."""
    names, line = evidence.programs, evidence.line or ""
    if answers_no(evidence):
        return True
    if not names or not _says_no(names[-1], evidence):
        return False
    rows = [row for row in evidence.outcome.output.splitlines() if row.strip()]
    if names[-1] not in SEARCHES:  # `[ -f a ] && cat a`, `grep x a && echo yes`
        asked = any(name in SEARCHES | PROBES for name in names)
        before = [name for name in names[:-1] if name != "cd"]
        if not rows and before and all(name in _ASK_ONLY for name in before) and ";" not in parse_line(line).after:
            return True  # `test -x tool && tool --version`: the test said no
        return not rows and asked and all(name in SEARCHES | PROBES | _HARMLESS for name in names)
    if names[-1] in _COMPARES and rows and all(_DIFFERS.match(row) for row in rows):
        return True
    before = list(names[:-1]) if "&&" in parse_line(line).after else []
    if rows and any(name not in SEARCHES | PROBES | _HARMLESS for name in before):
        return False
    complaints = (*(f"{name}:" for name in (names[-1], *before)), *(("fatal:", "error:") if "git" in line else ()))
    return not any(row.startswith(complaints) and PERMISSION_DENIED.search(row) is None for row in rows)


def answers_no(evidence: Evidence) -> bool:
    """Whether the line's deciding command is a question that says "no" in its own words."""
    if evidence.line is None:
        return False
    code, command, output = evidence.outcome.code, " ".join(parse_line(evidence.line).deciding), evidence.outcome.output
    return any(
        asks.match(command) and (code in codes or (code is None and evidence.flagged)) and words.search(output)
        for asks, codes, words in _QUESTIONS
    )


def probe(evidence: Evidence) -> bool:
    """`ls`, `cat`, `test` of a path that is not there: "no" is the answer."""
    names, output = evidence.programs, evidence.outcome.output
    if not any(name in PROBES for name in names):
        return False
    rows = [row for row in output.splitlines() if NO_SUCH_FILE.search(row)] if NO_SUCH_FILE.possible(output) else []
    if not all(name in PROBES | _HARMLESS for name in names):  # `ls a; docker --version`: only the look complains
        starts = tuple(f"{name}: " for name in names if name in PROBES)
        looks_last = names[-1] in PROBES and "&&" not in parse_line(evidence.line or "").after
        quiet = looks_last or (not evidence.flagged and evidence.outcome.code in (None, 0))
        if not quiet or CRASH.search(output) or not all(row.startswith(starts) for row in rows):
            return False
    lost = any(LOST.match(row) for row in rows)  # the folder to work in was wrong
    return bool(rows) and not lost and not SUGGESTS.search(output)


def looked_up(evidence: Evidence) -> bool:
    """`find_user` by name, and "user not found": whoever looks for a thing may be told that there is none.

    Who names the thing by its id says that there is one. A page that says "404" in its text was looked for; where the
    tool itself failed for it, the address was made up (unless it was given: `aftermath`).
    """
    arguments, name, said = evidence.call.arguments or {}, evidence.call.name, evidence.text.strip()
    if isinstance(arguments.get("url"), str) and _OPENS_PAGE.search(name):
        reads = str(arguments.get("method", "GET")).upper() in ("GET", "HEAD") and not _SENDS & arguments.keys()
        page = reads and not evidence.flagged and json_object(said) is None  # an API answers in objects
        return page and NO_PAGE.search(said[:_SHORT]) is not None and not SUGGESTS.search(said)
    by_id = any(_ID.search(key) for key in arguments)
    asks = evidence.kind == "search" and not by_id and _LOOKS_UP.search(name)
    return bool(asks and len(said) < _SHORT and NOT_FOUND.search(said)) and not about_files(evidence.call)


def merge_conflict(evidence: Evidence) -> bool:
    """A merge that left conflicts: both sides changed the same lines, which the call could not know."""
    if evidence.line is None or not _CONFLICT.search(evidence.outcome.output):
        return False
    return any(_MERGES.match(" ".join(words)) for words in parse_line(evidence.line).commands)


def _says_no(name: str, evidence: Evidence) -> bool:
    """Whether the exit code is a "no"; where the source only flags the result, its code is not known."""
    code = evidence.outcome.code
    if code is None:
        return evidence.flagged
    codes = _NO_CODES.get(name.split()[0], (1,))
    return code in codes or (code == 123 and "xargs" in (evidence.line or ""))


def _ends_itself(evidence: Evidence) -> bool:
    """`pkill -f server` also ends the shell whose own line has the word in it."""
    signalled = evidence.outcome.code is not None and evidence.outcome.code > _BY_SIGNAL
    return signalled and evidence.programs[-1:] == ("pkill",) and not evidence.outcome.output.strip()


def _has_fallback(line: str) -> bool:
    """`... || true`: whoever wrote that reckoned with the failure."""
    parsed = parse_line(line)
    behind = (words[0] for words, operator in zip(parsed.commands[1:], parsed.after, strict=False) if operator == "||")
    return any(word in ("true", ":") for word in behind)
