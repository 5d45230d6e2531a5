"""ChatGPT's and Claude.ai's exports: trees, regenerations, branches, tools, archives."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Media, Opaque, Reasoning
from postgrad.core.trace import Trace
from postgrad.traces import readers
from postgrad.traces.formats.chat_exports.chatgpt import ChatGPTExport
from postgrad.traces.formats.chat_exports.claude_ai import ClaudeAIExport
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head


class Chat:
    """A ChatGPT conversation; every node hangs on the one before unless `on` says otherwise."""

    def __init__(self) -> None:
        self.mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
        self.last = "root"

    def add(self, key: str, role: str, content: Any, *, on: str | None = None, **more: Any) -> None:
        said = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
        name = more.pop("name", None)
        message = {
            "id": key,
            "author": {"role": role, "name": name},
            "content": said,
            "recipient": "all",
            "metadata": {},
        }
        message |= {"create_time": 1700000000.0 + len(self.mapping), "end_turn": None, **more}
        parent = on or self.last
        self.mapping[key] = {"id": key, "message": message, "parent": parent, "children": []}
        self.mapping[parent]["children"].append(key)
        self.last = key

    def value(self, current: str | None = None) -> dict[str, Any]:
        return {"title": "t", "conversation_id": "conv", "mapping": self.mapping, "current_node": current or self.last}


def read(folder: Path, *conversations: Any, name: str = "conversations.json") -> ReadResult:
    path = folder / name
    path.write_text(json.dumps(list(conversations)))
    return readers.read(path)


def only(found: ReadResult) -> Trace:
    (trace,) = found.traces
    return trace


def said(trace: Trace, place: int) -> list[str]:
    context = trace.context(trace.steps[place])
    return [m.text or "".join(r.text for r in m.tool_results) or m.role for m in context]


def test_regenerations_are_candidates_and_the_path_that_was_left_a_branch(tmp_path: Path) -> None:
    """W21: two answers to "hi"; the first was followed by more before the user went back for the second."""
    chat = Chat()
    chat.add("u1", "user", "hi")
    chat.add("a1", "assistant", "first", metadata={"model_slug": "m-1"})
    chat.add("u2", "user", "more")
    chat.add("a2", "assistant", "old branch")
    chat.add("a3", "assistant", "second", on="u1", metadata={"model_slug": "m-2"})
    chat.add("u3", "user", "and now")
    chat.add("a4", "assistant", "end")
    trace = only(read(tmp_path, chat.value()))
    assert [[(c.message.text, c.chosen) for c in s.candidates] for s in trace.steps] == [
        [("first", False), ("second", True)],
        [("old branch", True)],
        [("end", True)],
    ]
    assert [(s.abandoned, s.parent) for s in trace.steps] == [(False, None), (True, None), (False, 0)]
    assert [said(trace, place) for place in range(3)] == [["hi"], ["hi", "first", "more"], ["hi", "second", "and now"]]
    assert trace.steps[0].candidates[1].model == "m-2"


def test_a_message_that_the_user_wrote_anew(tmp_path: Path) -> None:
    chat = Chat()
    chat.add("u1", "user", "two")
    chat.add("a1", "assistant", "2")
    chat.add("u2", "user", "three", on="root")
    chat.add("a2", "assistant", "3")
    trace = only(read(tmp_path, chat.value()))
    assert [(s.action.text, s.abandoned, said(trace, s.index)) for s in trace.steps] == [
        ("2", True, ["two"]),
        ("3", False, ["three"]),
    ]
    assert [(e.text, e.data) for e in trace.events] == [("two", {}), ("three", {"edit": True})]


def test_the_current_node_decides_what_was_taken(tmp_path: Path) -> None:
    chat = Chat()
    chat.add("u1", "user", "hi")
    chat.add("a1", "assistant", "kept")
    chat.add("a2", "assistant", "dropped", on="u1")
    (step,) = only(read(tmp_path, chat.value(current="a1"))).steps
    assert [(c.message.text, c.chosen) for c in step.candidates] == [("kept", True), ("dropped", False)]


def test_thoughts_and_a_call_are_one_turn_and_the_tools_message_its_result(tmp_path: Path) -> None:
    chat = Chat()
    chat.add("u", "user", "plot")
    chat.add("t", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "hm"}]})
    chat.add("c", "assistant", {"content_type": "code", "language": "python", "text": "1/0"}, recipient="python")
    failed = {"aggregate_result": {"status": "failed_with_in_kernel_exception"}}
    chat.add(
        "r", "tool", {"content_type": "execution_output", "text": "ZeroDivisionError"}, name="python", metadata=failed
    )
    chat.add("s", "assistant", {"content_type": "code", "language": "json", "text": '{"q": "x"}'}, recipient="web.run")
    chat.add("w", "tool", {"content_type": "text", "parts": ["found"]}, name="web.run")
    chat.add("e", "assistant", "Done.", end_turn=True)
    trace = only(read(tmp_path, chat.value()))
    assert [[(c.name, c.arguments) for c in s.action.tool_calls] for s in trace.steps] == [
        [("python", {"code": "1/0"})],
        [("web.run", {"q": "x"})],
        [],
    ]
    assert [[(r.text, r.is_error) for r in s.results] for s in trace.steps] == [
        [("ZeroDivisionError", True)],
        [("found", None)],
        [],
    ]
    assert trace.steps[0].action.blocks[0] == Reasoning("hm")
    assert said(trace, 2) == ["plot", "assistant", "ZeroDivisionError", "assistant", "found"]


def test_hidden_messages_are_context_and_no_words_of_the_user(tmp_path: Path) -> None:
    chat = Chat()
    custom = {"content_type": "user_editable_context", "user_profile": "I am Ann.", "user_instructions": "Be brief."}
    chat.add("p", "user", custom, metadata={"is_visually_hidden_from_conversation": True})
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f"}
    chat.add("u", "user", {"content_type": "multimodal_text", "parts": [picture, "what?", {"content_type": "new"}]})
    chat.add("a", "assistant", "a cat", metadata={"finish_details": {"type": "interrupted"}})
    trace = only(read(tmp_path, chat.value()))
    assert said(trace, 0) == ["I am Ann.\n\nBe brief.", "what?"]
    assert [(e.kind, e.text) for e in trace.events] == [("user_text", "what?"), ("interrupt", "")]
    blocks = trace.context(trace.steps[0])[1].blocks
    assert (blocks[0], type(blocks[2])) == (Media("image/*", "", "file-service://f"), Opaque)
    assert (trace.steps[0].request.fidelity, trace.steps[0].candidates[0].stop_reason) == ("partial", "interrupted")


def test_the_file_in_its_archive_with_the_thumbs_beside_it(tmp_path: Path) -> None:
    chat = Chat()
    chat.add("u", "user", "hi")
    chat.add("a", "assistant", "yo")
    thumbs = [{"id": "a", "conversation_id": "conv", "rating": "thumbs_down", "content": '{"text": "rude"}'}]
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([chat.value()]))
        archive.writestr("message_feedback.json", json.dumps(thumbs))
    packed = only(readers.read(tmp_path / "export.zip" / "conversations.json"))
    plain = only(read(tmp_path, chat.value()))
    assert packed.id == plain.id
    assert [(f.kind, f.value, f.source) for f in packed.steps[0].feedback] == [("rating", 0.0, "user")]
    assert plain.steps[0].feedback == ()


def test_one_conversation_in_a_file_has_a_record_a_node(tmp_path: Path) -> None:
    chat = Chat()
    chat.add("u", "user", "hi")
    chat.add("a", "assistant", "yo")
    path = tmp_path / "one.json"
    path.write_text(json.dumps(chat.value(), indent=1))
    found = readers.read(path)
    assert found.uses == {"metadata": 2, "context": 1, "step": 1}
    assert only(found).id == only(read(tmp_path, chat.value())).id


def test_broken_trees_never_raise(tmp_path: Path) -> None:
    """A cycle, a parent that is not there, a node that is none, a conversation without answers."""
    chat = Chat()
    chat.add("u", "user", "hi")
    chat.add("a", "assistant", "yo")
    chat.mapping["x"] = {"id": "x", "message": None, "parent": "y", "children": []}
    chat.mapping["y"] = {"id": "y", "message": None, "parent": "x", "children": []}
    chat.mapping["z"] = 5
    chat.mapping["lost"] = {**chat.mapping["a"], "id": "lost", "parent": "gone", "children": 7}
    found = read(tmp_path, chat.value(), {"mapping": {}}, 5)
    assert [len(t.steps) for t in found.traces] == [2]
    assert [t.what for t in found.diagnostics] == [
        "no node of a conversation",
        "a conversation without an answer",
        "the row is no JSON object",
    ]


def message(key: str, sender: str, *content: Any, on: str | None = None, **more: Any) -> dict[str, Any]:
    base = {"uuid": key, "sender": sender, "text": "", "content": list(content), "created_at": "2026-01-01T00:00:00Z"}
    return {**base, **({"parent_message_uuid": on} if on else {}), **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


USE = {"type": "tool_use", "name": "repl", "input": {"code": "1"}}
ANSWER = {"type": "tool_result", "name": "repl", "content": [text("one")], "is_error": False}
ROOT = "00000000-0000-4000-8000-000000000000"


def claude(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"uuid": "conv", "name": "n", "chat_messages": list(messages)}


def test_a_claude_message_is_cut_behind_its_results(tmp_path: Path) -> None:
    answer = message(
        "2", "assistant", {"type": "thinking", "thinking": "hm"}, text("Let me."), USE, ANSWER, text("One.")
    )
    found = read(tmp_path, claude(message("1", "human", text("q")), answer))
    trace = only(found)
    assert (found.source.format, totals([trace])) == (
        "claude_ai",
        {"steps": 2, "tool_calls": 1, "tool_results": 1, "calls_without_result": 0, "flagged_errors": 0},
    )
    assert [s.action.text for s in trace.steps] == ["Let me.", "One."]
    assert (trace.steps[0].results[0].text, trace.steps[0].results[0].is_error) == ("one", False)
    assert said(trace, 1) == ["q", "Let me.", "one"]


def test_claude_branches_and_regenerations(tmp_path: Path) -> None:
    trace = only(
        read(
            tmp_path,
            claude(
                message("1", "human", text("q"), on=ROOT),
                message("2", "assistant", text("first"), on="1"),
                message("3", "assistant", text("second"), on="1"),
                message("4", "human", text("more"), on="3"),
                message("5", "assistant", text("end"), on="4"),
            ),
        )
    )
    assert [[(c.message.text, c.chosen) for c in s.candidates] for s in trace.steps] == [
        [("first", False), ("second", True)],
        [("end", True)],
    ]
    assert said(trace, 1) == ["q", "second", "more"]


def test_old_claude_exports_are_lists_of_texts(tmp_path: Path) -> None:
    attached = message(
        "1",
        "human",
        text="q",
        attachments=[{"file_name": "f", "extracted_content": "FILE"}],
        files=[{"file_name": "p"}],
    )
    trace = only(
        read(tmp_path, claude(attached, message("2", "assistant", text="a"), 5, message("3", "human", text="b")))
    )  # type: ignore[arg-type]
    assert [(s.action.text, said(trace, s.index)) for s in trace.steps] == [("a", ["qFILE"])]
    assert "wording of attachments" in trace.steps[0].request.missing


@pytest.mark.parametrize(
    "document", [[{"mapping": {}}], [{"mapping": {"a": {"message": "x"}}}], {"mapping": 5}, [{"chat_messages": []}], []]
)
def test_look_alikes_are_refused(document: Any) -> None:
    head = Head.of(document=document)
    assert not ChatGPTExport().recognises(head)
    assert not ClaudeAIExport().recognises(head)
