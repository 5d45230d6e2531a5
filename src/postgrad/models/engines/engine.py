"""What a sampling server is asked, and the one interface to the APIs that can answer it.

An engine knows one API: how a request looks, how its answer is read, how new weights are announced. It is asked for
plain sampling at the model's own distribution, and says so in every request: servers fill what is not said from the
model's generation config (top_p 0.8 and the like), and then what they sample is not what is trained.

Tokens go out and come back as ids. An answer is refused where ids and log-probabilities do not belong together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from postgrad.core.errors import DataError
from postgrad.models.sample import Sample

Call = tuple[str, dict[str, Any]]
"""A path below the server's address, and the JSON that is posted there."""

WHOLE = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling from the whole distribution: nothing truncated, nothing penalised."""


@dataclass(frozen=True)
class Draw:
    """How to sample: `n` completions of a prompt at `temperature` 1, or 0 for the greedy one."""

    n: int
    temperature: float
    max_new_tokens: int
    stop_ids: tuple[int, ...]


class Engine(Protocol):
    """One API of sampling servers."""

    @property
    def takes(self) -> frozenset[str]:
        """Which weights it can be given while it runs: "adapter", "model"."""
        ...

    def request(self, prompt: Sequence[int], draw: Draw, *, seed: int, model: str, adapter: str | None) -> Call:
        """The request for `draw.n` completions of a prompt."""
        ...

    def read(self, answer: Any, prompt: Sequence[int], draw: Draw) -> list[Sample]:
        """The completions of an answer.

        Raises:
            DataError: ids or log-probabilities are missing, or do not belong together.
        """
        ...

    def load(self, kind: str, name: str, folder: str) -> Call:
        """The request to take the weights in `folder`."""
        ...

    def unload(self, name: str) -> Call | None:
        """The request to forget an adapter; None where there is none to be made."""
        ...


def checked_sample(ids: Sequence[Any], logprobs: Sequence[Any], reason: object, draw: Draw) -> Sample:
    """A sample from what a server said.

    Raises:
        DataError: as `Engine.read`.
    """
    if len(ids) != len(logprobs):
        raise _refused(f"{len(ids)} token ids and {len(logprobs)} log-probabilities")
    if not all(isinstance(token, int) and not isinstance(token, bool) and token >= 0 for token in ids):
        raise _refused(f"token ids {list(ids)[:5]}")
    if not all(isinstance(x, (int, float)) and math.isfinite(x) and -1000.0 < x <= 1e-4 for x in logprobs):
        raise _refused(f"log-probabilities {list(logprobs)[:5]}")
    if reason not in ("stop", "length"):
        raise _refused(f"finish reason {reason!r}")
    if len(ids) > draw.max_new_tokens:
        raise _refused(f"{len(ids)} tokens where at most {draw.max_new_tokens} were asked for")
    early = next((place for place, token in enumerate(ids[:-1]) if token in draw.stop_ids), None)
    if early is not None:
        raise _refused(f"a completion that goes on after stop token {ids[early]}")
    if reason == "stop" and (not ids or ids[-1] not in draw.stop_ids):
        raise _refused(f"a completion that stopped without one of the stop tokens {list(draw.stop_ids)}")
    reason_now = "stop" if ids and ids[-1] in draw.stop_ids else "length"
    return Sample(tuple(ids), tuple(min(0.0, float(x)) for x in logprobs), "stop" if reason_now == "stop" else "length")


def member(value: Any, *path: str | int) -> Any:
    """A value deep in JSON, None where there is none."""
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and len(value) > key else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _refused(got: str) -> DataError:
    return DataError(
        "an answer of the sampling server cannot be trained on",
        got=got,
        expected="the ids that were sampled, stop token included, and a log-probability for each",
    )


def missing(what: str, do: str) -> DataError:
    """The error for a server that leaves out what training needs."""
    return DataError(f"the sampling server gave no {what}", do=do)
