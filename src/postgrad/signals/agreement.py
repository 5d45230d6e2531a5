"""Do the teachers agree on a step, and on what? Rule ``majority/1``.

Valid answers are clustered by the normal form of the action. The largest cluster decides when it is alone at the top
and holds at least ``max(2, ceil(N / 2))`` of the N teachers that gave an action. An action that cannot be learnt (cut
off, malformed, against its tool's schema) counts in N and in no cluster: it is a vote against.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from postgrad.core.message import Message
from postgrad.signals.actions import CUT_OFF, learnable, normal_form
from postgrad.teachers.replay import ReplayedStep, TeacherAnswer
from postgrad.teachers.validity import Invalid, invalid_reason

Drop = Literal["no_answer", "tie", "low_agreement", "truncated"] | Invalid
GOLD = "gold answers"


class Agreement(msgspec.Struct, frozen=True):
    """The action that teachers agree on, who they are, and their share of the teachers that answered."""

    action: Message
    teachers: tuple[str, ...]
    share: float


def agree(replayed: ReplayedStep) -> Agreement | Drop:
    """The majority's action, or why there is none: where no answer is valid, the first one's fault."""
    clusters: dict[str, list[tuple[str, Message]]] = {}
    faults: list[Drop] = []
    for name, said in replayed.answers.items():
        action = said.answer.message
        if action is None:
            continue
        fault = _fault(said, action, replayed)
        if fault is None:
            clusters.setdefault(normal_form(action), []).append((name, action))
        else:
            faults.append(fault)
    if not clusters:
        return faults[0] if faults else "no_answer"
    ranked = sorted(clusters.values(), key=len, reverse=True)
    best, voters = ranked[0], sum(map(len, ranked)) + len(faults)
    if len(ranked) > 1 and len(ranked[1]) == len(best):
        return "tie"
    if len(best) < max(2, math.ceil(voters / 2)):
        return "low_agreement"
    return Agreement(learnable(best[0][1]), tuple(name for name, _ in best), len(best) / voters)


def gold_action(replayed: ReplayedStep) -> Agreement | Drop:
    """The action of a teacher that knows the answer, or why there is none."""
    for name, said in replayed.answers.items():
        action = said.answer.message
        if said.kind == GOLD and action is not None:
            return _fault(said, action, replayed) or Agreement(learnable(action), (name,), 1.0)
    return "no_answer"


def _fault(said: TeacherAnswer, action: Message, replayed: ReplayedStep) -> Drop | None:
    if said.answer.stop_reason in CUT_OFF:
        return "truncated"
    return invalid_reason(action, replayed.ask.tools)
