"""Does the rebuilt context weigh what the provider counted? A large gap means that a part is missing.

Tokens are counted with a tokenizer file where one is given, else estimated: four characters a token, one token for
each character of Chinese, Japanese and Korean (+-30 %). The estimate's rate is then fitted to the trace itself: what
a context grew by from one step to the next, against what the provider's count grew by. What is left over is not a
matter of rate: it is there from the start (a system prompt, tools) or it is lost on the way. Not covered: contexts
with images, whose price in tokens is the provider's secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any

from postgrad.core.message import Media
from postgrad.core.prefix import common
from postgrad.core.trace import Step, Trace
from postgrad.teachers.money.tokens import Count, Scale

LARGEST_GAP = 0.15
"""Share of the logged input tokens; above it a context is flagged."""
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_RATES = (0.5, 2.0)  # what a tokenizer can differ from the estimate by; beyond it something else is going on
_FEWEST = 3  # growths to fit a rate to
_CHARACTERS_A_TOKEN = 4.0

_WHOLE = (
    *("prompt_tokens", "promptTokenCount", "prompt_token_count", "gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    *("promptTokens", "inputTokens"),
)
_WRITTEN = (
    *("completion_tokens", "output_tokens", "candidatesTokenCount", "gen_ai.usage.output_tokens"),
    *("llm.token_count.completion", "completionTokens", "outputTokens", "tokensOut", "output"),
)
_CACHED = (
    *("cache_creation_input_tokens", "cache_read_input_tokens", "cacheReadTokens", "cacheWriteTokens"),
    *("input_tokens_cache_read", "input_tokens_cache_write"),
)


def by_script(text: str) -> float:
    """Estimated tokens of a text: four characters a token, one for each wide character."""
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide + (len(text) - wide) / _CHARACTERS_A_TOKEN


def logged_input(usage: Mapping[str, Any]) -> int | None:
    """Input tokens that a provider counted, cached ones included; None where the log has none.

    Anthropic (and what is modelled on it) counts cached tokens apart: input + cache_creation + cache_read. Elsewhere
    the cached tokens are a part of the input.
    """
    for name in _WHOLE:
        if (whole := _number(usage.get(name))) is not None:
            return whole
    fresh = _number(usage.get("input_tokens", usage.get("input", usage.get("tokensIn"))))
    if fresh is None:
        return None
    cache = usage.get("cache")
    apart = [usage.get(name) for name in _CACHED] + (
        [cache.get("read"), cache.get("write")] if isinstance(cache, dict) else []
    )
    return fresh + sum(_number(value) or 0 for value in apart)


def logged_output(usage: Mapping[str, Any]) -> int | None:
    """Output tokens that a provider counted, those of thinking included; None where the log has none."""
    numbers = (_number(usage.get(name)) for name in _WRITTEN)
    return next((number for number in numbers if number is not None), None)


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


class ContextSizes:
    """Counted and logged sizes of a trace's steps, by step index, and which of them do not fit together."""

    def __init__(self, trace: Trace, count: Count | None = None) -> None:
        self._trace, self._fitted = trace, count is None
        self._scale = Scale(count or by_script)
        self._tokens: dict[str, float] = {}
        self._media = {
            key for key, message in trace.messages.items() if any(isinstance(b, Media) for b in message.blocks)
        }

    @cached_property
    def counted(self) -> dict[int, float | None]:
        """Step index -> tokens that its context is counted to have, None where it holds what cannot be counted."""
        steps = self._trace.steps
        return {step.index: size for step, size in zip(steps, self._sizes(steps), strict=True)}

    def gaps(self) -> dict[int, float]:
        """Step index -> logged minus counted, as a share of logged, where both are known."""
        logged = {step.index: _logged(step) for step in self._trace.steps}
        if not any(logged.values()):
            return {}
        known = {at: tokens for at, tokens in logged.items() if tokens and self.counted[at] is not None}
        rate = self._rate(known) if self._fitted else 1.0
        return {at: 1 - rate * (self.counted[at] or 0.0) / tokens for at, tokens in known.items()}

    def _sizes(self, steps: Sequence[Step]) -> list[float | None]:
        """Contexts grow out of each other, so a step costs only what it adds to the one before."""
        sizes: list[float | None] = []
        before: tuple[str, ...] = ()
        size = 0.0
        for step in steps:
            ids = step.request.messages
            goes_on = common(before, ids) == len(before)
            size = (size if goes_on else 0.0) + sum(map(self._weight, ids[len(before) :] if goes_on else ids))
            before = ids
            unknown = not ids or (bool(self._media) and not self._media.isdisjoint(ids))
            sizes.append(None if unknown else size + self._scale.tools(step.request.tools).tokens)
        return sizes

    def _weight(self, key: str) -> float:
        if key not in self._tokens:
            self._tokens[key] = self._scale.message(self._trace.messages[key]).tokens
        return self._tokens[key]

    def _rate(self, known: Mapping[int, int]) -> float:
        """Logged tokens per estimated one: the middle of what single steps grew by."""
        places = sorted(known)
        rates = []
        for one, other in pairwise(places):
            grown = (self.counted[other] or 0.0) - (self.counted[one] or 0.0)
            if grown >= 20 and known[other] > known[one]:
                rates.append((known[other] - known[one]) / grown)
        if len(rates) < _FEWEST:
            return 1.0
        return min(max(median(rates), _RATES[0]), _RATES[1])


def _logged(step: Step) -> int | None:
    chosen = next((candidate for candidate in step.candidates if candidate.chosen), None)
    return logged_input(chosen.usage) if chosen is not None else None
