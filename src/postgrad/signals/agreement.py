"""Do the teachers agree on a step, and on what? Rule ``majority/1``.

Valid answers are clustered by the normal form of the action; answers in words also by their meaning, where a judge is
given. The largest cluster decides when it is alone at the top and holds at least ``max(2, ceil(N / 2))`` of the N
teachers that gave an action. An action that cannot be learnt (cut off, malformed, against its tool's schema, the words
of the hint that the teacher was told) counts in N and in no cluster: it is a vote against. Teachers that gave no action
(an error, nothing to say) do not vote.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from postgrad.core.message import Message
from postgrad.signals.actions import learnable, normal_form
from postgrad.signals.text_judges import SameText, exact, plain_words
from postgrad.teachers.replay import TOLD_A_HINT, ReplayedStep, TeacherAnswer
from postgrad.teachers.validity import CUT_OFF, Invalid, invalid_reason

Drop = Literal["no_answer", "tie", "low_agreement", "truncated", "repeats_hint"] | Invalid
GOLD = "gold answers"
_REPEATED = 0.75  # of an answer's words, from here on it is the hint said again


class Agreement(msgspec.Struct, frozen=True):
    """The action that teachers agree on, who they are, and their share of the teachers that answered."""

    action: Message
    teachers: tuple[str, ...]
    share: float


@dataclass
class Clusters:
    """Equal actions at one step, with who took them, in the order of the answers."""

    replayed: ReplayedStep
    same_text: SameText = exact
    members: dict[str, list[tuple[str, Message]]] = field(default_factory=dict)

    def add(self, name: str, action: Message) -> None:
        """Put an action where it belongs."""
        form = normal_form(action, self.replayed.ask.tools)
        known = self.members.get(form) or next(
            (said for said in self.members.values() if self.alike(said[0][1], action)), None
        )
        if known is None:
            known = self.members[form] = []
        known.append((name, action))

    def alike(self, one: Message, other: Message) -> bool:
        """Whether two actions are the same; the judge is asked about answers in words alone."""
        tools = self.replayed.ask.tools
        if normal_form(one, tools) == normal_form(other, tools):
            return True
        if one.tool_calls or other.tool_calls or self.same_text is exact:
            return False
        return self.same_text(self.replayed.ask.messages, one.text, other.text)

    def ranked(self) -> list[list[tuple[str, Message]]]:
        """The largest first."""
        return sorted(self.members.values(), key=len, reverse=True)


def agree(replayed: ReplayedStep, *, same_text: SameText = exact) -> Agreement | Drop:
    """The majority's action, or why there is none: where no answer is valid, the first one's fault."""
    clusters = Clusters(replayed, same_text)
    faults: list[Drop] = []
    for name, said in replayed.answers.items():
        if said.answer.message is None:
            continue
        fault = fault_of(said, said.answer.message, replayed)
        if fault is None:
            clusters.add(name, said.answer.message)
        else:
            faults.append(fault)
    ranked = clusters.ranked()
    if not ranked:
        return faults[0] if faults else "no_answer"
    best, voters = ranked[0], sum(map(len, ranked)) + sum(fault != "empty" for fault in faults)
    if len(ranked) > 1 and len(ranked[1]) == len(best):
        return "tie"
    if len(best) < max(2, math.ceil(voters / 2)):
        return "low_agreement"
    return Agreement(learnable(best[0][1]), tuple(name for name, _ in best), len(best) / voters)


def gold_action(replayed: ReplayedStep) -> Agreement | Drop:
    """The action of a teacher that knows the answer, or why there is none. Its share is 1: it is no vote."""
    return _alone(replayed, [name for name, said in replayed.answers.items() if said.kind == GOLD])


def action_of(replayed: ReplayedStep, teacher: str) -> Agreement | Drop:
    """One teacher's own action, or why there is none. Its share is that of the teachers that did the same."""
    found = _alone(replayed, [teacher])
    if not isinstance(found, Agreement):
        return found
    forms = [
        normal_form(said.answer.message, replayed.ask.tools)
        for said in replayed.answers.values()
        if said.answer.message is not None and invalid_reason(said.answer.message, ()) != "empty"
    ]
    same = normal_form(found.action, replayed.ask.tools)
    return msgspec.structs.replace(found, share=forms.count(same) / len(forms))


def _alone(replayed: ReplayedStep, names: list[str]) -> Agreement | Drop:
    for name in names:
        said = replayed.answers.get(name)
        if said is not None and said.answer.message is not None:
            action = said.answer.message
            return fault_of(said, action, replayed) or Agreement(learnable(action), (name,), 1.0)
    return "no_answer"


def fault_of(said: TeacherAnswer, action: Message, replayed: ReplayedStep) -> Drop | None:
    """Why a teacher's action cannot be learnt, or None."""
    if said.answer.stop_reason in CUT_OFF:
        return "truncated"
    return invalid_reason(action, replayed.ask.tools) or ("repeats_hint" if _repeats_hint(said, action) else None)


def _repeats_hint(said: TeacherAnswer, action: Message) -> bool:
    """Whether an answer in words is hardly more than the hint, as small models give it back: it answers nobody."""
    if said.hint is None or TOLD_A_HINT not in said.kind or action.tool_calls:
        return False
    told, words = set(plain_words(said.hint)), plain_words(action.text)
    return bool(words) and sum(word in told for word in words) >= _REPEATED * len(words)
