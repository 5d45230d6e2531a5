"""Weave calls: JSON lines, a list, or {"calls": [...]}.

A step is a call of a model's SDK, known by its operation's name (`openai.chat.completions.create`, ...) or, under
another name, by the usage in its summary together with messages in its inputs. Any other operation that has the name
of a tool that a model called is that tool's run. Values that are references ("weave:///...") stay references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.trace import Feedback
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import (
    first,
    mapping,
    mappings,
    moment,
    number,
    opened,
    seconds,
    settings,
    string,
    text,
    written,
)
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import turns
from postgrad.traces.formats.spans.export import Export, lists_among, opening
from postgrad.traces.formats.spans.span import LLMCall, Span, ToolRun
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_LLM = re.compile(
    r"(chat\.completions\.(create|parse)|[Mm]essages\.(create|stream)|responses\.(create|parse)|"
    r"[Cc]ompletions?\.create|litellm\.a?completion|generate_content|chat\.complete|ChatOpenAI|ChatAnthropic|chat\.stream)"
)
_LISTS = ("calls", "data")
_DATA = frozenset({"messages", "tools", "functions", "input", "prompt", "contents", "system", "instructions", "self"})
_TOKENS = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


@dataclass(frozen=True)
class Weave:
    """Reader of Weave calls."""

    format: str = "weave"

    def recognises(self, head: Head) -> bool:
        """A call with Weave's identifiers."""
        return any(_is_call(call) for value in opening(head, _LISTS) for call in _calls(value))

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened.
        """
        export = Export(path, lists_among(_LISTS), _LISTS)
        spans = [_span(item.number, call) for item in export.items() for call in _calls(item.value) if _is_call(call)]
        return export.result(self.format, spans, app="weave")


def _calls(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield from mappings(value.get("calls")) or mappings(value.get("data")) or [value]


def _is_call(value: Mapping[str, Any]) -> bool:
    named = isinstance(value.get("op_name"), str) and isinstance(value.get("trace_id"), str)
    return named and isinstance(value.get("id"), str) and bool({"inputs", "started_at"} & value.keys())


def _operation(value: Mapping[str, Any]) -> str:
    """The short name in "weave:///entity/project/op/NAME:digest"."""
    return string(value.get("op_name")).rpartition("/")[2].partition(":")[0]


def _span(record: int, value: Mapping[str, Any]) -> Span:
    name = _operation(value)
    summary = mapping(value.get("summary"))
    about = mapping(summary.get("weave"))
    start = value.get("started_at")
    exception = string(value.get("exception"))
    failed = bool(exception) or first(about, "status") == "error" or summary.get("status") == "error"
    span = Span(
        string(value["id"]),
        record,
        string(value["trace_id"]),
        string(value.get("parent_id")),
        name,
        "llm" if _is_llm(name, value, summary) else "other",
        seconds(start) or 0.0,
        seconds(value.get("ended_at")) or 0.0,
        moment(start),
        error=(exception or "error") if failed else "",
        feedback=tuple(_feedback(item) for item in mappings(first(about, "feedback") or summary.get("feedback"))),
    )
    if span.kind == "llm":
        span.call = _call(value, summary)
    else:
        output = value.get("output")
        inputs = {key: item for key, item in mapping(value.get("inputs")).items() if key != "self"}
        shown = written(output) if output is not None else exception or None
        span.tool = ToolRun(name, "", written(inputs), shown, True if failed else None)
    return span


def _is_llm(name: str, value: Mapping[str, Any], summary: Mapping[str, Any]) -> bool:
    if _LLM.search(name):
        return True
    kind = mapping(mapping(value.get("attributes")).get("weave")).get("kind")
    asked = mapping(value.get("inputs"))
    return kind == "llm" or (
        bool(summary.get("usage")) and "messages" in asked and "choices" in mapping(value.get("output"))
    )


def _call(value: Mapping[str, Any], summary: Mapping[str, Any]) -> LLMCall:
    inputs, taken = mapping(value.get("inputs")), opened(value.get("output"))
    given = {
        **mapping(inputs.get("kwargs")),
        **{key: item for key, item in inputs.items() if key not in ("kwargs", "self")},
    }
    model = text(mapping(taken).get("model")) or text(given.get("model"))
    by_model = mapping(summary.get("usage"))
    usage = mapping(mapping(taken).get("usage")) or mapping(next(iter(by_model.values()), None))
    return LLMCall(
        turns(given) if given else None,
        answers(taken),
        tools(given.get("tools")) or tools(given.get("functions")),
        settings(given, data=_DATA),
        model,
        {_TOKENS.get(key, key): count for key, count in usage.items() if number(count) is not None},
        text(mapping(taken).get("id")),
    )


def _feedback(item: Mapping[str, Any]) -> Feedback:
    """A reaction, a note, an annotation, or a scorer's output."""
    payload = mapping(item.get("payload"))
    said = first(payload, "emoji", "note", "value", "output")
    score = float(said) if isinstance(said, bool) else number(said)
    words = "" if score is not None else written(said)
    return Feedback(string(first(item, "feedback_type", "type")), score, words, string(item.get("creator")))
