"""Edits that changed nothing although nothing failed: no flag, no exit code, no complaint.

An edit tool that says nothing stands out where it says what it did at other times in the same run. Beside it, an edit
tool or a script that counts what it changed may count none: "0 replacements". Not covered: a `sed -i` whose pattern
matches nothing, which says nothing in any case; formatters and migrations, for which nothing to do is good news.
"""

from __future__ import annotations

import re

from postgrad.signals.evidence import Evidence
from postgrad.signals.history import History
from postgrad.signals.phrases import Phrases

_SPEAKS = 2  # results with words, before a result without any says something
_NONE_CHANGED = Phrases(
    r"\b0 (?:replacements?|substitutions?|occurrences?)\b|\b(?:replaced|changed|updated|modified) 0\b",
    r"\b0 files? (?:were )?(?:changed|updated|modified|replaced)\b",
    r"\bnothing (?:was |to be )?(?:replaced|changed|updated)\b",
    r"\bno (?:replacements?|substitutions?|occurrences?|changes) (?:were )?(?:made|replaced|performed)\b",
)
_BY_SCRIPT = re.compile(r"python[\d.]*|node|ruby|perl|sed|gsed|sd|rpl|comby|jscodeshift|ast-grep|sg|codemod")
_FEW_ROWS, _FIRST_WORDS = 5, 300


def without_effect(history: History, evidence: Evidence) -> bool:
    """Whether a call that went well and was to change something changed nothing."""
    if evidence.kind == "edit" and not evidence.text.strip():
        return history.times_spoken(evidence) >= _SPEAKS
    if evidence.kind == "edit":
        return _NONE_CHANGED.search(evidence.opening[:_FIRST_WORDS]) is not None
    rows = evidence.outcome.output.strip().splitlines()
    by_script = bool(evidence.programs) and _BY_SCRIPT.fullmatch(evidence.programs[-1]) is not None
    return by_script and len(rows) <= _FEW_ROWS and any(_NONE_CHANGED.search(row[:_FIRST_WORDS]) for row in rows)
