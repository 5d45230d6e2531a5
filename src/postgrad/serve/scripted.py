"""`ScriptedEngine`: an engine that says what it was told to, for tests of clients and of the endpoint. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

from postgrad.core.message import Message
from postgrad.models.calls import parse_action
from postgrad.serve.engine import Demand, Event, Finish, Progress
from postgrad.serve.reading import ActionReader
from postgrad.serve.refusal import context_too_long

Script = Callable[[Sequence[Message]], Iterable[str]]


@dataclass
class ScriptedEngine:
    """Answers with the pieces that `script` gives for the messages; a piece counts as one token.

    A prompt has as many tokens as its messages have words. `seconds` is slept before each piece, and `steps` counts
    the pieces said, so that a test can see work stop.
    """

    script: Script
    name: str = "scripted"
    context_length: int = 1024
    seconds: float = 0.0
    steps: int = field(default=0, init=False)
    demands: list[Demand] = field(default_factory=list, init=False)

    def generate(self, messages: Sequence[Message], demand: Demand) -> Generator[Event, None, None]:
        """The script's pieces as events."""
        prompt_tokens = sum(len(message.text.split()) for message in messages)
        if prompt_tokens >= self.context_length:
            raise context_too_long(prompt_tokens, context_length=self.context_length)
        self.demands.append(demand)
        return self._events(messages, demand, prompt_tokens)

    def _events(self, messages: Sequence[Message], demand: Demand, prompt_tokens: int) -> Generator[Event, None, None]:
        reader = ActionReader(stop=demand.stop, parse=parse_action if demand.tools else None)
        said = 0
        cut = False
        for piece in self.script(messages):
            if said == demand.sampling.max_new_tokens:
                cut = True
                break
            time.sleep(self.seconds)
            said += 1
            self.steps += 1
            yield from reader.push(piece) or [Progress()]
            if reader.stopped:
                break
        events, unfinished = reader.close(cut=cut)
        yield from events
        yield Finish("length" if cut else "stop", prompt_tokens, said, unfinished)
