"""`Engine`: what turns messages into a stream of events; the endpoint knows nothing else of a model.

One exchange is `Progress`, `TextDelta` and `ToolCallDone` in any order, then exactly one `Finish`. An engine yields
at least one event per sampled token: whoever pulls the events can stop between any two tokens, so cancelling needs
no flag. Not covered: several choices per request, log-probabilities.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from postgrad.core.actor import Sampling
from postgrad.core.message import Message, Tool, ToolCall

StopReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Progress:
    """A token was sampled and nothing became visible."""


@dataclass(frozen=True)
class TextDelta:
    """Text that is certain: it belongs to no stop string, no tool call and no unfinished character."""

    text: str


@dataclass(frozen=True)
class ToolCallDone:
    """A complete call."""

    call: ToolCall


@dataclass(frozen=True)
class Finish:
    """The end. `unfinished` is the text of a tool call that was cut off; it is no answer, but it is evidence."""

    reason: StopReason
    prompt_tokens: int
    completion_tokens: int
    unfinished: str = ""


Event = Progress | TextDelta | ToolCallDone | Finish


@dataclass(frozen=True)
class Demand:
    """What is asked of the engine beside the messages.

    `must_call`: the answer is to be one or more calls of `tools` and nothing else.
    """

    sampling: Sampling
    tools: tuple[Tool, ...] = ()
    stop: tuple[str, ...] = ()
    must_call: bool = False


class Engine(Protocol):
    """A model that can be served."""

    @property
    def name(self) -> str:
        """The model's name, as requests give it."""
        ...

    @property
    def context_length(self) -> int:
        """Tokens that prompt and answer may take together."""
        ...

    def generate(self, messages: Sequence[Message], demand: Demand) -> Generator[Event, None, None]:
        """Read the prompt at once, then sample as the events are pulled; closing the generator stops the work.

        Raises:
            Refusal: before the first event: the prompt does not fit, or the engine cannot do what is demanded.
        """
        ...
