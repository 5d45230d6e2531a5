"""Steps out of spans: each call counted once, contexts rebuilt where tracers leave them out, results to their calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postgrad.core.trace import Trace
from postgrad.traces.formats.otel.reader import OTelGenAI
from postgrad.traces.records import ReadResult, totals
from unit.traces.formats import service_files as files

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOKENS = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 7}
ASK = {"gen_ai.input.messages": files.genai_messages(files.USER)}
SAY = {"gen_ai.output.messages": files.genai_messages(files.SAID)}
CALL = {"gen_ai.output.messages": files.genai_messages(files.ASKED)}
AGENT = {"gen_ai.operation.name": "invoke_agent"}


def read(tmp_path: Path, *spans: tuple[str, str, str, int, dict[str, Any]], error: str = "") -> ReadResult:
    path = files.write(tmp_path / "o.json", json.dumps(files.otlp(list(spans), error=error)))
    return OTelGenAI().read(path)


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def test_nested_reports_of_one_call_are_one_step(tmp_path: Path) -> None:
    """W15: framework > SDK > HTTP client. The innermost has the content, the outermost the parameters: 1 step."""
    result = read(
        tmp_path,
        ("a" * 16, "", "call_llm", 1, {**CHAT, **TOKENS, "gen_ai.request.top_p": 0.9}),
        ("b" * 16, "a" * 16, "generate_content", 1, {**CHAT, **TOKENS}),
        ("c" * 16, "b" * 16, "openai.chat", 1, {**CHAT, **TOKENS, **ASK, **SAY}),
    )
    (step,) = only(result).steps
    assert (step.action.text, step.request.params) == ("It rains.", {"top_p": 0.9})
    assert step.records == (2, 1, 0)
    assert result.uses == {"step": 1, "duplicate": 2, "context": 1}


def test_a_loop_around_several_calls_is_no_step(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        ("a" * 16, "", "loop", 1, {**CHAT, "gen_ai.usage.input_tokens": 30, **ASK, **SAY}),
        ("b" * 16, "a" * 16, "chat", 2, {**CHAT, **TOKENS, **ASK, **CALL}),
        ("c" * 16, "a" * 16, "chat", 3, {**CHAT, **TOKENS, **ASK, **SAY}),
    )
    assert len(only(result).steps) == 2


def test_two_libraries_beside_each_other_report_one_call(tmp_path: Path) -> None:
    """langfuse#11221: siblings with the tokens and the answer of one call, at one time, under two names."""
    twice = read(
        tmp_path,
        ("a" * 16, "", "agno", 1, {**CHAT, **TOKENS, **ASK, **SAY}),
        ("b" * 16, "", "openai", 1, {**CHAT, **TOKENS, **ASK, **SAY}),
    )
    assert len(only(twice).steps) == 1
    by_id = {**CHAT, "gen_ai.response.id": "r1"}
    same = read(tmp_path, ("a" * 16, "", "x", 1, {**by_id, **ASK, **SAY}), ("b" * 16, "", "x", 5, by_id))
    assert len(only(same).steps) == 1


def test_equal_ids_or_equal_tokens_alone_do_not_make_calls_equal(tmp_path: Path) -> None:
    """Some servers give every answer the same id; two calls can cost the same."""
    constant = {**CHAT, **TOKENS, "gen_ai.response.id": "chatcmpl-0"}
    ids = read(tmp_path, ("a" * 16, "", "x", 1, {**constant, **CALL}), ("b" * 16, "", "x", 2, {**constant, **SAY}))
    assert len(only(ids).steps) == 2
    later = read(
        tmp_path, ("a" * 16, "", "x", 1, {**CHAT, **TOKENS, **SAY}), ("b" * 16, "", "x", 5, {**CHAT, **TOKENS, **SAY})
    )
    assert len(only(later).steps) == 2


def test_a_span_that_was_sent_twice_counts_once(tmp_path: Path) -> None:
    span = ("a" * 16, "", "chat", 1, {**CHAT, **TOKENS, **ASK, **SAY})
    result = read(tmp_path, span, span)
    assert (len(only(result).steps), result.uses["duplicate"]) == (1, 1)


def test_an_agent_called_by_an_agent_is_a_trace_of_its_own(tmp_path: Path) -> None:
    """W22: the outer agent acts itself; an agent that only wraps one (no calls of its own) makes no second trace."""
    outer, inner, run = "a" * 16, "b" * 16, "c" * 16
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"}
    result = read(
        tmp_path,
        (outer, "", "invoke_agent", 0, {**AGENT, "gen_ai.agent.name": "boss"}),
        ("1" * 16, outer, "chat", 1, {**CHAT, **ASK, **CALL}),
        (run, outer, "tool", 2, {**tool, "gen_ai.tool.call.result": "Rain"}),
        (inner, run, "invoke_agent", 3, {**AGENT, "gen_ai.agent.name": "helper"}),
        ("2" * 16, inner, "chat", 4, {**CHAT, **ASK, **SAY}),
        ("3" * 16, outer, "chat", 5, {**CHAT, **ASK, **SAY}),
    )
    main, helper = result.traces
    assert (len(main.steps), len(helper.steps)) == (2, 1)
    assert (main.parent, helper.parent, helper.steps[0].kind) == (None, main.id, "subagent")
    assert [item.text for item in main.steps[0].results] == ["Rain"]
    wrapped = read(
        tmp_path,
        (outer, "", "x", 0, AGENT),
        (inner, outer, "y", 1, AGENT),
        ("2" * 16, inner, "chat", 2, {**CHAT, **SAY}),
    )
    assert only(wrapped).parent is None


def test_contexts_that_were_not_written_are_rebuilt(tmp_path: Path) -> None:
    """Only the first call has its messages: the second's are those, the answer, and the result of the tool's span."""
    run = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.result": "Rain"}
    trace = only(
        read(
            tmp_path,
            ("1" * 16, "", "chat", 1, {**CHAT, **ASK, **CALL}),
            (
                "2" * 16,
                "",
                "tool",
                2,
                {**run, "gen_ai.tool.call.arguments": files.ARGUMENTS, "gen_ai.tool.call.id": "c1"},
            ),
            ("3" * 16, "", "chat", 3, {**CHAT, **SAY}),
        )
    )
    first, second = trace.steps
    assert [step.request.fidelity for step in trace.steps] == ["exact-messages", "reconstructed"]
    assert [message.role for message in trace.context(second)] == ["user", "assistant", "tool"]
    assert trace.context(second)[1].id == first.action.id
    assert trace.context(second)[2].tool_results[0].text == "Rain"


def test_a_context_of_results_alone_goes_on_from_the_call(tmp_path: Path) -> None:
    only_new = {"gen_ai.input.messages": files.genai_messages(files.RESULT)}
    trace = only(
        read(
            tmp_path,
            ("1" * 16, "", "chat", 1, {**CHAT, **ASK, **CALL}),
            ("3" * 16, "", "chat", 3, {**CHAT, **only_new, **SAY}),
        )
    )
    assert [message.role for message in trace.context(trace.steps[1])] == ["user", "assistant", "tool"]
    assert trace.steps[1].request.fidelity == "reconstructed"
    assert [item.text for item in trace.steps[0].results] == ["Rain"]


def test_spans_without_content_are_steps_that_cannot_be_learnt(tmp_path: Path) -> None:
    trace = only(read(tmp_path, ("1" * 16, "", "chat", 1, {**CHAT, **TOKENS})))
    (step,) = trace.steps
    assert (step.request.fidelity, step.request.missing) == ("none", ("messages", "answer"))
    assert not step.can_be_learnt
    assert step.candidates[0].usage == {"input_tokens": 10, "output_tokens": 7}


def test_a_failed_call_is_an_event_and_a_failed_tool_a_flagged_result(tmp_path: Path) -> None:
    failed = read(
        tmp_path,
        ("1" * 16, "", "chat", 1, {**CHAT, **ASK}),
        ("2" * 16, "", "chat", 2, {**CHAT, **ASK, **CALL}),
        error="1" * 16,
    )
    trace = only(failed)
    assert [(e.kind, e.text, e.before_step) for e in trace.events if e.kind == "api_error"] == [
        ("api_error", "it broke", 0)
    ]
    run = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "c1"}
    tool = only(
        read(tmp_path, ("1" * 16, "", "chat", 1, {**CHAT, **ASK, **CALL}), ("2" * 16, "", "t", 2, run), error="2" * 16)
    )
    assert [(r.text, r.is_error, r.status) for r in tool.steps[0].results] == [("it broke", True, "error")]
    assert totals([tool])["flagged_errors"] == 1


def test_parallel_calls_without_ids_are_answered_in_their_order(tmp_path: Path) -> None:
    """W14: Gemini gives calls no ids. Two calls of one tool, two results: the first result is the first call's."""
    calls = [{"functionCall": {"name": "weather", "args": {"city": city}}} for city in ("Oslo", "Rome")]
    results = [{"functionResponse": {"name": "weather", "response": {"sky": sky}}} for sky in ("grey", "blue")]
    user = {"role": "user", "parts": [{"text": "Both?"}]}
    history = [user, {"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    trace = only(
        read(
            tmp_path,
            (
                "1" * 16,
                "",
                "chat",
                1,
                {
                    **CHAT,
                    "gen_ai.input.messages": json.dumps([user]),
                    "gen_ai.output.messages": json.dumps(history[1:2]),
                },
            ),
            ("2" * 16, "", "chat", 2, {**CHAT, "gen_ai.input.messages": json.dumps(history), **SAY}),
        )
    )
    first = trace.steps[0]
    told = {call.id: call.arguments for call in first.action.tool_calls}
    assert [(told[item.call_id], json.loads(item.text)) for item in first.results] == [
        ({"city": "Oslo"}, {"sky": "grey"}),
        ({"city": "Rome"}, {"sky": "blue"}),
    ]


def test_repeated_call_ids_are_matched_by_position(tmp_path: Path) -> None:
    """W14: every call has the id "c1"; each of two steps gets its own result."""
    once = [files.USER, files.ASKED, files.RESULT]
    twice = [*once, files.ASKED, {**files.RESULT, "content": "Sun"}]
    trace = only(
        read(
            tmp_path,
            ("1" * 16, "", "chat", 1, {**CHAT, **ASK, **CALL}),
            ("2" * 16, "", "chat", 2, {**CHAT, "gen_ai.input.messages": files.genai_messages(*once), **CALL}),
            ("3" * 16, "", "chat", 3, {**CHAT, "gen_ai.input.messages": files.genai_messages(*twice), **SAY}),
        )
    )
    assert [[item.text for item in step.results] for step in trace.steps] == [["Rain"], ["Sun"], []]
    ids = [call.id for step in trace.steps for call in step.action.tool_calls]
    assert len(set(ids)) == 2


def test_a_loop_of_parents_ends(tmp_path: Path) -> None:
    result = read(tmp_path, ("1" * 16, "2" * 16, "chat", 1, {**CHAT, **SAY}), ("2" * 16, "1" * 16, "other", 1, {}))
    assert len(only(result).steps) == 1
