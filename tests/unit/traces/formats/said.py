"""What a step was shown, in words that a test can compare."""

from __future__ import annotations

from postgrad.core.trace import Trace


def said(trace: Trace, step: int) -> list[str]:
    """The context of a step: texts, `call:id` and `result:id`."""
    words = []
    for message in trace.context(trace.steps[step]):
        words += [message.text] if message.text else []
        words += [f"call:{c.id}" for c in message.tool_calls] + [f"result:{r.call_id}" for r in message.tool_results]
    return words
