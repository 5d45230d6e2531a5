"""Pairs and rows to imitate from replayed steps: what teachers would have done, against what the student did.

Whose action counts is a `Choice`: that of the majority (``majority/1``), of a gold teacher (``gold/1``), or of one
teacher by name (``teacher/1``). A pair is made where the student did something else; its weight is the share of the
teachers that stand behind the chosen action. Ties, low agreement and answers that cannot be learnt give none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from postgrad.core.record import Provenance, Record
from postgrad.signals.actions import learnable
from postgrad.signals.agreement import Agreement, Clusters, Drop, action_of, agree, gold_action
from postgrad.signals.rows.made import Made
from postgrad.signals.text_judges import SameText, exact
from postgrad.teachers.replay import ReplayedStep

MAJORITY, BY_GOLD = "majority", "gold"


@dataclass(frozen=True)
class Choice:
    """Whose action to learn: "majority", "gold", or a teacher's name; `same_text` compares answers in words."""

    imitate: str = MAJORITY
    same_text: SameText = exact

    @property
    def rule(self) -> str:
        """Name and version of the rule."""
        return {MAJORITY: "majority/1", BY_GOLD: "gold/1"}.get(self.imitate, "teacher/1")

    def of(self, step: ReplayedStep) -> Agreement | Drop:
        """The action to learn at `step`, or why there is none."""
        if self.imitate == MAJORITY:
            return agree(step, same_text=self.same_text)
        return gold_action(step) if self.imitate == BY_GOLD else action_of(step, self.imitate)

    def why(self, step: ReplayedStep, found: Agreement) -> str:
        """The reason in words."""
        if self.imitate == MAJORITY:
            voted = sum(said.answer.message is not None for said in step.answers.values())
            return f"{len(found.teachers)} of {voted} teachers do the same"
        return "the right answer" if self.imitate == BY_GOLD else f"the answer of {self.imitate}"


BY_MAJORITY = Choice()


def build_pairs(replayed: Iterable[ReplayedStep], choice: Choice = BY_MAJORITY) -> Iterator[Made]:
    """One pair or one reason per replayed step; ``same_as_student`` is a reason."""
    for step in replayed:
        found = choice.of(step)
        if not isinstance(found, Agreement):
            yield Made(dropped=found)
        elif Clusters(step, choice.same_text).alike(found.action, step.action):
            yield Made(dropped="same_as_student")
        else:
            row = imitation(step, found, choice, also="; the student did something else")
            yield Made(msgspec.structs.replace(row, rejected=learnable(step.action), weight=found.share))


def build_imitations(replayed: Iterable[ReplayedStep], choice: Choice = BY_MAJORITY) -> Iterator[Made]:
    """A row for cross-entropy or a reason per replayed step, whatever the student did."""
    for step in replayed:
        found = choice.of(step)
        made = Made(imitation(step, found, choice)) if isinstance(found, Agreement) else Made(dropped=found)
        yield made


def answer_cost(step: ReplayedStep) -> float | None:
    """US dollars that all answers at a step cost whenever they were bought; None where no price is known."""
    known = [said.answer.cost for said in step.answers.values() if said.answer.cost is not None]
    return math.fsum(known) if known else None


def imitation(step: ReplayedStep, found: Agreement, choice: Choice, *, also: str = "") -> Record:
    """The row to imitate at `step`; `also` is added to its reason."""
    where = Provenance(
        step.trace,
        step.step,
        choice.rule,
        found.teachers,
        found.share,
        choice.why(step, found) + also,
        answer_cost(step),
        step.fidelity,
    )
    return Record(step.ask.messages, found.action, step.ask.tools, provenance=where)
