"""`PolicyEngine`: a policy behind the endpoint, with the renderer that it was trained and evaluated with."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message
from postgrad.serve.engine import Demand, Event, Finish, Progress
from postgrad.serve.reading import ActionReader, Characters
from postgrad.serve.refusal import Refusal, context_too_long

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar

    from postgrad.models.policy import Policy


class PolicyEngine:
    """An engine over a policy.

    Args:
        policy: the model, its tokenizer and its renderer.
        name: the name that requests give; the policy's own by default.
        context_length: tokens that prompt and answer may take together; by default what the model was made for.

    Raises:
        ConfigError: `context_length` is more than the model was made for.
    """

    def __init__(self, policy: Policy, *, name: str | None = None, context_length: int | None = None) -> None:
        self._policy = policy
        self.name = name or policy.name
        self.context_length = context_length or policy.context_length
        if self.context_length > policy.context_length:
            raise ConfigError(
                "context_length is too long", got=context_length, expected=f"at most {policy.context_length}"
            )

    def generate(self, messages: Sequence[Message], demand: Demand) -> Generator[Event, None, None]:
        """Render the prompt now; prefill and sample as the events are pulled.

        The answer ends with reason "length" where the context ends, even if the request allowed more tokens.

        Raises:
            Refusal: the prompt does not fit, the chat template takes no such conversation, or a tool's schema makes no
                grammar.
        """
        try:
            prompt = self._policy.renderer.prompt(messages, demand.tools)
            grammar = self._grammar(demand)
        except DataError as error:
            raise Refusal(str(error), code="invalid_value") from None
        room = self.context_length - len(prompt)
        if room < 1:
            raise context_too_long(len(prompt), context_length=self.context_length)
        limit = min(room, demand.sampling.max_new_tokens)
        sampling = msgspec.structs.replace(demand.sampling, max_new_tokens=limit)
        return self._events(prompt, replace(demand, sampling=sampling), grammar)

    def _grammar(self, demand: Demand) -> CompiledGrammar | None:
        """The grammar of the offered tools where a call is demanded; otherwise the model runs free."""
        return self._policy.grammar(demand.tools, require_call=True) if demand.must_call else None

    def _events(
        self, prompt: list[int], demand: Demand, grammar: CompiledGrammar | None
    ) -> Generator[Event, None, None]:
        from postgrad.models.sampler import stream

        renderer = self._policy.renderer
        # `decode` keeps special tokens: in some vocabularies the tags of a call are special, and they must be seen.
        characters = Characters(renderer.decode)
        form = renderer.calls
        parse = partial(renderer.parse, tools=demand.tools) if demand.tools or form.whole else None
        reader = ActionReader(stop=demand.stop, parse=parse, whole=form.native)
        sampled, ended = 0, False
        sampling = demand.sampling
        tokens = stream(
            self._policy,
            prompt,
            temperature=sampling.temperature,
            max_new_tokens=sampling.max_new_tokens,
            seed=sampling.seed,
            grammar=grammar,
        )
        for token in tokens:
            sampled += 1
            ended = token in renderer.stop_ids
            yield from () if ended else reader.push(characters.push(token))
            yield Progress()
            if ended or reader.stopped:
                break
        if not reader.stopped:
            yield from reader.push(characters.close())
        cut = not ended and not reader.stopped
        events, unfinished = reader.close(cut=cut)
        yield from events
        yield Finish("length" if cut else "stop", len(prompt), sampled, unfinished)
