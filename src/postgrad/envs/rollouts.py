"""`rollout`: an actor acts on tasks, and each run becomes a trace like any recorded session.

Every step holds the exact request, the action, the tools' results and the verifier's feedback (the score; below 1 the
kind of error and a sentence on it). With `max_turns` above 1 a call that the tool refused is answered with the tool's
error, and the actor may try again. A run is data whatever became of it: an abstention is a trace without steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.canonical import content_id
from postgrad.core.message import Block, Message, ToolCall, ToolResult
from postgrad.core.task import Task
from postgrad.core.trace import Candidate, Event, Feedback, Request, Source, Step, Trace
from postgrad.envs.environment import Environment

SOURCE = Source(path="", format="postgrad")


def rollout(
    actor: Actor, environment: Environment, tasks: Sequence[Task], sampling: Sampling, *, max_turns: int = 1
) -> list[Trace]:
    """Let `actor` act on `tasks`, all of them in one batch a turn; one trace per task, in order.

    Raises:
        OutsideFailure: the actor cannot be reached.
    """
    assert max_turns >= 1
    runs = [_Run(task, actor.name, environment, sampling) for task in tasks]
    waiting = runs
    for _ in range(max_turns):
        answers = actor.answer([run.ask() for run in waiting], sampling) if waiting else []
        waiting = [run for run, answer in zip(waiting, answers, strict=True) if run.take(answer)]
    return [run.trace() for run in runs]


@dataclass
class _Run:
    """One task while the actor works on it."""

    task: Task
    actor: str
    environment: Environment
    sampling: Sampling
    later: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: tuple[Event, ...] = ()

    def ask(self) -> Ask:
        return Ask((*self.task.messages, *self.later), self.task.tools, self.task.id)

    def take(self, answer: Answer) -> bool:
        """Record the answer; True when a tool refused a call, so that another turn may help."""
        if answer.message is None:
            self.events = (Event("abstained", before_step=len(self.steps), record=0),)
            return False
        action = self._with_new_ids(answer.message)
        results = self.environment.respond(self.task, action)
        self.steps.append(self._step(action, answer, results))
        self.later += [action, *(Message("tool", (result,)) for result in results)]
        return any(result.is_error for result in results)

    def trace(self) -> Trace:
        """The finished run; its id follows from the content, so equal runs have equal ids."""
        pool = {message.id: message for message in (*self.task.messages, *self.later)}
        about = [self.environment.name, self.task.id, self.actor, msgspec.to_builtins(self.sampling), list(pool)]
        name = f"rollout-{content_id(about)}"
        return Trace(name, SOURCE, pool, tuple(self.steps), events=self.events, task_id=self.task.id)

    def _step(self, action: Message, answer: Answer, results: tuple[ToolResult, ...]) -> Step:
        request = Request(tuple(message.id for message in self.ask().messages), self.task.tools, self._params(answer))
        usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
        candidate = Candidate(action, model=answer.model, stop_reason=answer.stop_reason, usage=usage)
        grade = self.environment.grade(self.task, action)
        text = f"{grade.error}: {grade.detail}" if grade.error else ""
        feedback = Feedback("verifier", value=grade.score, text=text, source=self.environment.name)
        return Step(len(self.steps), request, (candidate,), results, (feedback,))

    def _params(self, answer: Answer) -> dict[str, object]:
        """The sampling parameters under the names of the chat-completions API."""
        drawn = self.sampling
        params = {"model": answer.model, "temperature": drawn.temperature, "max_tokens": drawn.max_new_tokens}
        return {**params, "seed": drawn.seed, **({"constrained": True} if drawn.constrained else {})}

    def _with_new_ids(self, message: Message) -> Message:
        """Call ids must be unique in a trace, and an actor numbers each of its answers from the start."""
        taken = {call.id for step in self.steps for call in step.action.tool_calls}

        def fresh(block: Block) -> Block:
            if isinstance(block, ToolCall) and block.id in taken:
                return msgspec.structs.replace(block, id=f"{block.id}_{len(self.steps)}")
            return block

        return msgspec.structs.replace(message, blocks=tuple(fresh(block) for block in message.blocks))
