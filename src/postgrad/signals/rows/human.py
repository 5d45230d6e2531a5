"""What a human said a step should have been: a candidate whose teacher is a human, and the words that came with it.

`serve` writes such corrections beside the served answer (`serve.corrections`), and `ingest` reads them as candidates of
that step. Corrections of steps that are in a store already stand in the store's ``corrections.jsonl``, a
`StoredCorrection` a line, and are put into the traces when rows are built. A step with a correction is no example of a
good action.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from postgrad.core.message import Message
from postgrad.core.trace import Candidate, Feedback, Step, Trace
from postgrad.signals.rows.records import read_lines

HUMAN = "human"
"""Teacher of a corrected action, alone or with a name: ``human:ada``."""
CORRECTED = "corrected"
"""Mark of the answer that the next human candidate corrects, where a step has several answers."""
FEEDBACK = "correction"
"""Kind of the feedback that holds the words of a correction; its source is the human."""
CORRECTIONS = "corrections.jsonl"
"""File of a store with the corrections made after its traces were ingested."""


class Correction(msgspec.Struct, frozen=True):
    """The action as it should have been, the one that it corrects, by whom and why ("" where nobody said)."""

    action: Message
    corrected: Message
    who: str
    why: str = ""


class StoredCorrection(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a store's corrections: the step, and what it should have been."""

    trace: str
    step: int
    action: Message
    who: str
    why: str = ""
    time: str = ""


def human_name(who: str = "") -> str:
    """The teacher's name of a human; `who` may be empty."""
    return f"{HUMAN}:{who}" if who else HUMAN


def is_human(teacher: str | None) -> bool:
    """Whether a candidate is a human's."""
    return teacher is not None and teacher.partition(":")[0] == HUMAN


def corrections_of(step: Step) -> list[Correction]:
    """The corrections of a step, in order; of several by one human for one answer the last."""
    found: dict[tuple[str, str], Correction] = {}
    words: dict[str, list[str]] = {}
    for said in step.feedback:
        if said.kind == FEEDBACK:
            words.setdefault(said.source, []).append(said.text)
    corrected = step.action
    for candidate in step.candidates:
        if candidate.teacher == CORRECTED:
            corrected = candidate.message
        elif candidate.teacher is not None and is_human(candidate.teacher):
            why = words[candidate.teacher].pop(0) if words.get(candidate.teacher) else ""
            found[candidate.teacher, corrected.id] = Correction(candidate.message, corrected, candidate.teacher, why)
            corrected = step.action
    return list(found.values())


def read_corrections(store: Path) -> dict[str, list[StoredCorrection]]:
    """The corrections of a store, by trace.

    Raises:
        DataError: a line is no correction; it is named.
    """
    path = store / CORRECTIONS
    found: dict[str, list[StoredCorrection]] = {}
    for one in read_lines(path, StoredCorrection) if path.exists() else ():
        found.setdefault(one.trace, []).append(one)
    return found


def with_corrections(trace: Trace, corrections: Iterable[StoredCorrection]) -> Trace:
    """`trace` with the corrections as candidates and feedback of their steps."""
    by_step: dict[int, list[StoredCorrection]] = {}
    for one in corrections:
        by_step.setdefault(one.step, []).append(one)
    steps = (_corrected(step, by_step[step.index]) if step.index in by_step else step for step in trace.steps)
    return msgspec.structs.replace(trace, steps=tuple(steps)) if by_step else trace


def _corrected(step: Step, corrections: list[StoredCorrection]) -> Step:
    candidates = [Candidate(one.action, chosen=False, teacher=one.who) for one in corrections]
    feedback = [Feedback(FEEDBACK, text=one.why, source=one.who) for one in corrections]
    return msgspec.structs.replace(
        step, candidates=(*step.candidates, *candidates), feedback=(*step.feedback, *feedback)
    )
