"""Chat-completions logs: the forms of a row, streams, and which calls make one conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postgrad.core.message import Message, Reasoning, Text
from postgrad.core.trace import Trace
from postgrad.traces.formats.openai_chat.reader import OpenAIChat
from postgrad.traces.formats.openai_chat.stream import fold
from postgrad.traces.records import ReadResult
from postgrad.traces.sources.head import Head

USER = {"role": "user", "content": "What is the weather in Oslo?"}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def read(tmp_path: Path, *rows: Any) -> ReadResult:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return OpenAIChat().read(path)


def only(result: ReadResult) -> Trace:
    (trace,) = result.traces
    return trace


def completion(*messages: dict[str, Any], finish: str | None = "stop") -> dict[str, Any]:
    choices = [{"index": i, "message": message, "finish_reason": finish} for i, message in enumerate(messages)]
    return {"id": "r", "model": "m", "created": 1767225600, "choices": choices, "usage": {"completion_tokens": 3}}


def says(content: str | None, *calls: tuple[str, str, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": raw}} for key, name, raw in calls
        ]
    return message


def tool(id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def row(messages: list[dict[str, Any]], response: Any, **request: Any) -> dict[str, Any]:
    return {"request": {"model": "m", "messages": messages, **request}, "response": response}


CALL = says(None, ("c1", "weather", '{"city": "Oslo"}'))

ASKED: dict[str, Any] = {"model": "m", "messages": [USER], "tools": TOOLS, "temperature": 0.5}
FORMS: list[dict[str, Any]] = [
    {"request": ASKED, "response": completion(CALL)},
    {"kwargs": ASKED, "response": completion(CALL)},
    {**ASKED, "response": completion(CALL), "latency": 2},
    {"request": {"body": ASKED}, "response": {"body": completion(CALL)}},
]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_row_say_the_same(tmp_path: Path, form: dict[str, Any]) -> None:
    assert OpenAIChat().recognises(Head.of([form]))
    (step,) = only(read(tmp_path, form)).steps
    (call,) = step.action.tool_calls
    assert (call.id, call.name, call.arguments_raw, call.arguments) == (
        "c1",
        "weather",
        '{"city": "Oslo"}',
        {"city": "Oslo"},
    )
    assert [tool.name for tool in step.request.tools] == ["weather"]
    assert step.request.params == {"model": "m", "temperature": 0.5}
    assert step.request.fidelity == "exact"
    assert (step.candidates[0].model, step.candidates[0].usage) == ("m", {"completion_tokens": 3})
    assert step.time == "2026-01-01T00:00:00+00:00"


def delta(index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "choices": [{"index": index, "delta": fields, "finish_reason": None}]}


def part(index: int, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
USAGE = {"choices": [], "usage": {"completion_tokens": 3}}
CHUNKS = [
    delta(role="assistant", content=None, reasoning_content="Hm"),
    delta(reasoning_content="m."),
    delta(content="Let "),
    delta(content="me look."),
    delta(tool_calls=[part(0, "", "c1", "weather")]),
    delta(tool_calls=[part(0, '{"city": ')]),
    delta(tool_calls=[part(0, '"Oslo"}'), part(1, "{}", "c2", "clock")]),
    END,
    USAGE,
]


@pytest.mark.parametrize(
    "response", [CHUNKS, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"]
)
def test_streams_are_folded(tmp_path: Path, response: Any) -> None:
    result = read(tmp_path, row([USER], response))
    (step,) = only(result).steps
    assert step.action.blocks[0] == Reasoning("Hmm.")
    assert step.action.text == "Let me look."
    assert [(c.id, c.name, c.arguments) for c in step.action.tool_calls] == [
        ("c1", "weather", {"city": "Oslo"}),
        ("c2", "clock", {}),
    ]
    assert (step.candidates[0].stop_reason, step.candidates[0].usage) == ("tool_calls", {"completion_tokens": 3})
    assert result.diagnostics == ()


def test_a_new_id_under_index_0_is_a_new_call_and_a_repeated_id_is_not() -> None:
    chunks = [
        delta(tool_calls=[part(0, '{"a"', "c1", "f")]),
        delta(tool_calls=[part(0, ": 1}", "c1")]),
        delta(tool_calls=[part(0, "{}", "c2", "g")]),
    ]
    calls = fold(chunks)["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("c1", '{"a": 1}'), ("c2", "{}")]


def test_a_cut_stream_is_used_and_told(tmp_path: Path) -> None:
    result = read(tmp_path, row([USER], CHUNKS[:4]))
    assert only(result).steps[0].action.text == "Let me look."
    assert [(told.line, "cut" in told.what) for told in result.diagnostics] == [(1, True)]


def test_calls_that_extend_an_earlier_one_are_one_trace(tmp_path: Path) -> None:
    """The client resends the answer without reasoning, with "" for null, its arguments written anew."""
    again = says("", ("c1", "weather", '{"city":"Oslo"}'))
    second = [USER, again, tool("c1", [{"type": "text", "text": "rain"}])]
    third = [*second, says("It rains."), {"role": "user", "content": "And Rome?"}]
    other = [{"role": "user", "content": "Hello"}]
    result = read(
        tmp_path,
        row([USER], completion({**CALL, "reasoning_content": "hm"})),
        row(other, completion(says("Hi"))),
        row(second, completion(says("It rains."))),
        row(third, completion(says(None, ("c2", "weather", "{}")))),
    )
    assert [[step.records for step in trace.steps] for trace in result.traces] == [[(1,), (3,), (4,)], [(2,)]]
    trace = result.traces[0]
    assert [(r.call_id, r.text) for r in trace.steps[0].results] == [("c1", "rain")]
    assert trace.result_records == {"c1": 3}
    assert (trace.tool_calls, trace.tool_results) == (2, 1)
    roles = [message.role for message in trace.context(trace.steps[2])]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def test_an_edited_question_branches_off_within_the_trace(tmp_path: Path) -> None:
    ask = [USER, says("Fine."), {"role": "user", "content": "And Rome?"}]
    edited = [USER, says("Fine."), {"role": "user", "content": "And Paris?"}]
    calls = (([USER], "Fine."), (ask, "Hot."), (edited, "Wet."))
    result = read(tmp_path, *(row(messages, completion(says(answer))) for messages, answer in calls))
    assert [step.action.text for step in only(result).steps] == ["Fine.", "Hot.", "Wet."]


def test_the_same_request_again_gives_candidates_and_the_newest_is_taken(tmp_path: Path) -> None:
    result = read(tmp_path, row([USER], completion(says("bad"))), row([USER], completion(says("good"))))
    (step,) = only(result).steps
    assert [(c.message.text, c.chosen) for c in step.candidates] == [("bad", False), ("good", True)]
    assert result.uses == {"step": 1, "candidate": 1}


@pytest.mark.parametrize("taken", ["one", "two", "three"])
def test_the_candidate_that_a_later_call_goes_on_from_was_taken(tmp_path: Path, taken: str) -> None:
    """The first call has two choices, a regeneration gives a third."""
    later = [USER, says(taken), {"role": "user", "content": "thanks"}]
    result = read(
        tmp_path,
        row([USER], completion(says("one"), says("two"))),
        row([USER], completion(says("three"))),
        row(later, completion(says("welcome"))),
    )
    trace = only(result)
    assert trace.steps[0].action.text == taken
    assert [c.message.text for c in trace.steps[0].candidates] == ["one", "two", "three"]


def test_the_same_line_twice_is_one_call(tmp_path: Path) -> None:
    line = row([USER], completion(says("a")))
    result = read(tmp_path, line, line)
    assert result.uses == {"step": 1, "duplicate": 1}
    assert len(only(result).steps[0].candidates) == 1


def test_equal_ids_in_every_call_pair_by_position(tmp_path: Path) -> None:
    """Twelve calls, all with the id "0": the k-th result answers the k-th call."""
    messages: list[dict[str, Any]] = [USER]
    rows = []
    for k in range(12):
        answer = says(None, ("0", "weather", f'{{"k": {k}}}'))
        rows.append(row(list(messages), completion(answer)))
        messages += [answer, tool("0", f"out {k}")]
    trace = only(read(tmp_path, *rows, row(messages, completion(says("done")))))
    pairs = [(step.action.tool_calls[0].arguments, step.results[0].text) for step in trace.steps[:12]]
    assert pairs == [({"k": k}, f"out {k}") for k in range(12)]
    assert len({step.action.tool_calls[0].id for step in trace.steps[:12]}) == 12


@pytest.mark.parametrize(
    ("raw", "arguments", "broken"),
    [
        ('{"a": 1}', {"a": 1}, False),
        ({"a": 1}, {"a": 1}, False),
        ("", {}, False),
        ("{'a': 1}", None, True),
        ('{"a": 1}{"a": 2}', None, True),
        ("[1]", None, True),
    ],
)
def test_arguments_of_every_shape(tmp_path: Path, raw: Any, arguments: Any, broken: bool) -> None:
    (step,) = only(read(tmp_path, row([USER], completion(says(None, ("c", "f", raw)))))).steps
    (call,) = step.action.tool_calls
    assert call.arguments == arguments
    assert (call.parse_error is not None) is broken
    assert call.arguments_raw == (raw if isinstance(raw, str) else json.dumps(raw))


def test_the_old_function_call_form(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    later: list[dict[str, Any]] = [USER, answer, {"role": "function", "name": "f", "content": "out"}]
    functions = [{"name": "f", "description": "d", "parameters": {}}]
    trace = only(
        read(tmp_path, row([USER], completion(answer), functions=functions), row(later, completion(says("done"))))
    )
    assert [result.text for result in trace.steps[0].results] == ["out"]
    assert trace.steps[0].request.tools[0].name == "f"


def test_failed_calls_are_events(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        row([USER], {"error": {"message": "rate limit"}}),
        row([USER], completion(says("ok"))),
        {**row([USER, says("ok"), USER], None), "error": "timeout"},
    )
    trace = only(result)
    assert len(trace.steps) == 1
    assert [(event.kind, event.record, event.before_step) for event in trace.events] == [
        ("api_error", 1, 0),
        ("user_text", 2, 0),
        ("api_error", 3, 1),
    ]
    assert result.uses == {"event": 2, "step": 1}


def test_images_by_hash_and_odd_parts_kept(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cGl4ZWxz"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "hologram"},
    ]
    trace = only(read(tmp_path, row([{"role": "user", "content": parts}], completion(says("ok")))))
    (message,) = trace.context(trace.steps[0])
    names = [type(block).__name__ for block in message.blocks]
    assert names == ["Text", "Media", "Media", "Opaque"]


def test_rows_of_another_kind_are_accounted_for(tmp_path: Path) -> None:
    result = read(tmp_path, {"event": "start"}, row([USER], completion(says("ok"))), {"request": "x", "response": 1})
    assert result.uses == {"unknown": 2, "step": 1}
    assert [told.line for told in result.diagnostics] == [1, 3]


@pytest.mark.parametrize("response", ["plain text", {"role": "assistant", "content": "plain text"}])
def test_bare_answers(tmp_path: Path, response: Any) -> None:
    action = only(read(tmp_path, row([USER], response))).steps[0].action
    assert action == Message("assistant", (Text("plain text"),), (1,))


def test_does_not_recognise_other_logs() -> None:
    reader = OpenAIChat()
    assert not reader.recognises(Head.of([]))
    assert not reader.recognises(Head.of([{"messages": [USER]}]))
    assert not reader.recognises(Head.of([{"request": {"url": "x"}, "response": {}}]))
    assert not reader.recognises(Head.of([{"messages": ["x"], "response": "y"}]))


def test_a_log_that_begins_with_an_odd_request_is_recognised() -> None:
    odd = row([], completion(says("x")))
    assert OpenAIChat().recognises(Head.of([odd, row([USER], completion(says("y")))]))
    assert not OpenAIChat().recognises(Head.of([odd]))


ODD_CHUNKS: list[Any] = [
    {"choices": 5},
    {"choices": {"delta": {}}},
    delta(tool_calls=True),
    delta(tool_calls={"index": 0}),
    {"choices": [{"index": 0, "delta": "text"}]},
]


def test_odd_chunks_are_passed_over_and_whole_arguments_are_kept(tmp_path: Path) -> None:
    """Some servers stream a call whole, its arguments as an object."""
    whole = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}
    (step,) = only(read(tmp_path, row([USER], [*ODD_CHUNKS, delta(tool_calls=[whole]), END]))).steps
    assert [(call.name, call.arguments) for call in step.action.tool_calls] == [("weather", {"city": "Oslo"})]


@pytest.mark.parametrize("opening", [": ping\n\n", "event: message\n", "id: 1\r\n", "retry: 10\n\n"])
def test_an_event_stream_may_open_with_a_comment_or_another_field(tmp_path: Path, opening: str) -> None:
    data = opening + "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in (delta(content="Rain."), END))
    (step,) = only(read(tmp_path, row([USER], data))).steps
    assert step.action.text == "Rain."


def test_bodies_kept_as_json_text_are_opened(tmp_path: Path) -> None:
    plain = row([USER], completion(says("Rain.")))
    texts = {"request": json.dumps(plain["request"]), "response": json.dumps(plain["response"])}
    assert OpenAIChat().recognises(Head.of([texts]))
    (step,) = only(read(tmp_path, texts)).steps
    assert (step.action.text, step.candidates[0].model) == ("Rain.", "m")
    (answer,) = only(read(tmp_path, row([USER], '{"a": 1}'))).steps
    assert answer.action.text == '{"a": 1}', "a model may well answer in JSON"


def by_teacher(content: str) -> dict[str, Any]:
    whole = completion(says(content))
    whole["choices"][0]["postgrad"] = {"teacher": "large", "model": 5}
    return whole


def test_a_teachers_answer_is_never_the_action_taken(tmp_path: Path) -> None:
    alone = read(tmp_path, row([USER], by_teacher("better")))
    assert alone.traces == ()
    assert alone.uses == {"event": 1}
    (step,) = only(read(tmp_path, row([USER], completion(says("own"))), row([USER], by_teacher("better")))).steps
    assert [(candidate.message.text, candidate.chosen) for candidate in step.candidates] == [
        ("own", True),
        ("better", False),
    ]
    assert step.action.text == "own"


def test_arguments_nested_too_deeply_are_a_parse_error(tmp_path: Path) -> None:
    raw = '{"a": ' + "[" * 800 + "]" * 800 + "}"
    (step,) = only(read(tmp_path, row([USER], completion(says(None, ("c1", "weather", raw)))))).steps
    (call,) = step.action.tool_calls
    assert (call.arguments, call.arguments_raw) == (None, raw)
    assert call.parse_error == "arguments are nested too deeply"


def test_an_answer_resent_without_its_outer_white_space_is_the_same(tmp_path: Path) -> None:
    answer = says("Let me look.\n", ("c1", "weather", "{}"))
    later = [USER, {**answer, "content": "Let me look."}, tool("c1", "Rain")]
    trace = only(read(tmp_path, row([USER], completion(answer)), row(later, completion(says("Rain.")))))
    assert [result.text for result in trace.steps[0].results] == ["Rain"]


def test_more_conversations_than_are_held_in_memory(tmp_path: Path) -> None:
    """150 conversations of 3 calls, all first calls before all second ones: when its turn comes, each is on disk.

    Written one conversation after the other they give the same traces but for the numbers of their records; the
    second calls make the first answers' results known, so every first step has one.
    """

    def calls(number: int) -> list[dict[str, Any]]:
        asked = [{"role": "user", "content": f"What is the weather in town {number}?"}]
        answers = [says(None, ("c1", "weather", json.dumps({"town": number}))), says("Rain."), says("Bye.")]
        between = [[tool("c1", f"rain in {number}")], [{"role": "user", "content": "Thanks"}], []]
        rows = []
        for answer, rest in zip(answers, between, strict=True):
            rows.append(row(list(asked), completion(answer)))
            asked += [answer, *rest]
        return rows

    talks = [calls(number) for number in range(150)]
    mixed = read(tmp_path, *(talk[turn] for turn in range(3) for talk in talks))
    apart = read(tmp_path, *(one for talk in talks for one in talk))
    assert [trace.id for trace in mixed.traces] == [trace.id for trace in apart.traces]
    assert len({trace.id for trace in mixed.traces}) == 150
    for number, (one, other) in enumerate(zip(mixed.traces, apart.traces, strict=True)):
        assert [step.records for step in one.steps] == [(number + 1,), (number + 151,), (number + 301,)]
        assert [[m.text for m in one.context(s)] for s in one.steps] == [
            [m.text for m in other.context(s)] for s in other.steps
        ]
        assert [step.action for step in one.steps] == [
            msgspec.structs.replace(a.action, records=b.action.records)
            for a, b in zip(other.steps, one.steps, strict=True)
        ]
        assert [result.text for result in one.steps[0].results] == [f"rain in {number}"]
