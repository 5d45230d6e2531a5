"""`listed`: a trace as a row of the list: what it is, how long, what it cost in tokens, what went wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from postgrad.core.trace import Candidate, Step, Trace
from postgrad.signals.error_sites.corrections import typed
from postgrad.signals.error_sites.sites import Site

TITLE = 160  # characters
# Files, notices and reminders that an application puts around what a user typed: <uploaded_files>...</uploaded_files>
_TAGGED = re.compile(r"<([a-z][\w-]*)>.*?</\1>", re.DOTALL)
# The names that providers use for the same counts.
_INPUT = ("input_tokens", "prompt_tokens", "promptTokenCount", "input")
_OUTPUT = ("output_tokens", "completion_tokens", "candidatesTokenCount", "output")
_CACHED = ("cache_read_input_tokens", "cached_input_tokens", "cachedContentTokenCount", "cached")


def listed(trace: Trace, sites: Sequence[Site], *, key: int) -> dict[str, Any]:
    """Plain JSON data; `key` is the trace's number on the page."""
    times = sorted(step.time for step in trace.steps if step.time)
    usages = [tokens(candidate) for step in trace.steps for candidate in step.candidates]
    return {
        "key": key,
        "id": trace.id,
        "title": title(trace),
        "format": trace.source.format,
        "app": trace.source.app or "",
        "version": trace.source.app_version or "",
        "path": trace.source.path,
        "models": sorted({c.model for step in trace.steps for c in step.candidates if c.model}),
        "agents": sorted({step.agent for step in trace.steps if step.agent}),
        "kinds": dict(Counter(step.kind for step in trace.steps)),
        "abandoned": sum(step.abandoned for step in trace.steps),
        "steps": len(trace.steps),
        "calls": trace.tool_calls,
        "results": trace.tool_results,
        "flagged": trace.flagged_errors,
        "verdicts": dict(Counter(site.verdict for site in sites)),
        "fidelity": dict(Counter(step.request.fidelity for step in trace.steps)),
        "tokens": {name: sum(usage[name] for usage in usages) for name in ("input", "output", "cached")},
        "first": times[0] if times else "",
        "last": times[-1] if times else "",
        "parent": trace.parent or "",
        "task": trace.task_id or "",
        "evaluation": trace.for_evaluation,
    }


def title(trace: Trace) -> str:
    """What the user began the trace with, on one line; text that an application wrote in tags is passed over.

    A trace that goes on from an earlier conversation begins with what was said after its last answer.
    """
    first: Step | None = trace.steps[0] if trace.steps else None
    messages = trace.context(first) if first else tuple(trace.messages.values())
    answered = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    asked = [message for message in messages[answered + 1 :] if message.role == "user"] if first else []
    said = [" ".join(m.text.split()) for m in asked or messages if m.role == "user"]
    words = (typed(m.text) for m in asked or messages if m.role == "user")
    own = [text for one in words if (text := _TAGGED.sub("", " ".join(one.split())).strip())]
    whole = next(iter([*own, *(text for text in said if text)]), "")
    return whole if len(whole) <= TITLE else whole[: TITLE - 1] + "…"


def tokens(candidate: Candidate) -> dict[str, int]:
    """Input, output and cached tokens as logged, 0 where they are not."""
    usage = candidate.usage
    details = [inner for key, inner in usage.items() if key.endswith("tokens_details") and isinstance(inner, dict)]
    cached = _number(usage, _CACHED) or max((_number(one, ("cached_tokens",)) for one in details), default=0)
    return {"input": _number(usage, _INPUT), "output": _number(usage, _OUTPUT), "cached": cached}


def _number(usage: dict[str, Any], names: Sequence[str]) -> int:
    values = (usage.get(name) for name in names)
    return next((int(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)), 0)
