"""`detail`: a trace whole, as the plain JSON data that the page and the terminal show.

Messages stand once, in `messages`; a step names those that are new in its context, so that reading the steps from top
to bottom is reading the history. Sites stand at the step that made the mistake and name the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from postgrad.core.canonical import canonical_json, content_id
from postgrad.core.message import Message, Text, ToolResult
from postgrad.core.trace import Step, Trace
from postgrad.serve.look.listing import listed, tokens
from postgrad.serve.look.outline import outline
from postgrad.signals.error_sites.sites import Site

LONGEST = 200_000
"""Characters of one text that the page shows; the terminal prints all of it."""


def detail(trace: Trace, sites: Sequence[Site], *, key: int = 0, longest: int = LONGEST) -> dict[str, Any]:
    """The row of the list and everything below it."""
    places = {place.step: place for place in outline(trace)}
    steps = {step.index: step for step in trace.steps}
    toolsets: dict[str, Any] = {}
    shown = []
    for step in trace.steps:
        place = places[step.index]
        before = steps[place.parent] if place.parent is not None else None
        told = _step(trace, step, before, sites)
        told |= {"parent": place.parent, "depth": place.depth, "branches": place.branches}
        if step.request.tools:
            tools = msgspec.to_builtins(step.request.tools)
            told["toolset"] = content_id(tools)
            toolsets[told["toolset"]] = tools
        shown.append(told)
    wanted = {one for told in shown for one in told["new"]}
    whole = {
        **listed(trace, sites, key=key),
        "messages": {one: _message(trace.messages[one]) for one in trace.messages if one in wanted},
        "steps": shown,
        "toolsets": toolsets,
        "events": [msgspec.to_builtins(event) for event in trace.events],
        "orphans": [msgspec.to_builtins(result) for result in trace.orphans],
    }
    cut: dict[str, Any] = _shortened(whole, longest)
    return cut


def _step(trace: Trace, step: Step, before: Step | None, sites: Sequence[Site]) -> dict[str, Any]:
    taken = next((c for c in step.candidates if c.chosen and c.teacher is None), step.candidates[0])
    return {
        "index": step.index,
        "kind": step.kind,
        "agent": step.agent or "",
        "time": step.time or "",
        "abandoned": step.abandoned,
        "fidelity": step.request.fidelity,
        "missing": list(step.request.missing),
        "params": step.request.params,
        "context": len(step.request.messages),
        "new": new_messages(trace, step, before),
        "model": taken.model or "",
        "stop": taken.stop_reason or "",
        "tokens": tokens(taken),
        "usage": taken.usage,
        "blocks": msgspec.to_builtins(taken.message.blocks),
        "others": [
            {
                "blocks": msgspec.to_builtins(other.message.blocks),
                "model": other.model or "",
                "teacher": other.teacher or "",
            }
            for other in step.candidates
            if other is not taken
        ],
        "results": {
            result.call_id: {**msgspec.to_builtins(result), "record": trace.result_records.get(result.call_id)}
            for result in step.results
        },
        "feedback": [msgspec.to_builtins(feedback) for feedback in step.feedback],
        "records": list(step.records),
        "sites": [msgspec.to_builtins(site) for site in sites if site.step == step.index],
    }


def new_messages(trace: Trace, step: Step, before: Step | None) -> list[str]:
    """Ids of the messages that the step before did not see; its own action and the results of its calls are no news."""
    if before is None:
        return list(step.request.messages)
    seen = {*before.request.messages, before.action.id}
    results = {result.call_id for result in before.results}
    return [
        one
        for one in step.request.messages
        if one not in seen and not _is_echo(trace.messages[one], before.action, results)
    ]


def _is_echo(message: Message, action: Message, results: set[str]) -> bool:
    """Whether a message says again what the step before shows: its action in the client's words, or its results."""
    if message.role == "assistant":
        calls = [call.id for call in message.tool_calls]
        same = message.text.strip() == action.text.strip()
        return same and calls == [call.id for call in action.tool_calls]
    blocks = [block for block in message.blocks if not (isinstance(block, Text) and not block.text.strip())]
    return bool(blocks) and all(isinstance(block, ToolResult) and block.call_id in results for block in blocks)


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "blocks": msgspec.to_builtins(message.blocks), "records": list(message.records)}


def _shortened(value: Any, longest: int) -> Any:
    """Texts above the limit are cut, with a word on how much is missing."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}\n… {len(value) - longest} more characters are not shown on the page"
    if isinstance(value, dict):
        return {key: _shortened(item, longest) for key, item in value.items()}
    return [_shortened(item, longest) for item in value] if isinstance(value, list) else value


def as_json(value: Any) -> bytes:
    """JSON as the page reads it."""
    return canonical_json(value).encode()
