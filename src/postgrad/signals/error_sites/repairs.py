"""Mistakes that no failure tells, only what the model does next: it makes the same thing again.

- A command went well and complained all the same, in a row with the name of a file that the model had edited, and the
  next step edits that file: the edit is to blame.
- `sed -i` says nothing when its pattern is not there. A look at the file that shows nothing of what was to be put in,
  with another edit of the file behind it, tells.
- The model says that its change was wrong, and makes it again.

Not covered: changes of another sort than edits of files, and mistakes that the model does not see.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from postgrad.core.trace import Step
from postgrad.signals.error_sites.decisions import next_words
from postgrad.signals.error_sites.edits import base, edits_before, names_file
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.unchanged import substitution
from postgrad.signals.shell.commands import edited_files
from postgrad.signals.shell.programs import only_reads
from postgrad.signals.words.admissions import admits
from postgrad.signals.words.wordings import ERROR_WORD

_COMPLAINT = re.compile(
    rf"\b{ERROR_WORD}\b|\b(?:invalid|failed to|unable to|could not|cannot|unexpected|malformed|unresolved|undefined"
    rf"|unparsable"
    r"|not allowed|ignored|skipp(?:ed|ing))\b|\w+Error\b",
    re.IGNORECASE,
)
_EDGE, _AHEAD, _BESIDE = 4000, 4, 2


class Repaired(NamedTuple):
    """The step to blame, and the result that shows it (its own or a later one)."""

    step: int
    shown_by: Evidence


def find_repaired(history: History, step: Step) -> Repaired | None:
    """The mistake that the steps after `step` show, where no result of it failed."""
    following = history.following(step)
    if following is None:
        return None
    answers = [evidence for _, evidence in history.of(step) if evidence is not None and history.succeeded(evidence)]
    again = {base(path) for call in following.action.tool_calls for path in edited_files(call)}
    for evidence in answers:
        found = _complained(history, step, evidence, again) if again else None
        found = found or (Repaired(step.index, evidence) if _no_trace(history, step, evidence) else None)
        if found is not None and not next_words(history, step, after=-1):
            return found
    if not again or not admits(following.action) or next_words(history, step, after=-1):
        return None
    edited = [evidence for evidence in answers if {base(path) for path in edited_files(evidence.call)} & again]
    return Repaired(step.index, edited[-1]) if edited else None


def _complained(history: History, step: Step, evidence: Evidence, again: set[str]) -> Repaired | None:
    """A row of the output complains of a file that was edited before and is edited next."""
    if evidence.line is None or only_reads(evidence.line) or edited_files(evidence.call):
        return None
    edits = [edit for edit in edits_before(history, step.index) if edit.name in again]
    if not edits:
        return None
    rows = evidence.outcome.output[:_EDGE].splitlines()
    for at, row in enumerate(rows):
        named = next((edit for edit in reversed(edits) if edit.name in row and names_file(row, edit.name)), None)
        if named is not None and _COMPLAINT.search("\n".join(rows[at : at + _BESIDE])):
            return Repaired(named.step, evidence)
    return None


def _no_trace(history: History, step: Step, evidence: Evidence) -> bool:
    """A substitution in a file, of which the next look at the file shows nothing, and which is then made again."""
    if evidence.line is None or evidence.outcome.output.strip():
        return False
    wanted = substitution(evidence.line)
    if wanted is None or wanted.behind:
        return False
    name, text = wanted.file, wanted.text
    looked = False
    for later, other in islice(history.answered(after=step.index), _AHEAD):
        if name in {base(path) for path in edited_files(other.call)}:
            return looked
        if name not in other.call.arguments_raw or other.result.status == "pending":
            return False
        shown = other.outcome.output
        if text in shown or not (shown.strip() or history.failed(other)) or next_words(history, later, after=-1):
            return False
        looked = True
    return False
