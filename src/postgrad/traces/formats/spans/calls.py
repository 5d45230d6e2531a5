"""Which LLM spans are calls of a model, each counted once, however many libraries reported it.

Instrumentations nest: an agent framework's span holds the SDK's span, which holds the HTTP client's. So an LLM span
with LLM spans below it (without a tool or an agent between) is a wrapper: the innermost one is the call, and a
wrapper of one call gives it what it alone knows. Two spans beside each other are the same call when they have the
same response id, or the same tokens and answer at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from postgrad.traces.formats.openai_chat.messages import link_key
from postgrad.traces.formats.shapes.said import settle
from postgrad.traces.formats.spans.span import Span

_TOGETHER = 0.05  # seconds between the two reports of one call
_DEEPEST = 1000


def ancestors(span: Span, spans: dict[str, Span]) -> list[Span]:
    """The spans above one, nearest first; a loop in a broken log ends it."""
    found: list[Span] = []
    seen = {span.id}
    while (above := spans.get(span.parent)) is not None and above.id not in seen and len(found) < _DEEPEST:
        found.append(above)
        seen.add(above.id)
        span = above
    return found


def distinct_calls(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """The calls of one trace by start, and the spans that were further reports of them."""
    by_id = {span.id: span for span in spans}
    below: defaultdict[str, list[Span]] = defaultdict(list)
    llm = [span for span in spans if span.kind == "llm"]
    for span in llm:
        for above in ancestors(span, by_id):
            if above.kind == "llm":
                below[above.id].append(span)
            if above.kind != "other":
                break
    wrappers = sorted((span for span in llm if span.id in below), key=lambda span: len(ancestors(span, by_id)))
    for wrapper in wrappers:  # the outermost first, so that what it knows arrives at the innermost
        if len(below[wrapper.id]) == 1:
            below[wrapper.id][0].merge(wrapper)
    calls = sorted((span for span in llm if span.id not in below), key=lambda span: span.start)
    kept: list[Span] = []
    twice: list[Span] = []
    for span in calls:
        same = next((other for other in kept if _same(other, span)), None)
        if same is None:
            kept.append(span)
            continue
        best, rest = sorted((same, span), key=lambda item: -(item.call.content if item.call else 0))
        kept = [best if item is same else item for item in kept]
        best.merge(rest)
        twice.append(rest)
    return kept, wrappers + twice


def _same(one: Span, other: Span) -> bool:
    """Whether two spans beside each other report the same call. Some servers give every answer the same id."""
    if one.call is None or other.call is None:
        return False
    ids = one.call.response_id, other.call.response_id
    if not (ids[0] == ids[1] if all(ids) else _at_once(one, other)):
        return False
    keys = [answer_key(span) for span in (one, other)]
    return keys[0] == keys[1] or None in keys


def _at_once(one: Span, other: Span) -> bool:
    """Whether two calls cost the same at the same time: under two names, or beginning and ending together."""
    assert one.call is not None
    assert other.call is not None
    tokens = [(call.usage.get("input_tokens"), call.usage.get("output_tokens")) for call in (one.call, other.call)]
    if tokens[0] != tokens[1] or not all(tokens[0]) or not (one.start and other.start):
        return False
    together = abs(one.start - other.start) < _TOGETHER and abs(one.end - other.end) < _TOGETHER
    return one.start <= other.end and other.start <= one.end and (together or one.name != other.name)


def answer_key(span: Span) -> str | None:
    """What makes two answers the same, None where none was captured."""
    call = span.call
    return link_key(settle(call.answers[:1], record=0)[-1]) if call is not None and call.answers else None
