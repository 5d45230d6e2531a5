"""Request/response logs beside chat completions: other APIs, recorders of HTTP, batch files, streams."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from postgrad.core.message import Reasoning
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.api_log.streams import anthropic, responses
from postgrad.traces.records import ReadResult, totals
from unit.traces.formats import service_files as files

RUN = {"steps": 2, "tool_calls": 1, "tool_results": 1, "calls_without_result": 0, "flagged_errors": 0}


def read(tmp_path: Path, text: str, name: str = "log.jsonl", format: str | None = None) -> ReadResult:
    return readers.read(files.write(tmp_path / name, text), format)


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def message(*content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop,
    }


def test_anthropic_results_keep_their_flag_and_thoughts_their_signature(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "Hm", "signature": "sig"}
    use = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"cmd": "ls"}}
    failed = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no such file"}
    asked = {"model": "m", "max_tokens": 9, "messages": [files.USER]}
    again = [
        files.USER,
        {"role": "assistant", "content": [thought, use]},
        {"role": "user", "content": [failed, {"type": "text", "text": "Retry"}]},
    ]
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4}
    result = read(
        tmp_path,
        files.jsonl(
            {"request": asked, "response": {**message(thought, use, stop="tool_use"), "usage": usage}},
            {
                "request": {**asked, "messages": again},
                "response": message({"type": "text", "text": "Done"}, stop="refusal"),
            },
        ),
    )
    first, second = only(result).steps
    assert [type(block).__name__ for block in first.action.blocks] == ["Reasoning", "ToolCall"]
    assert first.action.blocks[0] == Reasoning("Hm", signature="sig")
    assert [(r.text, r.is_error, r.status) for r in first.results] == [("no such file", True, "error")]
    assert [m.role for m in only(result).context(second)] == ["user", "assistant", "tool", "user"]
    assert (first.candidates[0].usage, second.candidates[0].stop_reason) == (usage, "refusal")
    assert [e.text for e in only(result).events] == ["Weather in Oslo?", "Retry"]


def test_an_anthropic_stream_is_the_message_that_was_sent() -> None:
    for whole in files.ANTHROPIC_RESPONSES:
        events = [
            json.loads(line[6:]) for line in files.anthropic_stream(whole).splitlines() if line.startswith("data: ")
        ]
        folded = anthropic(events)
        assert folded["stop_reason"] == whole["stop_reason"]
        assert folded["usage"] == {"output_tokens": 7}
        for got, sent in zip(folded["content"], whole["content"], strict=True):
            assert got == ({**sent, "input": files.ARGUMENTS} if sent["type"] == "tool_use" else sent)


def test_a_stream_that_stops_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    stream = files.anthropic_stream(files.ANTHROPIC_RESPONSES[1])
    cut = stream[: stream.index("message_delta") - 20]
    result = read(tmp_path, files.jsonl({"request": files.ANTHROPIC_REQUESTS[0], "response": cut}))
    assert only(result).steps[0].action.text == "It rains."
    assert any("cut" in note.what for note in result.diagnostics)


def test_a_responses_stream_that_stops_gives_the_items_that_were_done() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    events = [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.done", "item": item},
    ]
    assert responses(events)["output"] == [item]
    ended = responses(
        [*events, {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}]
    )
    assert ended == {"id": "r", "status": "completed", "output": [item]}  # some servers leave it out of the last event


def test_a_response_id_that_is_not_in_the_log_leaves_the_context_partial(tmp_path: Path) -> None:
    result = read(tmp_path, files.jsonl(files.RESPONSES[1]))
    (step,) = only(result).steps
    assert (step.request.fidelity, step.request.missing) == ("partial", ("earlier messages",))


def test_a_conversation_id_stands_for_what_was_said(tmp_path: Path) -> None:
    rows = [
        {
            "request": {"model": "m", "conversation": {"id": "conv_1"}, "input": text},
            "response": {
                "object": "response",
                "id": f"r{text}",
                "model": "m",
                "status": "completed",
                "output": [_says(text * 2)],
            },
        }
        for text in ("a", "b")
    ]
    trace = only(read(tmp_path, files.jsonl(*rows)))
    assert [m.text for m in trace.context(trace.steps[1])] == ["a", "aa", "b"]


def _says(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_reasoning_items_keep_their_encrypted_part(tmp_path: Path) -> None:
    thought = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "Hm"}],
        "encrypted_content": "e",
    }
    row = {
        "request": {"model": "m", "input": "hi"},
        "response": {
            "object": "response",
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [thought, _says("x")],
        },
    }
    (step,) = only(read(tmp_path, files.jsonl(row))).steps
    assert step.action.blocks[0] == Reasoning("Hm", encrypted="e")
    assert step.candidates[0].stop_reason == "max_output_tokens"


@pytest.mark.parametrize("coded", [False, True])
def test_har_bodies_in_base64_and_streams(tmp_path: Path, coded: bool) -> None:
    har = files.har(files.ANTHROPIC_REQUESTS, files.ANTHROPIC_RESPONSES, "https://x/v1/messages")
    for entry, answer in zip(har["log"]["entries"], files.ANTHROPIC_RESPONSES, strict=True):
        stream = files.anthropic_stream(answer)
        content = (
            {"text": base64.b64encode(stream.encode()).decode(), "encoding": "base64"} if coded else {"text": stream}
        )
        entry["response"]["content"] = {"mimeType": "text/event-stream", **content}
    other = {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": {"method": "GET", "url": "https://x/logo.png"},
        "response": {"status": 200},
    }
    har["log"]["entries"].insert(0, other)
    result = read(tmp_path, json.dumps(har, indent=1), "x.har")
    assert (result.source.format, totals(result.traces)) == ("http_log", RUN)
    assert result.uses == {"step": 2, "ignored": 1, "context": 1}
    assert only(result).steps[0].time == "2026-01-01T00:00:00Z"


def test_cassettes(tmp_path: Path) -> None:
    interactions = [
        {
            "request": {
                "method": "POST",
                "uri": "https://x/v1/chat/completions",
                "body": json.dumps(asked),
                "headers": {},
            },
            "response": {"status": {"code": 200}, "headers": {}, "body": {"string": json.dumps(answer).encode()}},
        }
        for asked, answer in zip(files.CHAT_REQUESTS, files.CHAT_RESPONSES, strict=True)
    ]
    text = yaml.safe_dump({"interactions": interactions, "version": 1})
    result = read(tmp_path, text, "cassette.yaml")
    assert (result.source.format, totals(result.traces)) == ("http_log", RUN)
    assert sum(result.uses.values()) == len(result.records) == 2


def test_errors_of_the_api_are_events(tmp_path: Path) -> None:
    failed = {
        "request": {"method": "POST", "path": "/v1/messages", "body": files.ANTHROPIC_REQUESTS[0]},
        "response": {
            "status": 529,
            "body": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        },
    }
    trace = only(read(tmp_path, files.jsonl(failed, *files.CLAUDE_TAP)))
    assert len(trace.steps) == 2
    assert [(e.text, e.before_step) for e in trace.events if e.kind == "api_error"] == [("HTTP 529: Overloaded", 0)]


def test_batch_responses_find_their_requests_in_the_file_beside(tmp_path: Path) -> None:
    files.write(tmp_path / "input.jsonl", files.jsonl(*files.BATCH_INPUT))
    error = {"id": "o9", "custom_id": "b9", "response": None, "error": {"message": "expired"}}
    result = read(tmp_path, files.jsonl(*reversed(files.BATCH_OUTPUT), error), "output.jsonl")
    assert (result.source.format, totals(result.traces)["steps"]) == ("openai_chat", 2)
    assert all(step.request.fidelity == "exact" for trace in result.traces for step in trace.steps)
    asked = readers.read(tmp_path / "input.jsonl")
    assert (asked.traces, asked.uses) == ((), {"context": 2})


def test_batch_responses_alone_have_no_context(tmp_path: Path) -> None:
    result = read(tmp_path, files.jsonl(*files.BATCH_OUTPUT), "output.jsonl")
    assert [(s.request.fidelity, s.request.missing) for t in result.traces for s in t.steps] == [
        ("none", ("messages", "tools"))
    ] * 2


def test_anthropic_batches(tmp_path: Path) -> None:
    asked = [{"custom_id": f"b{i}", "params": q} for i, q in enumerate(files.ANTHROPIC_REQUESTS)]
    done = [
        {"custom_id": f"b{i}", "result": {"type": "succeeded", "message": a}}
        for i, a in enumerate(files.ANTHROPIC_RESPONSES)
    ]
    result = read(tmp_path, files.jsonl(*asked, *done))
    assert (result.source.format, totals(result.traces)) == ("anthropic_messages", RUN)


def test_litellm_failures_and_payloads_without_content(tmp_path: Path) -> None:
    """Messages and response are {} unless their logging is switched on; they are counted and say nothing."""
    failed = {**files.LITELLM[0], "id": "x", "status": "failure", "error_str": "boom", "response": {}}
    empty = {**files.LITELLM[0], "id": "y", "messages": {}, "response": {}}
    result = read(tmp_path, files.jsonl(failed, *files.LITELLM, empty), format="litellm")
    trace = only(result)
    assert totals([trace]) == RUN
    assert [e.text for e in trace.events if e.kind == "api_error"] == ["boom"]
    assert result.uses == {"event": 1, "step": 2, "ignored": 1}


def _chunks(text: str, id: str) -> list[dict[str, Any]]:
    deltas = [{"role": "assistant"}, *({"content": letter} for letter in text)]
    chunks = [
        {
            "id": id,
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        for delta in deltas
    ]
    return [*chunks, {**chunks[0], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def test_chunks_and_raw_streams_are_answers_without_a_context(tmp_path: Path) -> None:
    chunks = [*_chunks("one", "a"), *_chunks("two", "b")]
    rows = read(tmp_path, files.jsonl(*chunks), "chunks.jsonl")
    raw = read(tmp_path, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n", "s.sse")
    for result in (rows, raw):
        assert [step.action.text for step in only(result).steps] == ["one", "two"]
        assert {step.request.fidelity for step in only(result).steps} == {"none"}
        assert sum(result.uses.values()) == len([r for r in result.records if r.status != "blank"])


def test_mock_servers_that_kept_no_request(tmp_path: Path) -> None:
    log = [
        {"scope": "https://x", "method": "GET", "path": "/flags", "status": 200, "response": {"flags": {}}},
        *(
            {
                **{"scope": "https://x", "method": "POST", "path": "/v1/chat/completions", "status": 200},
                "response": "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(text, text)),
            }
            for text in ("one", "two")
        ),
    ]
    result = read(tmp_path, json.dumps(log, indent=1), "x.json")
    assert (result.source.format, [s.action.text for s in only(result).steps]) == ("http_log", ["one", "two"])
    assert result.uses == {"ignored": 1, "step": 2}


def test_gemini_pairs(tmp_path: Path) -> None:
    row = {
        "request": {
            "url": "https://g/v1/models/gemini:generateContent",
            "body": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        },
        "response": {
            "status": 200,
            "body": {"candidates": [{"content": {"role": "model", "parts": [{"text": "ho"}]}, "finishReason": "STOP"}]},
        },
    }
    (step,) = only(read(tmp_path, files.jsonl(row))).steps
    assert (step.action.text, step.candidates[0].stop_reason) == ("ho", "STOP")


def test_token_counts_are_no_steps(tmp_path: Path) -> None:
    count = {
        "request": {"method": "POST", "path": "/v1/messages/count_tokens", "body": files.ANTHROPIC_REQUESTS[0]},
        "response": {"status": 200, "body": {"input_tokens": 5}},
    }
    result = read(tmp_path, files.jsonl(count, *files.CLAUDE_TAP))
    assert (totals(result.traces), result.uses) == (RUN, {"ignored": 1, "step": 2})


def test_credentials_in_parameters_are_not_taken_over(tmp_path: Path) -> None:
    """litellm#20240: the token stands in headers and in the guardrail's metadata; neither is a parameter."""
    secret = "Bearer sk-secret"
    params = {**files.LITELLM[0]["model_parameters"], "extra_headers": {"Authorization": secret}, "api_key": secret}
    guarded = {"guardrail_information": {"request": {"authorization": secret}}}
    row = {**files.LITELLM[0], "model_parameters": params, "metadata": guarded}
    traces = read(tmp_path, files.jsonl(row), format="litellm").traces
    assert b"sk-secret" not in msgspec.json.encode(list(traces))
    headers = {
        "request": {**files.ANTHROPIC_REQUESTS[0], "extra_headers": {"x-api-key": secret}},
        "response": files.ANTHROPIC_RESPONSES[0],
    }
    assert b"sk-secret" not in msgspec.json.encode(list(read(tmp_path, files.jsonl(headers)).traces))
