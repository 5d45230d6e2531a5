"""Which API an exchange speaks, and the exchange as `Exchange`: chat completions, Responses, Anthropic, Gemini, Ollama.

The Responses API keeps earlier turns on the server: an answer's id (`previous_response_id`) or a conversation's
stands for them. `History` remembers what was said under every id in this log; where an id is not in it, the context
lacks its beginning: fidelity "partial".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from postgrad.core.trace import Candidate
from postgrad.traces.formats.api_log.logged import Logged
from postgrad.traces.formats.api_log.streams import folded
from postgrad.traces.formats.openai_chat.exchange import Exchange, own_words, read_exchange
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import first, mapping, mappings, moment, opened, settings, string, text
from postgrad.traces.formats.shapes.said import Said, settle
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import instructions, turns

Protocol = Literal["chat", "responses", "anthropic", "gemini", "ollama"]
_DATA = frozenset(
    {"messages", "tools", "functions", "input", "instructions", "system", "contents", "systemInstruction"}
)
_ANTHROPIC = ("tool_use", "tool_result", "thinking", "redacted_thinking")
_CHAT = frozenset(
    {
        *("n", "frequency_penalty", "presence_penalty", "response_format", "max_completion_tokens", "logprobs", "seed"),
        *("stream_options", "parallel_tool_calls", "stop", "functions", "logit_bias", "store", "reasoning_effort"),
    }
)
"""Parameters of chat completions that Anthropic's API does not know."""
_NO_CALL = ("embeddings", "count_tokens", "moderations", "models", "images", "audio", "rerank")


@dataclass
class History:
    """What was said under the ids that the Responses API gave to answers and conversations."""

    said: dict[str, list[Said]] = field(default_factory=dict)


def protocol_of(log: Logged) -> Protocol | None:
    """Which API an exchange speaks, None where it is no call of a chat model."""
    path = log.path.partition("?")[0].rstrip("/")
    if path.rpartition("/")[2] in _NO_CALL:
        return None
    request, response = log.request or {}, folded(log.response)
    answer = mapping(response)
    if "contents" in request or ("candidates" in answer and log.request is None):
        return "gemini"
    if isinstance(request.get("messages"), list):
        return _by_messages(request, answer, path)
    if ("input" in request and "model" in {*request, *answer}) or "previous_response_id" in request:
        failed = bool(log.error) and "data" not in answer
        return "responses" if "output" in answer or (failed and not answer.keys() - {"error"}) else None
    if answer.get("object") == "response" and isinstance(answer.get("output"), list):
        return "responses"
    if answer.get("type") == "message" and isinstance(answer.get("content"), list):
        return "anthropic"
    if path.endswith(("/chat/completions", "/messages")) and log.error:
        return "anthropic" if path.endswith("/messages") else "chat"
    return "chat" if isinstance(answer.get("choices"), list) and answer["choices"] else None


def _by_messages(request: Mapping[str, Any], answer: Mapping[str, Any], path: str) -> Protocol | None:
    if answer.get("object") == "list" or "data" in answer:
        return None
    first_message = next(iter(mappings(request["messages"])), {})
    if not isinstance(first_message.get("role"), str):
        return None
    if "message" in answer and "done" in answer:
        return "ollama"
    if "choices" in answer:
        return "chat"
    speaks = answer.get("type") == "message" or path.endswith("/messages") or "anthropic_version" in request
    return "anthropic" if speaks or _asks_anthropic(request, failed=answer.get("type") == "error") else "chat"


def _asks_anthropic(request: Mapping[str, Any], *, failed: bool) -> bool:
    """Whether a request is of Anthropic's form, where the answer does not tell: an error body is nobody's own.

    Its blocks and the schemas of its tools are. Else only an error of its shape says so, to a request that has the
    one parameter which that API demands, and nothing that it does not know.
    """
    listed = mappings(request["messages"])
    blocks = [part for item in listed for part in mappings(item.get("content"))]
    if any(part.get("type") in _ANTHROPIC for part in blocks):
        return True
    if any("input_schema" in tool for tool in mappings(request.get("tools"))):
        return True
    chat = any(item.get("role") not in ("user", "assistant") for item in listed) or not _CHAT.isdisjoint(request)
    return failed and "max_tokens" in request and not chat


def exchange(number: int, log: Logged, protocol: Protocol, history: History) -> Exchange | None:
    """The exchange in record `number`. Never fails: the file is foreign."""
    response = folded(log.response)
    if protocol == "chat" and log.request is not None:
        found = read_exchange(
            number, {**log.whole, "request": log.request, "response": response, "error": log.error or None}
        )
        if found is not None:
            return replace(found, time=log.time or found.time)
    request = log.request or {}
    before, missing = _before(request, history) if protocol == "responses" else ([], [])
    context = [*_instructions(request, mapping(response)), *before, *_context(request)]
    said = answers(_wrapped(response)) if not log.error or mapping(response).get("type") == "message" else []
    if protocol == "responses":
        _remember(request, mapping(response), [*before, *_context(request), *said[:1]], history)
    missing += ["messages", "tools"] if log.request is None else []
    return Exchange(
        number,
        settle(context, record=number),
        tools(request.get("tools")),
        settings(request, data=_DATA),
        [_candidate(context, item, mapping(response), number) for item in said],
        log.time or moment(first(mapping(response), "created_at", "created", "createTime")),
        error="" if said else log.error or _told(response) or "the response has no answer",
        cut=_cut(said, mapping(response), protocol),
        own=_own(log, missing),
        unrecorded=log.request is None,
    )


def _own(log: Logged, missing: list[str]) -> dict[str, Any]:
    """What postgrad wrote beside the call, a trace id of LiteLLM's, and how exactly the context is known."""
    own = own_words(log.whole)
    if missing:
        own = {**own, "fidelity": "none" if log.request is None else "partial", "missing": missing}
    return own


def _instructions(request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Said]:
    config = mapping(first(request, "config", "generationConfig"))
    stated = first(request, "system", "instructions", "systemInstruction", "system_instruction")
    stated = first(config, "systemInstruction", "system_instruction") if stated is None else stated
    return instructions(response.get("instructions") if stated is None and "input" in request else stated)


def _context(request: Mapping[str, Any]) -> list[Said]:
    return turns(first(request, "messages", "input", "contents"))


def _before(request: Mapping[str, Any], history: History) -> tuple[list[Said], list[str]]:
    """What the server remembers for this request, and whether that is unknown."""
    conversation = request.get("conversation")
    key = request.get("previous_response_id") or (
        conversation.get("id") if isinstance(conversation, dict) else conversation
    )
    if not isinstance(key, str) or not key:
        return [], []
    known = history.said.get(key)
    unknown = known is None and bool(request.get("previous_response_id"))
    return known or [], ["earlier messages"] if unknown else []


def _remember(request: Mapping[str, Any], response: Mapping[str, Any], said: list[Said], history: History) -> None:
    """Instructions are not carried over by the server, so they are no part of what it remembers."""
    conversation = first(request, "conversation") or response.get("conversation")
    for key in (response.get("id"), conversation.get("id") if isinstance(conversation, dict) else conversation):
        if isinstance(key, str) and key:
            history.said[key] = said


def _wrapped(response: object) -> object:
    """Ollama's answer is one message beside its counts."""
    if isinstance(response, dict) and isinstance(response.get("message"), dict) and "done" in response:
        return {**response["message"], "finish_reason": response.get("done_reason")}
    return response


def _candidate(context: list[Said], said: Said, response: Mapping[str, Any], number: int) -> Candidate:
    message = settle([*context, Said("assistant", said.parts)], record=number)[-1]
    usage = first(response, "usage", "usageMetadata")
    counts = {key: response[key] for key in ("prompt_eval_count", "eval_count") if key in response}
    incomplete = text(mapping(response.get("incomplete_details")).get("reason"))
    return Candidate(
        message,
        text(first(response, "model", "modelVersion")),
        incomplete or said.finish or text(first(response, "stop_reason", "done_reason")),
        mapping(usage) or counts,
    )


def _cut(said: list[Said], response: Mapping[str, Any], protocol: Protocol) -> bool:
    if not said:
        return False
    if protocol == "responses":
        return response.get("status") == "incomplete" and not response.get("incomplete_details")
    return not (said[0].finish or first(response, "stop_reason", "done_reason"))


def _told(response: object) -> str:
    error = mapping(opened(response)).get("error")
    return string(mapping(error).get("message")) or string(error)
