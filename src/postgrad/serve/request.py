"""The chat-completions request: read strictly, field by field.

A parameter that cannot be honoured is refused by name, never ignored. Values that ask for nothing (null, ``n=1``,
``top_p=1``, a penalty of 0) are accepted for parameters that are otherwise refused, because clients send them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from postgrad.core.actor import Sampling
from postgrad.core.message import Block, Message, Text, Tool, ToolCall, ToolResult
from postgrad.serve.engine import Demand
from postgrad.serve.refusal import Refusal

# Parameters that are not supported, with the values that ask for nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "frequency_penalty": (0,),
    "function_call": (),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True,),
    "prediction": (),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto",),
    "store": (False,),
    "top_logprobs": (0,),
    "top_p": (1,),
    "verbosity": (),
    "web_search_options": (),
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _text(content: Any) -> Any:
    """Content as one string; parts of text are joined."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise ValueError(f"content part of type {kind!r} is not supported; this model reads text only")
    return "".join(part["text"] for part in content)


Content = Annotated[str, BeforeValidator(_text)]


class _Function(_Strict):
    name: str
    arguments: str


class _Call(_Strict):
    id: str
    type: Literal["function"] = "function"
    function: _Function

    def block(self) -> ToolCall:
        return ToolCall.from_raw(id=self.id, name=self.function.name, raw=self.function.arguments, provider_id=self.id)


class _Spoken(_Strict):
    role: Literal["system", "developer", "user"]
    content: Content

    def message(self) -> Message:
        return Message.of(self.role, self.content)


class _Assistant(_Strict):
    role: Literal["assistant"]
    content: Content = ""
    tool_calls: tuple[_Call, ...] = Field(default=(), strict=False)

    def message(self) -> Message:
        text: tuple[Block, ...] = (Text(self.content),) if self.content else ()
        return Message("assistant", text + tuple(call.block() for call in self.tool_calls))


class _Result(_Strict):
    role: Literal["tool"]
    content: Content
    tool_call_id: str

    def message(self) -> Message:
        return Message("tool", (ToolResult(self.tool_call_id, self.content, provider_id=self.tool_call_id),))


_Message = Annotated[_Spoken | _Assistant | _Result, Field(discriminator="role")]


class _Schema(_Strict):
    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: Literal[False] = False


class _Tool(_Strict):
    type: Literal["function"]
    function: _Schema

    def tool(self) -> Tool:
        return Tool(self.function.name, self.function.description, self.function.parameters)


class _Name(_Strict):
    name: str


class _Named(_Strict):
    type: Literal["function"]
    function: _Name


class _StreamOptions(_Strict):
    include_usage: bool = False
    include_obfuscation: Literal[False] = False


def _stop(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _Body(_Strict):
    model: str
    messages: list[_Message] = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stop: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_stop)] = Field(default=[], max_length=4)
    seed: int | None = None
    tools: list[_Tool] = []
    tool_choice: Literal["auto", "none", "required"] | _Named = "auto"
    stream: bool = False
    stream_options: _StreamOptions | None = None
    metadata: dict[str, str] = {}  # kept in the capture
    user: str = ""  # kept in the capture


@dataclass(frozen=True)
class Defaults:
    """What applies when a request does not say."""

    temperature: float = 0.0
    max_new_tokens: int = 512


@dataclass(frozen=True)
class ChatRequest:
    """A request that was understood. `named`: `tool_choice` named one function."""

    messages: tuple[Message, ...]
    demand: Demand
    stream: bool
    include_usage: bool
    named: bool


def read_request(body: dict[str, Any], *, model: str, defaults: Defaults) -> ChatRequest:
    """Understand the JSON body of a request to the model called `model`.

    Raises:
        Refusal: naming the parameter at fault.
    """
    given = _supported(_without_nulls(body))
    try:
        read = _Body.model_validate(given)
    except ValidationError as error:
        raise _refusal(error) from None
    if read.model != model:
        raise Refusal(
            f"the model '{read.model}' does not exist; this server has '{model}'",
            param="model",
            code="model_not_found",
            status=404,
        )
    if read.stream_options and not read.stream:
        raise Refusal("stream_options is only allowed with stream=true", param="stream_options")
    return ChatRequest(
        messages=tuple(message.message() for message in read.messages),
        demand=_demand(read, defaults),
        stream=read.stream,
        include_usage=bool(read.stream_options and read.stream_options.include_usage),
        named=isinstance(read.tool_choice, _Named),
    )


def _demand(read: _Body, defaults: Defaults) -> Demand:
    limits = {limit for limit in (read.max_tokens, read.max_completion_tokens) if limit is not None}
    if len(limits) > 1:
        raise Refusal("max_tokens and max_completion_tokens differ; give one of them", param="max_tokens")
    tools = _offered(read)
    sampling = Sampling(
        temperature=defaults.temperature if read.temperature is None else read.temperature,
        max_new_tokens=limits.pop() if limits else defaults.max_new_tokens,
        seed=secrets.randbits(31) if read.seed is None else read.seed,
        constrained=(must_call := read.tool_choice not in ("auto", "none")),
    )
    return Demand(sampling, tools, tuple(read.stop), must_call)


def _offered(read: _Body) -> tuple[Tool, ...]:
    """The tools that this answer may call."""
    tools = tuple(tool.tool() for tool in read.tools)
    if len({tool.name for tool in tools}) < len(tools):
        raise Refusal("two tools have the same name", param="tools")
    if read.tool_choice == "none":
        return ()
    if isinstance(read.tool_choice, _Named):
        name = read.tool_choice.function.name
        tools = tuple(tool for tool in tools if tool.name == name)
        if not tools:
            raise Refusal(f"tool_choice names '{name}', which is not in tools", param="tool_choice")
    if read.tool_choice == "required" and not tools:
        raise Refusal("tool_choice 'required' needs tools", param="tool_choice")
    return tools


def _without_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """Drop null fields, and the empty fields that clients copy from a response's message into the next request.

    Schemas and arguments are data: a null in them stays.
    """
    given: dict[str, Any] = _bare(body)
    if isinstance(given.get("messages"), list):
        given["messages"] = [_bare(message) for message in given["messages"]]
    if isinstance(given.get("tools"), list):
        tools = [_bare(tool) for tool in given["tools"]]
        given["tools"] = [
            t | {"function": _bare(t["function"])} if isinstance(t, dict) and "function" in t else t for t in tools
        ]
    return given


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {k: v for k, v in value.items() if v is not None and not (k == "annotations" and v == [])}


def _supported(given: dict[str, Any]) -> dict[str, Any]:
    """Refuse parameters that ask for what is not supported; leave out those that ask for nothing."""
    for key, value in given.items():
        if key in NEUTRAL and value not in NEUTRAL[key]:
            raise Refusal(f"'{key}' is not supported by this server", param=key, code="unsupported_parameter")
    return {key: value for key, value in given.items() if key not in NEUTRAL}


def _refusal(error: ValidationError) -> Refusal:
    """The first problem that validation found, in one line."""
    problem = error.errors(include_url=False, include_context=False)[0]
    tags = {"system", "developer", "user", "assistant", "tool", "_Named"}
    path = [str(part) for part in problem["loc"] if part not in tags and not str(part).startswith("literal[")]
    param = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return Refusal(f"unknown parameter: '{param}'", param=param, code="unknown_parameter")
    if problem["type"] == "missing":
        return Refusal(f"missing required parameter: '{param}'", param=param, code="missing_required_parameter")
    return Refusal(f"{param}: {problem['msg']}", param=param, code="invalid_value")
