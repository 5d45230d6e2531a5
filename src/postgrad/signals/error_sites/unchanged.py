"""Edits that changed nothing although nothing failed: no flag, no exit code, no complaint.

An edit tool that says nothing stands out where it says what it did at other times in the same run. Beside it, an edit
tool or a script that counts what it changed may count none: "0 replacements". A `sed -i` says nothing in any case, but
the line that shows the file behind it does (`&& cat a.txt`, `&& grep new a.txt`). Not covered: formatters and
migrations, for which nothing to do is good news.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from postgrad.signals.error_sites.edits import base
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.shell.lines import parse_line
from postgrad.signals.shell.programs import programs
from postgrad.signals.words.phrases import Phrases

_SPEAKS = 2  # results with words, before a result without any says something
_NONE_CHANGED = Phrases(
    r"\b0 (?:replacements?|substitutions?|occurrences?)\b|\b(?:replaced|changed|updated|modified) 0\b",
    r"\b0 files? (?:were )?(?:changed|updated|modified|replaced)\b",
    r"\bnothing (?:was |to be )?(?:replaced|changed|updated)\b",
    r"\bno (?:replacements?|substitutions?|occurrences?|changes) (?:were )?(?:made|replaced|performed)\b",
)
_BY_SCRIPT = re.compile(r"python[\d.]*|node|ruby|perl|sed|gsed|sd|rpl|comby|jscodeshift|ast-grep|sg|codemod")
_FEW_ROWS, _FIRST_WORDS = 5, 300


_SUBSTITUTES = re.compile(r"s([/|#,@!~])(?P<old>(?:\\.|(?!\1).)+)\1(?P<new>(?:\\.|(?!\1).)*)\1")
_IN_PLACE = re.compile(r"-\w*i|--in-place")
_MARKS = re.compile(r"\\[1-9]|&|\\\\|\$")  # the new text does not stand for itself
_ONTO_ITSELF = re.compile(r"(?<=\s)(?P<file>[\w./-]+\.\w+) +>(?!>) *(?P=file)(?![\w./-])")
_SHOW_ALL = frozenset({"cat", "nl", "bat"})
_SHORTEST = 4  # characters


class Substitution(NamedTuple):
    """A `sed -i s/old/new/ file`: the file's name, the new text, and the words of the commands behind it."""

    file: str
    text: str
    behind: tuple[tuple[str, ...], ...]


def substitution(line: str) -> Substitution | None:
    """The one substitution in a file that a line begins with (a `cd` aside), if its new text is plain."""
    commands = parse_line(line).commands
    commands = commands[1:] if commands and commands[0][0] == "cd" else commands
    words = commands[0] if commands else ()
    if not words or words[0] not in ("sed", "gsed", "perl") or not any(_IN_PLACE.match(word) for word in words):
        return None
    scripts = [found for word in words[1:] if (found := _SUBSTITUTES.match(word))]
    new = scripts[0]["new"] if len(scripts) == 1 else ""
    if len(new) < _SHORTEST or _MARKS.search(new):
        return None
    return Substitution(base(words[-1]), new.replace("\\", ""), commands[1:])


def clobbers_itself(line: str) -> bool:
    """`jq . a.json > a.json`: the shell empties the file before the program reads it."""
    return _ONTO_ITSELF.search(line) is not None and not line.lstrip().startswith(("echo", "printf"))


def shown_unchanged(evidence: Evidence) -> bool:
    """Whether a line substitutes in a file and then shows the file without the new text."""
    made = substitution(evidence.line) if evidence.line is not None else None
    if made is None or len(made.behind) != 1 or made.file not in {base(word) for word in made.behind[0][1:]}:
        return False
    name, *words = made.behind[0]
    if name in _SHOW_ALL:
        shown = evidence.outcome.output
        return len(words) == 1 and bool(shown.strip()) and made.text not in shown
    seeks = programs(evidence.line or "")[-1] in ("grep", "egrep", "fgrep", "rg")
    looked_for = (word for word in words if not word.startswith("-") and base(word) != made.file)
    return seeks and evidence.outcome.code == 1 and any(word in made.text or made.text in word for word in looked_for)


def without_effect(history: History, evidence: Evidence) -> bool:
    """Whether a call that went well and was to change something changed nothing."""
    if evidence.kind == "edit" and not evidence.text.strip():
        return history.times_spoken(evidence) >= _SPEAKS
    if evidence.kind == "edit":
        return _NONE_CHANGED.search(evidence.opening[:_FIRST_WORDS]) is not None
    if shown_unchanged(evidence) or (evidence.line is not None and clobbers_itself(evidence.line)):
        return True
    rows = evidence.outcome.output.strip().splitlines()
    by_script = bool(evidence.programs) and _BY_SCRIPT.fullmatch(evidence.programs[-1]) is not None
    return by_script and len(rows) <= _FEW_ROWS and any(_NONE_CHANGED.search(row[:_FIRST_WORDS]) for row in rows)
