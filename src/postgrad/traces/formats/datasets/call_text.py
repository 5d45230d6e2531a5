"""Tool calls, tool results and thoughts as models write them in text, taken out of it as blocks.

    Hermes, Qwen2.5/3   <tool_call>{"name", "arguments"}</tool_call>, results in <tool_response>, tools in <tools>
    Qwen3-Coder         <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
    GLM                 <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>
    Llama 3             <|python_tag|>{"name", "parameters"}, <function=NAME>{...}</function>, or the whole text is the
                        object, or a list of Python calls, where the tool is on offer
    Mistral             [TOOL_CALLS][{"name", "arguments", "id"}], [TOOL_CALLS]NAME[ARGS]{...}, [TOOL_RESULTS]
    functionary         >>>NAME and the arguments on the next lines
    DeepSeek            <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜>
    thoughts            <think>, <thinking>, <scratch_pad>
    results in words    a user's "OBSERVATION: ..." or "EXECUTION RESULT of [NAME]: ...", where a call waits for one

A call whose closing tag is missing is a call. What cannot be read is a call with `parse_error` and all of its text.
Markers in code (a fence, back-ticks) are text that talks about calls. Not covered: pythonic calls inside other text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from postgrad.core.canonical import too_deep
from postgrad.core.message import Block, Reasoning, Text, Tool, ToolCall
from postgrad.traces.formats.datasets.call_forms import (
    end_of_value,
    json_calls,
    object_call,
    objects,
    python_calls,
    with_raw,
)
from postgrad.traces.formats.shapes.tools import tools

_TEXT_END = r"(?:<\|eom_id\|>|<\|eot_id\|>|<\|im_end\|>|</s>|\Z)"
_MARKS = re.compile(
    r"(?P<thought><(?P<tag>think|thinking|scratch_pad)>(?P<thinking>.*?)(?:</(?P=tag)>|\Z))"
    r"|(?P<tagged><tool_call>(?P<call>.*?)(?:</tool_call>|(?=<tool_call>)|\Z))"
    r"|(?P<function><function=(?P<name>[\w.:/-]+)>(?P<body>.*?)(?:</function>|\Z))"
    rf"|(?P<python><\|python_tag\|>(?P<code>.*?){_TEXT_END})"
    rf"|(?P<mistral>\[TOOL_CALLS\](?P<calls>.*?){_TEXT_END})"
    r"|(?P<deepseek><｜tool▁call▁begin｜>(?P<deep>.*?)(?:<｜tool▁call▁end｜>|\Z))",
    re.DOTALL,
)
_NOISE = re.compile(r"<｜tool▁calls▁(?:begin|end)｜>|<\|(?:eom_id|eot_id|im_end)\|>")
_FUNCTION = re.compile(r"<function=([\w.:/-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_GLM = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)(?:</arg_value>|\Z)", re.DOTALL)
_ARGS = re.compile(r"\s*([\w.:/-]+)(?:\[CALL_ID\]([\w-]+))?\[ARGS\]")
_FUNCTIONARY = re.compile(r"^>>>([\w.:/-]+)\n(.*?)(?=^>>>[\w.:/-]+\n|\Z)", re.DOTALL | re.MULTILINE)
_RESULT = re.compile(
    r"<tool_response>(.*?)(?:</tool_response>|\Z)|\[TOOL_RESULTS\](.*?)(?:\[/TOOL_RESULTS\]|\Z)", re.DOTALL
)
_OBSERVED = re.compile(
    r"\s*(?:(?:observation|(?:tool |command |execution |function )?(?:result|output))(?: of \[(?P<name>[\w.:/-]+)\])?:"
    r"|\[(?:tool|command|execution) (?:result|output)\]:?)[ \t]*(?:\n|(?=\S))",
    re.IGNORECASE,
)
_TOOLS = re.compile(r"<tools>(.*?)</tools>|\[AVAILABLE_TOOLS\](.*?)\[/AVAILABLE_TOOLS\]", re.DOTALL)


def read_text(text: str, offered: Iterable[Tool] = ()) -> tuple[Block, ...]:
    """The blocks of an assistant's text; a text without calls and thoughts is one text block, unchanged."""
    reading = _Reading(text, {tool.name: tool for tool in offered})
    blocks = reading.whole() or reading.marked()
    return tuple(blocks)


def result_texts(text: str) -> tuple[list[str], str]:
    """The tool results in a text, and what is left of it."""
    found = [match[1] if match[1] is not None else match[2] for match in _RESULT.finditer(text)]
    return [body.removeprefix("\n").removesuffix("\n") for body in found], _RESULT.sub(
        "", text
    ).strip() if found else text


def observed(text: str) -> tuple[str, str] | None:
    """What an agent tells its model in the user's words about the last call: the tool's name, where said, and the rest.

    None for a text that is no such thing. Whether a call waits for it, the caller has to know.
    """
    found = _OBSERVED.match(text)
    return (found["name"] or "", text[found.end() :]) if found else None


def tools_in(text: str) -> tuple[Tool, ...]:
    """The tools that a system prompt lists between its tags: a JSON list, or an object a line."""
    found: list[Tool] = []
    for match in _TOOLS.finditer(text):
        body = (match[1] or match[2] or "").strip()
        listed = tools(body)
        found += listed or (tool for line in body.splitlines() for tool in tools(line.strip()))
    return tuple({tool.name: tool for tool in found}.values())


@dataclass
class _Reading:
    """An assistant's text on its way to blocks."""

    text: str
    offered: Mapping[str, Tool] = field(default_factory=dict)

    def whole(self) -> list[Block]:
        """Forms that are all of the text: functionary's, and Llama's bare object or list where the tool is offered."""
        stripped = self.text.strip()
        if stripped.startswith(">>>") and (found := self._functionary(stripped)):
            return found
        if stripped[:1] not in ("{", "[") or not self.offered:
            return []
        if stripped.startswith("{") or stripped.startswith("[{"):
            calls = json_calls(stripped)
        else:
            calls = list(python_calls(stripped))
        known = calls and all(call.parse_error is None and call.name in self.offered for call in calls)
        return list(calls) if known else []

    def marked(self) -> list[Block]:
        """The text between marks, and what the marks mean, in order."""
        blocks: list[Block] = []
        at = 0
        before, closed, _ = self.text.partition("</think>")
        if closed and "<think>" not in before:  # the template wrote the opening tag into the prompt
            blocks, at = [Reasoning(before.strip("\n"))], len(before + closed)
        for match in _MARKS.finditer(self.text, at):
            if match.start() < at or _quoted(self.text, match.start()):
                continue
            _add(blocks, self.text[at : match.start()])
            blocks += self._meaning(match)
            at = self._end(match)
        if not blocks:
            return [Text(self.text)] if self.text else []
        _add(blocks, self.text[at:])
        return blocks

    def _end(self, match: re.Match[str]) -> int:
        """Where a mark ends: an object without a closing tag ends with its bracket."""
        if match["tagged"] and not match["tagged"].endswith("</tool_call>"):
            return match.start("call") + (end_of_value(match["call"]) or len(match["call"]))
        return match.end()

    def _meaning(self, match: re.Match[str]) -> list[Block]:
        if match["thought"]:
            thought = match["thinking"].strip("\n")
            return [Reasoning(thought)] if thought else []
        if match["function"]:
            return [self._function(match["name"], match["body"])]
        readers: tuple[tuple[str, str, Callable[[str], list[ToolCall]]], ...] = (
            ("tagged", "call", self._tagged if match.group().endswith("</tool_call>") else self._unclosed),
            ("python", "code", _python_tag),
            ("mistral", "calls", _mistral),
            ("deepseek", "deep", _deepseek),
        )
        return next(list[Block](read(match[body])) for kind, body, read in readers if match[kind])

    def _tagged(self, body: str) -> list[ToolCall]:
        functions = [self._function(match[1], match[2]) for match in _FUNCTION.finditer(body)]
        if functions:
            return functions
        if "<arg_key>" in body:
            name = body.partition("<arg_key>")[0].strip()
            return [self._typed(name, {match[1].strip(): match[2] for match in _GLM.finditer(body)})]
        # Some models write several objects, a line each, between one pair of tags.
        lines = [line for line in body.strip().splitlines() if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for line in lines):
            return [call for line in lines for call in json_calls(line)]
        return json_calls(body)

    def _unclosed(self, body: str) -> list[ToolCall]:
        return self._tagged(body[: end_of_value(body) or len(body)])

    def _function(self, name: str, body: str) -> ToolCall:
        parameters = {match[1].strip(): match[2] for match in _PARAMETER.finditer(body)}
        if parameters or not body.strip():
            return self._typed(name, parameters)
        return with_raw(name, body.strip())

    def _typed(self, name: str, parameters: Mapping[str, str]) -> ToolCall:
        """Parameters written as texts, read as what the tool's schema says that they are."""
        tool = self.offered.get(name)
        schema = (tool.parameters.get("properties") if tool else None) or {}
        arguments = {key: _value(value, schema.get(key)) for key, value in parameters.items()}
        return ToolCall.from_raw(id="", name=name, raw=json.dumps(arguments, ensure_ascii=False))

    def _functionary(self, text: str) -> list[Block]:
        blocks: list[Block] = []
        for match in _FUNCTIONARY.finditer(text):
            if match[1] == "all":
                _add(blocks, match[2])
            else:
                blocks.append(with_raw(match[1], match[2].strip()))
        return blocks


def _quoted(text: str, at: int) -> bool:
    """Whether a place lies in a code fence or right behind a back-tick."""
    return text[at - 1 : at] == "`" or sum(line.startswith("```") for line in text[:at].splitlines()) % 2 == 1


def _add(blocks: list[Block], text: str) -> None:
    said = _NOISE.sub("", text).strip()
    if said:
        blocks.append(Text(said))


def _value(text: str, schema: object) -> Any:
    """One line end at each side belongs to the tags. Without a schema a value is the text that it was written as."""
    said = text.removeprefix("\n").removesuffix("\n")
    kind = schema.get("type") if isinstance(schema, dict) else "string"
    if kind in (None, "string"):
        return said
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return said
    return said if too_deep(value) else value


def _python_tag(code: str) -> list[ToolCall]:
    """Llama's tag is followed by calls with semicolons between them, by a built-in tool's call, or by code to run."""
    code = code.strip()
    if code.startswith("{"):
        return [object_call(part.rstrip("; \n")) for part in objects(code)]
    calls = list(python_calls(f"[{code}]")) if re.match(r"[\w.]+\.call\(", code) else []
    if calls and all(call.parse_error is None for call in calls):
        return calls
    return [ToolCall.from_raw(id="", name="code_interpreter", raw=json.dumps({"code": code}, ensure_ascii=False))]


def _mistral(body: str) -> list[ToolCall]:
    body = body.strip()
    if not _ARGS.match(body):
        return json_calls(body)
    calls = []
    while head := _ARGS.match(body):
        rest = body[head.end() :]
        end = end_of_value(rest)
        raw = rest[:end] if end else rest.partition("[TOOL_CALLS]")[0]
        call = ToolCall.from_raw(id=head[2] or "", name=head[1], raw=raw.strip())
        calls.append(call)
        body = rest[len(raw) :].strip().removeprefix("[TOOL_CALLS]")
    return calls


def _deepseek(body: str) -> list[ToolCall]:
    name, found, rest = body.partition("<｜tool▁sep｜>")
    if found and name.strip() == "function":  # the older form names the kind first and fences the arguments
        name, _, rest = rest.partition("\n")
    raw = re.sub(r"\A\s*```(?:json)?\n|\n```\s*\Z", "", rest)
    return [with_raw(name.strip(), raw.strip())]
