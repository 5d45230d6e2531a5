"""Folders that the session was shown: a path in one of them that its listing lacks was no open question.

To read a file that may be there is a look, and "no" is its answer. Where an earlier call had listed the folder, or had
looked for the file in vain, the model was told before it asked. Where a listing does not say which folder it is of, a
file that was read from it tells. Not covered: listings behind a pipe, and files that came or went in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from postgrad.core.trace import Step
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.shell.commands import path_of
from postgrad.signals.shell.lines import parse_line
from postgrad.signals.words.wordings import NO_SUCH_FILE

_WORDS = re.compile(r"[^\s/\\│├└─]+")
_NOTHING_FOUND = re.compile(
    r"\A\W*(?:no (?:files?|matches|results)|0 (?:files|matches|results)"
    r"|found 0)\b",
    re.IGNORECASE,
)
_PATTERN_KEYS = ("pattern", "glob", "glob_pattern", "file_pattern", "include", "query")
_ALL_FILES = re.compile(r"(?:git ls-files|rg --files|fd(?: -t f)?|find \.(?: -type f)?)$")
_READS = re.compile(r"(?:\S*/)?(?:cat|head|tail|sed|nl|less|more|awk|wc|bat): ")  # `ls` asks whether it is there
_CUT = re.compile(r"truncated|output limit|\[\.\.\.|more (?:lines|files|entries)", re.IGNORECASE)
_LONGEST = 20_000  # characters


def shown_absent(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether what a call looks at in vain had been shown not to be there."""
    paths = list(_missing(evidence))
    if not paths:
        return False
    earlier = [other for _, other in history.answered(before=step.index)]
    used = (other for other in earlier if other.kind in ("read", "edit") and history.succeeded(other))
    known = [path for other in used if (path := path_of(other.call.arguments)) is not None]
    return any(_was_sought(path, other) or _is_left_out(path, other, known) for other in earlier for path in paths)


def _missing(evidence: Evidence) -> Iterator[str]:
    """The paths that a call names and that are not there."""
    if evidence.line is None:
        path = path_of(evidence.call.arguments)
        if path is not None and evidence.kind == "read":
            yield path
        return
    rows = [row for row in evidence.outcome.output.splitlines() if _READS.match(row) and NO_SUCH_FILE.search(row)]
    words = {word for command in parse_line(evidence.line).commands for word in command[1:] if not word.startswith("-")}
    yield from (word for word in sorted(words) if "*" not in word and any(word in row for row in rows))


def _was_sought(path: str, other: Evidence) -> bool:
    """A search for files of such a name that found none."""
    if other.kind != "search" or not _NOTHING_FOUND.match(other.text[:200]):
        return False
    patterns = ((other.call.arguments or {}).get(key) for key in _PATTERN_KEYS)
    return any(isinstance(one, str) and len(one.strip("*/.")) > 3 and _fits(path, one) for one in patterns)


def _fits(path: str, pattern: str) -> bool:
    plain = pattern.replace("**/", "*").removeprefix("./")
    return fnmatchcase(path, plain) or fnmatchcase(path, f"*/{plain}")


def _is_left_out(path: str, other: Evidence, known: list[str]) -> bool:
    """A listing of a folder above the path, in which the next part of the path is missing."""
    if other.line is None or other.outcome.code not in (None, 0) or len(other.text) > _LONGEST:
        return False
    output = other.outcome.output
    if not output.strip() or _CUT.search(output):
        return False
    parsed = parse_line(other.line)
    for words, operator in zip(parsed.commands, parsed.after, strict=True):
        if operator in ("|", "|&"):
            continue
        if _ALL_FILES.match(" ".join(words)):
            files = {row.strip().removeprefix("./") for row in output.splitlines()}
            roots = {one[: -len(file)] for one in known for file in files if file and one.endswith(f"/{file}")}
            roots |= set() if path.startswith("/") else {""}
            if any(path.startswith(root) and path[len(root) :].removeprefix("./") not in files for root in roots):
                return True
        elif words[0] == "ls":
            shown = set(_WORDS.findall(output))
            asked = [word.rstrip("/") for word in words[1:] if not word.startswith("-")] or [""]
            folders = {folder for one in asked if "*" not in one for folder in _folders(one, shown, known, path)}
            rests = (path[len(folder) :].lstrip("/") for folder in folders if path.startswith(folder))
            if any(rest and rest.split("/")[0] not in shown for rest in rests):
                return True
    return False


def _folders(asked: str, shown: set[str], known: list[str], path: str) -> Iterator[str]:
    """The folders that a listing may be of, each with a slash at its end; "" where paths are relative as well."""
    if asked.startswith("/"):
        yield f"{asked}/"
        return
    bare = asked.removeprefix("./").strip(".")
    if not path.startswith("/"):
        yield f"{bare}/" if bare else ""
    for one in known:
        folder, _, name = one.rpartition("/")
        if name in shown and (not bare or folder.endswith(f"/{bare}")):
            yield f"{folder}/"
