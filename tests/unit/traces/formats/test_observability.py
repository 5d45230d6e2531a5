"""What each observability service says beside the run itself: judgements, errors, generations of attributes, logs."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Opaque
from postgrad.core.trace import Feedback, Trace
from postgrad.traces import readers
from postgrad.traces.formats.otel.tree import Attributes
from postgrad.traces.records import ReadResult, totals
from unit.traces.formats import service_files as files

ID = "1" * 16


def read(tmp_path: Path, value: Any, name: str = "x.json") -> ReadResult:
    return readers.read(files.write(tmp_path / name, json.dumps(value, indent=1)))


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def one_span(tmp_path: Path, attributes: dict[str, Any], events: list[dict[str, Any]] | None = None) -> Trace:
    """A trace of one span in the SDK's own form, where attributes and events are plain objects."""
    span = {**files.console([(ID, "", "chat m", 1, attributes)])[0], "events": events or []}
    return only(read(tmp_path, span))


GENERATIONS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "messages and parts": (
        {
            **{
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": files.genai_messages(files.SYSTEM, files.USER),
            },
            "gen_ai.output.messages": files.genai_messages(files.ASKED),
        },
        [],
    ),
    "structured values": (
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.loads(files.genai_messages(files.SYSTEM, files.USER)),
            "gen_ai.output.messages": json.loads(files.genai_messages(files.ASKED)),
        },
        [],
    ),
    "one event with the details": (
        {"gen_ai.operation.name": "chat"},
        [
            {
                "name": "gen_ai.client.inference.operation.details",
                "attributes": {
                    "gen_ai.input.messages": files.genai_messages(files.SYSTEM, files.USER),
                    "gen_ai.output.messages": files.genai_messages(files.ASKED),
                },
            }
        ],
    ),
    "indexed": (
        {
            **{"llm.request.type": "chat", "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief."},
            **{"gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "Weather in Oslo?"},
            **{"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls"},
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.name": "weather",
            "gen_ai.completion.0.tool_calls.0.arguments": files.ARGUMENTS,
        },
        [],
    ),
    "json in attributes": (
        {
            "gen_ai.request.model": "m",
            "gen_ai.prompt": json.dumps([files.SYSTEM, files.USER]),
            "gen_ai.completion": json.dumps([files.ASKED]),
        },
        [],
    ),
    "json in events": (
        {"gen_ai.request.model": "m"},
        [
            {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": json.dumps([files.SYSTEM, files.USER])}},
            {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": json.dumps([files.ASKED])}},
        ],
    ),
    "an event a message": (
        {"gen_ai.operation.name": "chat"},
        [
            {"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
            {"name": "gen_ai.user.message", "attributes": {"content": "Weather in Oslo?"}},
            {
                "name": "gen_ai.choice",
                "attributes": {"index": 0, "finish_reason": "tool_calls", "message": json.dumps(files.ASKED)},
            },
        ],
    ),
    "logfire's list of events": (
        {
            "gen_ai.operation.name": "chat",
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
                    {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather in Oslo?"},
                    {"event.name": "gen_ai.choice", "index": 0, "message": files.ASKED},
                ]
            ),
        },
        [],
    ),
    "vercel": (
        {
            **{
                "ai.operationId": "ai.generateText.doGenerate",
                "ai.model.id": "m",
                "ai.response.finishReason": "tool-calls",
            },
            "ai.prompt.messages": json.dumps(
                [files.SYSTEM, {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]}]
            ),
            "ai.response.toolCalls": json.dumps(
                [{"toolCallId": "c1", "toolName": "weather", "input": files.ARGUMENTS}]
            ),
        },
        [],
    ),
    "agent development kit": (
        {
            "gen_ai.system": "gcp.vertex.agent",
            "gen_ai.request.model": "m",
            "gcp.vertex.agent.llm_request": json.dumps(
                {
                    "config": {"system_instruction": "Be brief."},
                    "contents": [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}],
                }
            ),
            "gcp.vertex.agent.llm_response": json.dumps(
                {
                    "content": {
                        "role": "model",
                        "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}}],
                    }
                }
            ),
        },
        [],
    ),
    "openinference": (files.openinference_attributes([files.SYSTEM, files.USER], files.ASKED), []),
}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_of_attributes_says_the_same(tmp_path: Path, generation: str) -> None:
    trace = one_span(tmp_path, *GENERATIONS[generation])
    (step,) = trace.steps
    assert [(m.role, m.text) for m in trace.context(step)] == [("system", "Be brief."), ("user", "Weather in Oslo?")]
    (call,) = step.action.tool_calls
    assert (call.id, call.name, call.arguments) == ("c1", "weather", {"city": "Oslo"})
    assert step.request.fidelity == "exact-messages"


def test_log_records_belong_to_the_span_that_they_name(tmp_path: Path) -> None:
    document = files.otlp([(ID, "", "chat", 1, {"gen_ai.operation.name": "chat"})])
    bodies = [
        ("gen_ai.user.message", {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hi"}}]}}),
        (
            "gen_ai.choice",
            {"stringValue": json.dumps({"index": 0, "finish_reason": "stop", "message": {"content": "ho"}})},
        ),
    ]
    records = [
        {"traceId": files.TRACE, "spanId": ID, "eventName": name, "body": body, "attributes": []}
        for name, body in bodies
    ]
    document["resourceLogs"] = [{"scopeLogs": [{"logRecords": records}]}]
    result = read(tmp_path, document)
    (step,) = only(result).steps
    assert ([m.text for m in only(result).context(step)], step.action.text) == (["hi"], "ho")
    assert result.uses == {"step": 3, "context": 1}


def test_numbers_in_keys_are_ordered_as_numbers() -> None:
    own = Attributes({f"llm.input_messages.{i}.message.content": str(i) for i in (10, 9, 0, 2)})
    assert [item["message"]["content"] for item in own.under("llm.input_messages")] == ["0", "2", "9", "10"]


def test_phoenix_nests_attributes_and_keeps_annotations(tmp_path: Path) -> None:
    rows = copy.deepcopy(files.phoenix(files.OPENINFERENCE_SPANS))
    flat = rows[1]["attributes"]
    rows[1]["attributes"] = {"llm": {"input_messages": Attributes(flat).under("llm.input_messages")}}
    rows[1]["attributes"]["llm"]["output_messages"] = Attributes(flat).under("llm.output_messages")
    rows[1]["annotations"] = [
        {
            "name": "correct",
            "annotator_kind": "HUMAN",
            "result": {"label": "no", "score": 0.0, "explanation": "wrong city"},
        }
    ]
    trace = only(read(tmp_path, rows))
    assert trace.steps[0].action.tool_calls[0].arguments == {"city": "Oslo"}
    assert trace.steps[0].feedback == (Feedback("correct", 0.0, "no: wrong city", "HUMAN"),)


def test_calls_of_output_tools_are_answers_and_no_calls(tmp_path: Path) -> None:
    """pydantic-ai returns a structured answer through a tool that nothing runs: no call waits for a result."""
    given = {**GENERATIONS["messages and parts"][0]}
    given["model_request_parameters"] = json.dumps({"function_tools": [], "output_tools": [{"name": "weather"}]})
    (step,) = one_span(tmp_path, given).steps
    (block,) = step.action.blocks
    assert isinstance(block, Opaque)
    assert (step.action.tool_calls, block.type) == ((), "structured_output")


def _telemetry(*records: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    logs = [
        {
            "timeUnixNano": str(files.NS + i * 10**9),
            "body": {"stringValue": f"claude_code.{name}"},
            "attributes": [
                {"key": key, "value": {"stringValue": str(value)}} for key, value in {"session.id": "s", **own}.items()
            ],
        }
        for i, (name, own) in enumerate(records)
    ]
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": logs}]}]}


def test_claude_code_telemetry(tmp_path: Path) -> None:
    """Raw bodies make a context exact; without them a request is a step of which nothing can be learnt."""
    asked, answered = (json.dumps(body) for body in (files.ANTHROPIC_REQUESTS[0], files.ANTHROPIC_RESPONSES[0]))
    result = read(
        tmp_path,
        _telemetry(
            ("user_prompt", {"prompt": "Weather?"}),
            ("api_request_body", {"body": asked}),
            ("api_response_body", {"body": answered}),
            ("api_request", {"model": "m", "input_tokens": 10, "output_tokens": 7}),
            ("tool_decision", {"tool_name": "weather", "decision": "reject", "source": "user_reject"}),
            ("tool_result", {"tool_name": "weather", "success": "false", "error": "rejected", "tool_use_id": "c1"}),
            ("api_request_body", {"body": asked[:40]}),
            ("api_request", {"model": "m", "input_tokens": 20, "output_tokens": 1}),
            ("api_error", {"error": "overloaded"}),
        ),
    )
    trace = only(result)
    first, second = trace.steps
    assert (first.request.fidelity, second.request.fidelity) == ("exact", "none")
    assert [(r.text, r.is_error) for r in first.results] == [("rejected", True)]
    assert first.feedback == (Feedback("user_reject", 0.0, "weather", "user_reject"),)
    assert [(e.kind, e.before_step) for e in trace.events if e.text in ("Weather?", "overloaded")] == [
        ("user_text", 0),
        ("api_error", 2),
    ]
    assert first.candidates[0].usage == {"input_tokens": 10.0, "output_tokens": 7.0}


def test_langfuse_scores_errors_and_marks(tmp_path: Path) -> None:
    value = copy.deepcopy(files.LANGFUSE)
    value["observations"][2] |= {"level": "ERROR", "statusMessage": "no network", "output": None}
    value["observations"].append(files.observation("g9", "GENERATION", 4, input=None, output=None))
    value["trace"]["scores"] = [
        {
            "id": "s1",
            "traceId": "lf",
            "observationId": "g1",
            "name": "thumbs",
            "value": 0,
            "comment": "wrong",
            "source": "API",
        },
        {"id": "s2", "traceId": "lf", "observationId": None, "name": "quality", "value": "bad", "stringValue": "bad"},
    ]
    result = read(tmp_path, value)
    first, second = only(result).steps
    assert first.feedback == (Feedback("thumbs", 0.0, "wrong", "API"),)
    assert second.feedback == (Feedback("quality", None, "bad"),)
    assert [(r.text, r.is_error, r.status) for r in first.results] == [("Rain", True, "error")]
    assert first.candidates[0].usage == {"input_tokens": 10, "output_tokens": 7, "total_tokens": 17}


def test_langfuse_as_a_table_with_json_in_its_fields(tmp_path: Path) -> None:
    rows = [
        {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in item.items()}
        for item in files.LANGFUSE["observations"]
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, sorted({key for row in rows for key in row}))
    writer.writeheader()
    writer.writerows(rows)
    result = readers.read(files.write(tmp_path / "export.csv", text.getvalue()))
    assert (result.source.format, totals(result.traces)["steps"], totals(result.traces)["tool_results"]) == (
        "langfuse",
        2,
        1,
    )


def test_langfuse_batches_of_the_sdk(tmp_path: Path) -> None:
    """An observation is created, then updated: the later event fills in the earlier one."""
    created = files.observation("g1", "GENERATION", 1, input=[files.USER])
    created.pop("type")
    batch = [
        {"id": "e1", "type": "generation-create", "body": created},
        {
            "id": "e2",
            "type": "generation-update",
            "body": {"id": "g1", "traceId": "lf", "output": files.SAID, "endTime": "2026-01-01T00:00:02Z"},
        },
    ]
    (step,) = only(read(tmp_path, {"batch": batch})).steps
    assert (step.action.text, step.request.fidelity) == ("It rains.", "exact-messages")


def test_langsmith_feedback_corrections_errors_and_trees(tmp_path: Path) -> None:
    correction = {"key": "fix", "score": 0, "correction": {"output": "It snows."}, "comment": "no"}
    child = {
        **{"id": "r1", "run_type": "llm", "name": "x", "start_time": "2026-01-01T00:00:01", "feedback": [correction]},
        **{"inputs": {"messages": [files.USER]}, "outputs": files.completion(files.ASKED)},
    }
    tool = {
        **{
            "id": "r2",
            "run_type": "tool",
            "name": "weather",
            "start_time": "2026-01-01T00:00:02",
            "inputs": {"input": "{}"},
        },
        "error": "boom",
    }
    failed = {
        **child,
        "id": "r3",
        "outputs": None,
        "error": "rate limit",
        "feedback": [],
        "start_time": "2026-01-01T00:00:03",
    }
    tree = {
        "id": "r0",
        "trace_id": "r0",
        "run_type": "chain",
        "name": "run",
        "inputs": {},
        "child_runs": [child, tool, failed],
    }
    trace = only(read(tmp_path, tree))
    (step,) = trace.steps
    assert step.feedback == (Feedback("correction", 0.0, 'no\n{"output": "It snows."}'),)
    assert [(r.text, r.is_error) for r in step.results] == [("boom", True)]
    assert [e.text for e in trace.events if e.kind == "api_error"] == ["rate limit"]


def test_mlflow_assessments_and_base64_ids(tmp_path: Path) -> None:
    value = copy.deepcopy(files.MLFLOW)
    value["info"]["assessments"] = [
        {
            "assessment_name": "good",
            "feedback": {"value": True},
            "rationale": "right",
            "source": {"source_type": "HUMAN"},
        },
        {"assessment_name": "answer", "expectation": {"value": "Rain"}, "span_id": files.CALL1},
    ]
    first, second = only(read(tmp_path, value)).steps
    assert first.feedback == (Feedback("expectation", None, "Rain"),)
    assert second.feedback == (Feedback("good", 1.0, "right", "HUMAN"),)


def test_weave_feedback_and_exceptions(tmp_path: Path) -> None:
    value = copy.deepcopy(files.WEAVE)
    value[1]["summary"] = {
        "weave": {"feedback": [{"feedback_type": "note", "payload": {"note": "odd"}, "creator": "me"}]}
    }
    value[2] |= {"exception": "Traceback", "output": None}
    first, _ = only(read(tmp_path, value)).steps
    assert first.feedback == (Feedback("note", None, "odd", "me"),)
    assert [(r.text, r.is_error) for r in first.results] == [("Rain", True)]


def test_managed_agents_denials_and_interrupts(tmp_path: Path) -> None:
    events = copy.deepcopy(files.MANAGED[:4])
    events += [
        {
            "id": "sevt_5",
            "processed_at": "2026-01-01T00:00:05Z",
            "type": "user.tool_confirmation",
            "tool_use_id": "sevt_2",
            "result": "deny",
            "deny_message": "Use Rome",
        },
        {"id": "sevt_6", "processed_at": "2026-01-01T00:00:06Z", "type": "user.interrupt"},
    ]
    trace = only(read(tmp_path, {"data": events}))
    (step,) = trace.steps
    assert [(r.text, r.is_error, r.status) for r in step.results] == [("Use Rome", None, "rejected")]
    assert step.feedback == (Feedback("user_reject", 0.0, "Use Rome", "user"),)
    assert [event.kind for event in trace.events] == ["user_text", "approval", "interrupt"]
    assert step.request.missing == ("system prompt", "tools")
