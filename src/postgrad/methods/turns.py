"""A task worked on over several turns, token for token: what was sampled stays as it was sampled.

After a turn whose calls a tool refused, the next prompt is the tokens so far, and then what the chat template writes
after an action: the rest of its turn, the tools' results, the opening of the next answer. Only that piece is tokenised;
the sampled ids before it are never read back from text. So the whole attempt is one branch, in which the model's tokens
are scored and the others are context.

Where a template would show an earlier answer otherwise (without its reasoning), the branch still has it as it was
sampled, which is what the later turns were sampled after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.envs import Environment

if TYPE_CHECKING:
    from postgrad.models.render import Renderer
    from postgrad.models.sample import Sample

Observed = tuple[int, tuple[int, ...]]
"""How many tokens had been sampled, and what was written after them by others."""
Draw = Callable[[Sequence[Sequence[int]], int], list["Sample"]]
"""Prompts and the number of the turn to one sample each."""


@dataclass
class Attempt:
    """One task in work: `samples`, a turn each, and what came between."""

    task: Task
    prompt: tuple[int, ...]
    samples: list[Sample] = field(default_factory=list)
    observed: list[Observed] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[int, ...]:
        """All that was sampled."""
        return tuple(token for sample in self.samples for token in sample.tokens)

    @property
    def action(self) -> Message:
        """The last thing that the model did."""
        return next(message for message in reversed(self.messages) if message.role == "assistant")

    def context(self) -> list[int]:
        """Everything so far, as tokens."""
        return list(whole(self.prompt, self.tokens, self.observed)[0])

    def take(self, sample: Sample, renderer: Renderer, environment: Environment) -> bool:
        """Record a turn; True when a tool refused a call, so that another turn may help."""
        turn = len(self.samples)
        self.samples.append(sample)
        prefix = f"call_{turn}" if turn else "call"
        action = renderer.parse(renderer.decode(sample.tokens), call_prefix=prefix, tools=self.task.tools)
        self.messages.append(action)
        if sample.stop_reason != "stop":
            return False
        results = environment.respond(self.task, action)
        if not any(result.is_error for result in results):
            return False
        answered = [*self.messages, *(Message("tool", (result,)) for result in results)]
        written = after_action((*self.task.messages, *answered), self.task, renderer)
        if written is None:
            return False
        self.messages = answered
        self.observed.append((len(self.tokens), written))
        return True

    def drop_last_observation(self) -> None:
        """Forget what nobody answered: results after the last turn that there was room for."""
        if self.observed and self.observed[-1][0] == len(self.tokens):
            self.observed.pop()


def play(
    attempts: Sequence[Attempt],
    first: Sequence[Sample],
    draw: Draw,
    *,
    renderer: Renderer,
    environment: Environment,
    max_turns: int,
) -> None:
    """Take the `first` samples, and go on with those attempts that another turn may help, `max_turns` in all."""
    waiting = [a for a, sample in zip(attempts, first, strict=True) if a.take(sample, renderer, environment)]
    for turn in range(1, max_turns):
        drawn = draw([attempt.context() for attempt in waiting], turn) if waiting else []
        waiting = [a for a, sample in zip(waiting, drawn, strict=True) if a.take(sample, renderer, environment)]
    for attempt in waiting:
        attempt.drop_last_observation()


def after_action(messages: Sequence[Message], task: Task, renderer: Renderer) -> tuple[int, ...] | None:
    """What the template writes after the last answer in `messages`, up to where the next one begins.

    None where it does not say where that answer ends.
    """
    last = max(place for place, message in enumerate(messages) if message.role == "assistant")
    place = renderer.spans(messages, task.tools).actions[last]
    return None if place is None else tuple(renderer.prompt(messages, task.tools)[place[1] :])


def whole(
    prompt: Sequence[int], tokens: Sequence[int], observed: Sequence[Observed]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The branch of an attempt, and the places in it of what was sampled."""
    branch, places, written = list(prompt), list[int](), dict(observed)
    for count, token in enumerate(tokens):
        branch += written.get(count, ())
        places.append(len(branch))
        branch.append(token)
    branch += written.get(len(tokens), ())
    return tuple(branch), tuple(places)
