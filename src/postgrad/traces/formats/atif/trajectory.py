"""One ATIF trajectory (v1.0 to 1.8) as traces: itself, and one for every subagent trajectory inside it.

A step is a step of the agent, unless it was copied from an earlier trajectory for context or ran without a model
(`llm_call_count` 0); its context is everything before it. Call ids are unique within a step only, so results are
matched there; one whose call is elsewhere, which the format forbids, is matched by its id or becomes an orphan. A
result that names no call is something that the model was shown. ATIF has no place for argument strings, error flags,
stop reasons and the like; postgrad's own export keeps them in `extra.postgrad`, and they are read back.

Fidelity is partial: contexts are implied by the order of the steps. "The same trajectory" means: the same session and
trajectory ids, and the same beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast, get_args

import msgspec

from postgrad.core.message import Block, Media, Message, Reasoning, ResultStatus, Role, Text, ToolCall, ToolResult
from postgrad.core.trace import Feedback, Fidelity, Source, StepKind, Trace
from postgrad.traces.conversation import Action, Setting
from postgrad.traces.formats.datasets.rows import Row
from postgrad.traces.formats.datasets.telling import Telling
from postgrad.traces.formats.shapes.plain import items, mapping, mappings, number, string, text, written
from postgrad.traces.formats.shapes.said import RawResult
from postgrad.traces.formats.shapes.tools import tools

RAW = "_raw"
"""The argument under which a call's string stands that is no JSON object."""
OWN = "postgrad"
"""The key in `extra` under which postgrad's export keeps what ATIF has no place for."""
_SOURCES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "extra")


def is_trajectory(value: object) -> bool:
    """Whether a JSON value is an ATIF trajectory."""
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return False
    named = string(value.get("schema_version")).upper().startswith("ATIF")
    shaped = any("source" in step and "step_id" in step for step in mappings(value["steps"]))
    return named or (shaped and isinstance(value.get("agent"), dict) and "name" in value["agent"])


def traces(row: Row, source: Source, *, index: int = 0, parent: str | None = None) -> Iterator[Trace]:
    """The traces of a trajectory, its own first."""
    value = row.value
    kind: StepKind = "subagent" if parent else "main"
    telling = Telling(row, _setting(value, kind))
    for turn, step in enumerate(value["steps"] if isinstance(value.get("steps"), list) else []):
        _tell(telling, row, turn, step, string(mapping(value.get("agent")).get("model_name")))
    if text(value.get("continued_trajectory_ref")):
        telling.talk.event("continued", row.record(-1), string(value["continued_trajectory_ref"]))
    trace = _finished(telling, value, source, index=index, parent=parent)
    if trace is None:
        row.books.note("a trajectory without a step of the agent", done="kept raw, no trace")
    else:
        index += 1
        yield trace
    numbers = row.beside.get("subagent_trajectories", ())
    for place, inner in enumerate(mappings(value.get("subagent_trajectories"))):
        record = numbers[place] if place < len(numbers) else row.record(0)
        own = trace.id if trace else None
        for found in traces(Row(inner, (record,), row.books), source, index=index, parent=own or "unknown"):
            index += 1
            yield found


def _setting(value: Mapping[str, Any], kind: StepKind) -> Setting:
    offered = tools(mapping(value.get("agent")).get("tool_definitions"))
    steps = mappings(value.get("steps"))
    system = () if steps and steps[0].get("source") == "system" else ("system prompt",)
    missing = (*system, *(() if offered else ("tool schemas",)), "exact requests")
    return Setting("partial", missing, offered, kind=kind)


def _finished(
    telling: Telling, value: Mapping[str, Any], source: Source, *, index: int, parent: str | None
) -> Trace | None:
    if not telling.talk.steps:
        return None
    ids = (text(value.get("session_id")), text(value.get("trajectory_id")))
    own = mapping(mapping(value.get("extra")).get(OWN))
    trace = telling.trace(source, *ids, *telling.talk.beginning, index=index, task=text(own.get("task_id")))
    if trace is None:
        return None
    return msgspec.structs.replace(trace, parent=parent or trace.parent, environment=mapping(own.get("environment")))


def _tell(telling: Telling, row: Row, turn: int, step: object, model: str) -> None:
    if not isinstance(step, dict) or string(step.get("source")) not in _SOURCES:
        row.odd(turn, "no step of a trajectory")
        return
    role, own = _SOURCES[step["source"]], mapping(mapping(step.get("extra")).get(OWN))
    blocks = [*_reasoning(step, own), *_content(step.get("message"))]
    results = mappings(mapping(step.get("observation")).get("results"))
    if role != "assistant":
        telling.say(turn, role, blocks)
        for result in results:
            telling.say(turn, "user", _content(result.get("content")))
        return
    calls = [_call(call) for call in mappings(step.get("tool_calls"))]
    if step.get("is_copied_context") is True or step.get("llm_call_count") == 0:
        _copied(telling, row, turn, [*blocks, *calls], results)
        return
    before = telling.talk.setting
    telling.talk.setting = _own_setting(before, step, own)
    telling.act(turn, _ordered([*blocks, *calls], own), _action(step, own, model))
    telling.talk.setting = before
    for result in results:
        _result(telling, row, turn, result)
    for said in mappings(own.get("feedback")):
        telling.talk.judge(
            Feedback(
                string(said.get("kind")),
                number(said.get("value")),
                string(said.get("text")),
                string(said.get("source")),
            )
        )


def _copied(telling: Telling, row: Row, turn: int, blocks: list[Block], results: list[dict[str, Any]]) -> None:
    """Part of the context and no decision of this trajectory's model."""
    row.use(turn, "context", "agent")
    telling.talk.tell(Message("assistant", tuple(blocks), (row.record(turn),)))
    for result in results:
        block = ToolResult(string(result.get("source_call_id")), _shown(result))
        telling.talk.tell(Message("tool", (block,), (row.record(turn),)))


def _action(step: Mapping[str, Any], own: Mapping[str, Any], model: str) -> Action:
    metrics = mapping(step.get("metrics"))
    usage = {key: metrics[key] for key in _USAGE if metrics.get(key) is not None}
    return Action(
        (),
        model=text(step.get("model_name")) or text(model),
        stop_reason=text(own.get("stop_reason")),
        usage=mapping(own.get("usage")) or usage,
        time=text(step.get("timestamp")),
    )


def _own_setting(setting: Setting, step: Mapping[str, Any], own: Mapping[str, Any]) -> Setting:
    """What a step says for itself: how hard the model was to think, and how well postgrad knew the context."""
    effort = step.get("reasoning_effort")
    params = {
        **setting.params,
        **({"reasoning_effort": effort} if effort is not None else {}),
        **mapping(own.get("params")),
    }
    setting = replace(setting, params=params)
    if own.get("fidelity") in get_args(Fidelity):
        missing = tuple(string(word) for word in items(own.get("missing")))
        setting = replace(setting, fidelity=cast(Fidelity, own["fidelity"]), missing=missing)
    return setting


def _reasoning(step: Mapping[str, Any], own: Mapping[str, Any]) -> list[Block]:
    said = text(step.get("reasoning_content"))
    signature, encrypted = text(own.get("signature")), text(own.get("encrypted"))
    return [Reasoning(said or "", signature, encrypted)] if said or signature or encrypted else []


def _ordered(blocks: list[Block], own: Mapping[str, Any]) -> list[Block]:
    """Blocks in the order in which the model wrote them, where the export says it: ATIF has three fields, no order."""
    order = own.get("order")
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(type(block).__name__ for block in blocks):
        return blocks
    waiting = list(blocks)
    ordered = []
    for name in order:
        block = next(block for block in waiting if type(block).__name__ == name)
        waiting.remove(block)
        ordered.append(block)
    return ordered


def _content(content: object) -> list[Block]:
    """A message: a text, or parts."""
    if not isinstance(content, list):
        said = written(content)
        return [Text(said)] if said else []
    blocks: list[Block] = []
    for part in mappings(content):
        place = mapping(part.get("source"))
        if isinstance(part.get("text"), str):
            blocks.append(Text(part["text"]))
        elif place:
            blocks.append(Media(string(place.get("media_type")) or "image/*", "", text(place.get("path"))))
    return blocks


def _call(value: Mapping[str, Any]) -> ToolCall:
    key, name = string(value.get("tool_call_id")), string(value.get("function_name"))
    own = mapping(mapping(value.get("extra")).get(OWN))
    arguments = value.get("arguments")
    kept = own.get("arguments_raw")
    provider_id = own.get("provider_id") if isinstance(own.get("provider_id"), str) else None
    raw = kept if isinstance(kept, str) else written(arguments)
    call = ToolCall.from_raw(id=key, name=name, raw=raw, provider_id=provider_id)
    if isinstance(arguments, dict) and RAW not in arguments and call.arguments is None:
        call = msgspec.structs.replace(call, arguments=arguments, parse_error=text(own.get("parse_error")))
    return call


def _result(telling: Telling, row: Row, turn: int, result: Mapping[str, Any]) -> None:
    key, extra = text(result.get("source_call_id")), mapping(result.get("extra"))
    own = mapping(extra.get(OWN)) or extra
    flag = own.get("is_error")
    for spawned in mappings(result.get("subagent_trajectory_ref")):
        agent = string(spawned.get("trajectory_id") or spawned.get("trajectory_path"))
        telling.talk.event("spawn", row.record(turn), agent=agent, call=key)
    media = tuple(block for block in _content(result.get("content")) if isinstance(block, Media))
    said = RawResult(key or "", "", _shown(result), flag if isinstance(flag, bool) else None, media)
    if key:
        status = own.get("status")
        known = status if status in get_args(ResultStatus) else None
        telling.answer(turn, said, status=cast(ResultStatus | None, known))
    elif said.text:
        telling.talk.tell(Message("user", (Text(said.text), *media), (row.record(turn),)))


def _shown(result: Mapping[str, Any]) -> str:
    """The text of a result; of one that only points to a subagent's trajectory, the pointer."""
    content = result.get("content")
    if isinstance(content, list):
        return "\n".join(block.text for block in _content(content) if isinstance(block, Text))
    refs = result.get("subagent_trajectory_ref")
    return written(content) if content is not None or not refs else written({"subagent_trajectory_ref": refs})
