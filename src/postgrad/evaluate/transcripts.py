"""`transcripts`: the answers of an evaluation as traces, the same type as a recorded session or a rollout.

They are made by the rollout itself, with an actor that repeats what was answered. They hold held-out tasks: they are
for looking at, and for error sites. Each is marked as an evaluation, and `replay` and `build` pass marked traces over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.core.trace import EVALUATION, Trace
from postgrad.envs.environment import Environment
from postgrad.envs.rollouts import rollout
from postgrad.evaluate.store import Evaluated


@dataclass(frozen=True)
class _Recorded:
    """An actor that repeats the evaluated answers, by task."""

    name: str
    answers: dict[str, tuple[Message | None, str]]
    kind: str = "recorded answers"

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        found = [self.answers[str(ask.task_id)] for ask in asks]
        return [Answer(message, self.name, stop_reason) for message, stop_reason in found]


def transcripts(
    actor: str, environment: Environment, tasks: Sequence[Task], answers: Sequence[Evaluated], sampling: Sampling
) -> list[Trace]:
    """One trace per answered task; items lost to infrastructure have none. `actor` names who answered."""
    lost = {one.item.id for one in answers if one.item.outcome == "infra_error"}
    recorded = _Recorded(actor, {one.item.id: (one.message, one.stop_reason) for one in answers})
    kept = [task for task in tasks if task.id not in lost]
    return [_marked(trace) for trace in rollout(recorded, environment, kept, sampling)]


def _marked(trace: Trace) -> Trace:
    steps = []
    for step in trace.steps:
        request = msgspec.structs.replace(step.request, params={**step.request.params, "purpose": EVALUATION})
        steps.append(msgspec.structs.replace(step, request=request))
    return msgspec.structs.replace(trace, steps=tuple(steps))
