"""`NetworkTeacher`: an actor behind one or more endpoints. Redaction, cache and failover; the rest is the gateway's.

What no endpoint answers is an answer with an `error`, for one bad ask must not cost the others. An answer that another
model gave than was asked for counts as such an error. It stays in the cache, for it was paid: once the user says that
the name is accepted, it is an answer without a new call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import ConfigError
from postgrad.teachers.cache import AnswerCache
from postgrad.teachers.call import Call
from postgrad.teachers.claims import claimed
from postgrad.teachers.gateway import Connection, Endpoint, Gateway
from postgrad.teachers.money.tokens import Meter, Scale
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.provider import is_loopback
from postgrad.teachers.providers.served import same_model

Redact = Callable[[Ask], Ask]
SaidT = TypeVar("SaidT")


class NetworkTeacher:
    """An `Actor` behind endpoints in order of preference.

    Args:
        name: for reports and caches.
        endpoints: the first is asked; the others stand in when it fails.
        cache: where answers are kept.
        gateway: shared by the teachers of a run.
        redact: applied to every ask before it leaves; without one only addresses of this machine are accepted.
        scale: how tokens are estimated.

    Raises:
        ConfigError: an ask would leave the machine as it is.
    """

    def __init__(
        self,
        name: str,
        endpoints: Sequence[Endpoint],
        *,
        cache: AnswerCache,
        gateway: Gateway,
        redact: Redact | None = None,
        scale: Scale | None = None,
    ) -> None:
        for address in (endpoint.provider.address for endpoint in endpoints):
            if redact is None and not is_loopback(address):
                told = f"teacher {name} would send traces to another machine without redaction"
                raise ConfigError(told, got=address, do="give it a redactor")
        self.name = name
        self.kind = endpoints[0].provider.kind
        self.endpoints = tuple(endpoints)
        self.cache, self.gateway, self.redact = cache, gateway, redact
        self.meter = Meter(scale or Scale(form=endpoints[0].provider.form))
        self._connections: list[Connection] = []
        self._under_way: dict[str, asyncio.Future[Answer]] = {}
        self._callers: set[asyncio.Task[Any]] = set()

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order. See `ask` for errors."""

        async def everything() -> list[Answer]:
            async with self.connected():
                said = await asyncio.gather(*(self.ask(ask, sampling) for ask in asks), return_exceptions=True)
            return [answer for answer, _ in or_raised(said)]

        return asyncio.run(everything())

    def known(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer | None]:
        """What the cache holds, None where it holds nothing."""
        kept = self.cache.known(asks, sampling)
        return [None if answer is None else self._checked(answer) for answer in kept]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep the endpoints' clients open, in one event loop."""
        async with AsyncExitStack() as stack:
            for endpoint in self.endpoints:
                send = await stack.enter_async_context(endpoint.provider.connect())
                slots = self.gateway.places(endpoint)
                self._connections.append(Connection(endpoint, send, self.gateway, self.cache, self.meter, slots))
            try:
                yield
            finally:
                await self._drop()
                self._connections.clear()

    async def _drop(self) -> None:
        """End what is still under way, where something ended the replay at once, while its connections are open.

        Each such call is written down as interrupted, with its money. Closing the connections first would make it one
        that failed.
        """
        dropped = self._callers - {asyncio.current_task()}
        for caller in dropped:
            caller.cancel()
        if dropped:
            await asyncio.wait(dropped)

    async def ask(
        self, ask: Ask, sampling: Sampling, *, trace: str = "", shared: int | None = None
    ) -> tuple[Answer, bool]:
        """Answer one ask, and say whether it cost no call.

        The same ask twice at once is one call, also of two processes with one cache.

        Args:
            ask: as the student saw it; it is redacted here.
            sampling: how to sample.
            trace: where it is from, for the journal; asks of one trace that follow each other are weighed together.
            shared: how many messages at the beginning the trace's last request had too, so that a prompt cache may hold
                them; None where no other request begins like this one.

        Raises:
            BudgetReached: the call might not be within the budget.
            Interrupted: the replay was asked to end before the call was made.
            ConfigError: key, model or address are refused before anything was answered.
        """
        if sampling.constrained:
            raise ConfigError(f"teacher {self.name}: constrained decoding is for local models", do="set it to false")
        key = self.cache.key(ask, sampling)
        kept = self.cache.get(key)
        if kept is not None:
            return self._checked(kept), True
        if key in self._under_way:
            return await asyncio.shield(self._under_way[key]), True
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        caller = asyncio.current_task()
        assert caller is not None, "it is awaited in a task"
        self._callers.add(caller)
        try:
            sent = ask if self.redact is None else self.redact(ask)
            answer, known = await self._once(Call(self.name, ask, sent, sampling, key, trace, shared))
            future.set_result(self._checked(answer))
            return future.result(), known
        except BaseException as error:
            future.set_exception(error)
            future.exception()  # nobody else may be waiting for it
            raise
        finally:
            del self._under_way[key]
            self._callers.discard(caller)

    def _checked(self, answer: Answer) -> Answer:
        if answer.message is None:
            return answer
        for endpoint in self.endpoints:
            if same_model(endpoint.provider.model, answer.model, endpoint.accepted):
                return answer
        told = f"error: wrong_model: {answer.model} answered for {self.endpoints[0].provider.model}"
        return msgspec.structs.replace(answer, message=None, stop_reason=told, error="wrong_model")

    async def _once(self, call: Call) -> tuple[Answer, bool]:
        """The answer, and whether another process asked for it while this one waited for its claim."""
        async with claimed(self.cache.folder, call.key, sleep=self.gateway.stop.sleep):
            kept = self.cache.get(call.key)
            return (await self._somewhere(call), False) if kept is None else (kept, True)

    async def _somewhere(self, call: Call) -> Answer:
        """At the first endpoint that answers."""
        failure = CallFailed("down", "every endpoint failed ask after ask")
        for connection in self._connections:
            if connection.is_down:
                continue
            try:
                return await connection.answer(call)
            except CallFailed as failed:
                failure = failed
        self._require_usable(failure)
        code = "refused" if failure.kind == "refused" else f"error: {failure.kind}"
        return Answer(None, self.endpoints[0].provider.model, f"{code}: {failure.detail}", error=failure.kind)

    def _require_usable(self, failure: CallFailed) -> None:
        """A key, a model or an address that never worked is the user's mistake, and the same for every ask."""
        if failure.kind == "denied" and not any(connection.answered for connection in self._connections):
            provider = self.endpoints[-1].provider
            raise ConfigError(
                f"teacher {self.name}: {provider.address} refused the key, the model or the address: {failure.detail}",
                got=provider.model,
                do="check base_url, model and api_key_env",
            )


def or_raised(said: Sequence[SaidT | BaseException]) -> list[SaidT]:
    """What was said; what was raised, once everything under way has ended and is kept."""
    for one in said:
        if isinstance(one, BaseException):
            raise one
    return [one for one in said if not isinstance(one, BaseException)]
