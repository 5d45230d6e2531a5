"""LangSmith runs: ingestion batches ({"post": [...], "patch": [...]}), lists, JSON lines, trees with `child_runs`.

A run is sent when it starts and again when it ends; both are folded by id, what the later one says wins. A step is a
run of the type "llm". Feedback stands in the run (`feedback`, `feedback_stats`) or in rows of its own; a
`correction` in it is kept as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.trace import Feedback
from postgrad.traces.formats.openai_chat.stream import fold
from postgrad.traces.formats.shapes.answers import answers
from postgrad.traces.formats.shapes.plain import (
    first,
    mapping,
    mappings,
    moment,
    number,
    seconds,
    settings,
    string,
    text,
    written,
)
from postgrad.traces.formats.shapes.said import RawResult
from postgrad.traces.formats.shapes.tools import tools
from postgrad.traces.formats.shapes.turns import instructions, message, turns
from postgrad.traces.formats.spans.export import Export, opening
from postgrad.traces.formats.spans.span import LLMCall, Span, SpanKind, ToolRun
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

_TYPES: dict[str, SpanKind] = {
    "llm": "llm",
    "tool": "tool",
    **dict.fromkeys(("chain", "retriever", "prompt", "parser", "embedding"), "other"),
}
_LISTS = ("post", "patch", "runs", "data", "feedback")
_DATA = frozenset({"messages", "tools", "functions", "prompts", "input", "system", "contents"})
_TOKENS = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


@dataclass(frozen=True)
class LangSmith:
    """Reader of LangSmith runs."""

    format: str = "langsmith"

    def recognises(self, head: Head) -> bool:
        """A run with LangSmith's types and identifiers."""
        return any(_is_run(run) for value in opening(head, _LISTS) for run in _runs(value))

    def read(self, path: Path) -> ReadResult:
        """Read an export.

        Raises:
            DataError: it cannot be opened.
        """
        export = Export(path, _places, _LISTS)
        found = [(item.number, run) for item in export.items() for run in _runs(item.value)]
        folded = _folded(found).values()
        spans = [_span(records, run) for records, run in folded if string(run.get("run_type")) in _TYPES]
        by_id = {span.id: span for span in spans}
        uses: dict[int, str] = {}
        for record, value in found:
            target = by_id.get(string(value.get("run_id"))) if "key" in value else None
            if target is not None:
                target.feedback += (_feedback(value),)
                uses[record] = "feedback"
        return export.result(self.format, spans, app="langsmith", uses=uses)


def _places(document: object) -> list[str]:
    if isinstance(document, list):
        return [""]
    return [key for key in _LISTS if isinstance(mapping(document).get(key), list)]


def _runs(value: object) -> Iterator[dict[str, Any]]:
    """The runs and feedback in a row, a batch or a tree."""
    if not isinstance(value, dict):
        return
    listed = [item for key in _LISTS[:4] for item in mappings(value.get(key))]
    if listed and "run_type" not in value:
        for item in listed:
            yield from _runs(item)
        return
    yield value
    for child in mappings(value.get("child_runs")):
        yield from _runs({"parent_run_id": value.get("id"), "trace_id": value.get("trace_id"), **child})


def _is_run(value: Mapping[str, Any]) -> bool:
    named = string(value.get("run_type")) in _TYPES and isinstance(value.get("id"), str)
    return (
        named
        and bool({"inputs", "outputs"} & value.keys())
        and bool(
            {"trace_id", "dotted_order", "parent_run_id", "session_name", "session_id", "execution_order"}
            & value.keys()
        )
    )


def _folded(found: list[tuple[int, dict[str, Any]]]) -> dict[str, tuple[list[int], dict[str, Any]]]:
    """Runs by id: what a later record says replaces what an earlier one said, nothing replaces something."""
    runs: dict[str, tuple[list[int], dict[str, Any]]] = {}
    for record, value in found:
        key = string(value.get("id")) or string(value.get("dotted_order")).rpartition("Z")[2]
        if not key or "key" in value:
            continue
        records, run = runs.get(key, ([], {}))
        said = {key: item for key, item in value.items() if item not in (None, "", {}, [])}
        extra = {**mapping(run.get("extra")), **mapping(said.get("extra"))}
        runs[key] = ([*records, record], {**run, **said, "id": key, "extra": extra})
    return runs


def _span(records: list[int], run: Mapping[str, Any]) -> Span:
    start = run.get("start_time")
    kind = _TYPES[string(run.get("run_type"))]
    own = string(run.get("id"))
    metadata = mapping(mapping(run.get("extra")).get("metadata"))
    span = Span(
        own,
        records[0],
        string(run.get("trace_id")) or string(run.get("dotted_order")).split(".")[0].rpartition("Z")[2] or own,
        string(run.get("parent_run_id")) or _parent(string(run.get("dotted_order"))),
        string(run.get("name")),
        kind,
        seconds(start) or 0.0,
        seconds(run.get("end_time")) or 0.0,
        moment(start),
        error=string(run.get("error")),
        agent=text(first(metadata, "lc_agent_name", "langgraph_node")),
        feedback=tuple(_feedback(item) for item in mappings(run.get("feedback"))) + _statistics(run),
    )
    span.records = records[1:]
    if kind == "llm":
        span.call = _call(run)
    else:
        span.tool = _tool(run, span) if kind == "tool" else None
    return span


def _parent(dotted: str) -> str:
    """The id before the last in `<time>Z<id>.<time>Z<id>`."""
    chain = dotted.split(".")
    return chain[-2].rpartition("Z")[2] if len(chain) > 1 else ""


def _call(run: Mapping[str, Any]) -> LLMCall:
    given, taken = mapping(run.get("inputs")), mapping(run.get("outputs"))
    extra = mapping(run.get("extra"))
    params = mapping(first(extra, "invocation_params", "invocationParams"))
    metadata = mapping(extra.get("metadata"))
    answer = answers(taken) or _streamed(run)
    offered = (
        tools(given.get("tools"))
        or tools(params.get("tools"))
        or tools(first(given, "functions") or params.get("functions"))
    )
    context = turns(given) if given else None
    if (said := taken.get("instructions")) and given.get("instructions") is None and context is not None:
        context = instructions(said) + context
    return LLMCall(
        context,
        answer,
        offered,
        settings({**params, **given}, data=_DATA),
        text(first(taken, "model"))
        or text(first(given, "model"))
        or text(metadata.get("ls_model_name"))
        or text(first(params, "model", "model_name")),
        _usage(run, taken, metadata),
        text(taken.get("id")),
    )


def _streamed(run: Mapping[str, Any]) -> list[Any]:
    """The chunks that were logged as events, where the run ended without an output."""
    chunks = [mapping(mapping(event.get("kwargs")).get("token")) for event in mappings(run.get("events"))]
    return answers(fold(chunks)) if any(chunk.get("choices") for chunk in chunks) else []


def _usage(run: Mapping[str, Any], taken: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    found = mapping(first(taken, "usage_metadata", "usage")) or mapping(metadata.get("usage_metadata"))
    generations = taken.get("generations")
    inner = generations[0] if isinstance(generations, list) and generations else None
    for generation in mappings(inner if isinstance(inner, list) else generations):
        kwargs = mapping(mapping(generation.get("message")).get("kwargs"))
        found = found or mapping(kwargs.get("usage_metadata"))
    found = found or mapping(mapping(taken.get("llm_output")).get("token_usage"))
    found = found or {key: run[key] for key in (*_TOKENS, "total_tokens") if number(run.get(key))}
    return {_TOKENS.get(key, key): value for key, value in found.items() if value is not None}


def _tool(run: Mapping[str, Any], span: Span) -> ToolRun:
    """The input is the arguments, often as a text; the output a tool message, or the tool's own value."""
    given, taken = mapping(run.get("inputs")), run.get("outputs")
    arguments = given["input"] if given.keys() == {"input"} else given
    output = taken["output"] if isinstance(taken, dict) and taken.keys() == {"output"} else taken
    said = message(output) if isinstance(output, dict) else None
    results = [part for item in said or () for part in item.parts if isinstance(part, RawResult)]
    call_id = string(mapping(mapping(run.get("extra")).get("metadata")).get("tool_call_id"))
    if results:
        shown: str | None = results[0].text
        call_id = results[0].id or call_id
    else:
        shown = written(output) if output not in (None, {}) else span.error or None
    flag = True if span.error else results[0].is_error if results else None
    return ToolRun(span.name, call_id, written(arguments), shown, flag)


def _feedback(value: Mapping[str, Any]) -> Feedback:
    words = [string(value.get("comment")), written(value.get("correction"))]
    said = value.get("value")
    words.insert(0, said if isinstance(said, str) else "")
    score = number(value.get("score"))
    source = mapping(value.get("feedback_source")).get("type")
    kind = "correction" if value.get("correction") else string(value.get("key"))
    return Feedback(kind, number(said) if score is None else score, "\n".join(w for w in words if w), string(source))


def _statistics(run: Mapping[str, Any]) -> tuple[Feedback, ...]:
    """Means over several judgements, where the export has no more than these."""
    if mappings(run.get("feedback")):
        return ()
    return tuple(
        Feedback(key, number(stats.get("avg")), source="mean")
        for key, stats in mapping(run.get("feedback_stats")).items()
        if isinstance(stats, dict) and number(stats.get("avg")) is not None
    )
