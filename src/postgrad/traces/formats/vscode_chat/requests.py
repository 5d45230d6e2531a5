"""One request of a chat session, told to a conversation.

The rounds of `result.metadata.toolCallRounds` are the answers of the model, `toolCallResults` what came back. A request
without rounds (older versions, other participants) is one answer, put together from what the screen showed.
The screen's tool invocations know what the rounds do not: whether a call failed or was refused. Their ids are others,
so they are matched by order, where there are as many as calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.message import Block, Message, Reasoning, ResultStatus, Text, ToolCall, ToolResult
from postgrad.core.trace import Feedback
from postgrad.traces.conversation import Action, Conversation, provider_key
from postgrad.traces.formats.content import call, read_content
from postgrad.traces.formats.shapes.plain import mapping, mappings, moment, string, text, written

_DENIED, _SKIPPED = 0, 5


def tell(talk: Conversation, number: int, request: Mapping[str, Any]) -> str:
    """Tell one request, and say what it was used as."""
    before = talk.steps
    outcome = mapping(request.get("result"))
    metadata = mapping(outcome.get("metadata"))
    typed = _typed(request.get("message"))
    rendered = read_content(metadata.get("renderedUserMessage")).blocks
    talk.tell(Message("user", rendered or ((Text(typed),) if typed else ()), (number,)))
    talk.event("user_text", number, typed)
    rounds = mappings(metadata.get("toolCallRounds"))
    _answers(talk, number, request, rounds)
    used = {key: metadata[key] for key in ("promptTokens", "outputTokens") if isinstance(metadata.get(key), int)}
    if talk.steps > before:
        talk.log(usage=used)
        _judge(talk, request)
    if request.get("isCanceled") is True:
        talk.event("interrupt", number)
    failed = mapping(outcome.get("errorDetails"))
    if failed:
        talk.event("api_error", number, string(failed.get("message")))
    return "step" if talk.steps > before else "context"


def _answers(talk: Conversation, number: int, request: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]]) -> None:
    model, time = text(request.get("modelId")), moment(request.get("timestamp"))
    shown = mappings(request.get("response"))
    if not rounds:
        blocks = _from_screen(number, request.get("response"))
        if blocks:
            talk.act(Action(blocks, (number,), model, time=time))
            _screen_results(talk, number, shown)
        return
    metadata = mapping(mapping(request.get("result")).get("metadata"))
    results = mapping(metadata.get("toolCallResults"))
    calls = sum(len(mappings(part.get("toolCalls"))) for part in rounds)
    invocations = [part for part in shown if part.get("kind") == "toolInvocationSerialized"]
    told = iter(invocations if len(invocations) == calls else [])
    for part in rounds:
        talk.act(Action(_round(part), (number,), model, time=moment(part.get("timestamp")) or time))
        for made in list(talk.pending):
            seen = results.get(provider_key(made))
            flag, status = _verdict(next(told, None))
            if seen is not None or status == "rejected":
                said = "\n".join(_texts(mapping(seen).get("content", seen)))
                talk.settle(made, ToolResult("", said, flag, status), record=number)
                if status == "rejected":
                    talk.judge(Feedback("user_reject", source="user"))


def _round(part: Mapping[str, Any]) -> list[Block]:
    thinking = mapping(part.get("thinking"))
    said = "".join(_texts(thinking.get("text")))
    hidden = text(thinking.get("encrypted"))
    blocks: list[Block] = [Reasoning(said, encrypted=hidden)] if said or hidden else []
    blocks += read_content(part.get("response")).blocks
    for item in mappings(part.get("toolCalls")):
        blocks.append(call(string(item.get("name")), item.get("arguments"), id=item.get("id")))
    return blocks


def _from_screen(number: int, response: object) -> list[Block]:
    """Markdown, thoughts and tools in their order; texts that touch are one."""
    blocks: list[Block] = []
    for place, part in enumerate(response if isinstance(response, list) else []):
        value = mapping(part)
        kind = value.get("kind")
        if isinstance(part, str) or kind in (None, "markdownContent", "markdownVuln"):
            said = part if isinstance(part, str) else "".join(_texts(value.get("content", value)))
            joined = blocks.pop() if blocks and isinstance(blocks[-1], Text) else Text("")
            assert isinstance(joined, Text)
            blocks += [Text(joined.text + said)] if joined.text + said else []
        elif kind == "thinking":
            blocks.append(Reasoning("".join(_texts(value.get("value")))))
        elif kind == "toolInvocationSerialized":
            blocks.append(_invoked(f"request-{number}-{place}", value))
    return blocks


def _invoked(key: str, part: Mapping[str, Any]) -> ToolCall:
    """A tool as the screen knows it: its input is there only for some."""
    details, own = mapping(part.get("resultDetails")), mapping(part.get("toolSpecificData"))
    given = details.get("input", own.get("rawInput"))
    line = mapping(own.get("commandLine")).get("original", own.get("command"))
    if given is None and isinstance(line, str):
        given = {"command": line}
    return call(string(part.get("toolId")) or "tool", given, id=text(part.get("toolCallId")) or key)


def _screen_results(talk: Conversation, number: int, shown: Sequence[Mapping[str, Any]]) -> None:
    invocations = [part for part in shown if part.get("kind") == "toolInvocationSerialized"]
    for made, part in zip(list(talk.pending), invocations, strict=False):
        details = part.get("resultDetails")
        flag, status = _verdict(part)
        if details is not None or status == "rejected":
            said = "\n".join(_texts(mapping(details).get("output", details)))
            talk.settle(made, ToolResult("", said, flag, status), record=number)


def _verdict(part: Mapping[str, Any] | None) -> tuple[bool | None, ResultStatus]:
    """What the screen says of a call: its error flag, and whether the user refused it."""
    if part is None:
        return None, "ok"
    confirmed = part.get("isConfirmed")
    kind = confirmed.get("type") if isinstance(confirmed, dict) else confirmed
    if kind is False or (isinstance(confirmed, dict) and kind in (_DENIED, _SKIPPED)):
        return None, "rejected"
    flag = mapping(part.get("resultDetails")).get("isError")
    if isinstance(flag, bool):
        return flag, "error" if flag else "ok"
    return None, "ok"


def _judge(talk: Conversation, request: Mapping[str, Any]) -> None:
    vote = request.get("vote")
    if vote in (0, 1) and not isinstance(vote, bool):
        why = text(request.get("voteDownReason")) or ""
        talk.judge(Feedback("rating", float(vote), why, "user"))


def _typed(message: object) -> str:
    if isinstance(message, str):
        return message
    said = mapping(message).get("text")
    if isinstance(said, str):
        return said
    return "".join(string(part.get("text")) for part in mappings(mapping(message).get("parts")))


def _texts(value: object) -> list[str]:
    """The texts in a value of any depth: what a rendered prompt or a tool's output says."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [said for item in value for said in _texts(item)]
    inner = mapping(value)
    for key in ("text", "value", "content", "node", "children"):
        if key in inner and inner[key] is not None:
            rest = _texts(inner["children"]) if key == "text" and isinstance(inner.get("children"), list) else []
            return _texts(inner[key]) + rest
    return [written(value)] if value is not None and not inner else []
