"""One Cursor conversation: its bubbles as steps, results, judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postgrad.core.message import Block, Message, Reasoning, ResultStatus, Text, ToolCall, ToolResult
from postgrad.core.trace import Feedback
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.content import call
from postgrad.traces.formats.shapes.plain import mapping, mappings, moment, opened, string, text, written

_USER, _MODEL = 1, 2
_ENDED = ("completed", "error", "cancelled", "canceled", "rejected", "aborted")


@dataclass(frozen=True)
class Bubble:
    """A message of a conversation: its record, its id, and its value."""

    number: int
    name: str
    value: Mapping[str, Any]

    @property
    def tool(self) -> dict[str, Any]:
        """The tool call in it, empty if it is none; placeholders without a name are none."""
        found = mapping(self.value.get("toolFormerData"))
        return found if text(found.get("name")) or isinstance(found.get("tool"), int) else {}


class Composer:
    """A conversation, told; `uses` says what each row was used as."""

    def __init__(self, value: Mapping[str, Any], number: int, bubbles: Sequence[Bubble]) -> None:
        self.talk = Conversation(fidelity="partial", missing=("system prompt", "tool schemas", "attached context"))
        self.uses: dict[int, tuple[str, str]] = {number: ("metadata", "composerData")}
        self._model = text(mapping(value.get("modelConfig")).get("modelName"))
        self._step_of: dict[str, int] = {}
        together: list[Bubble] = []
        for bubble in bubbles:
            if bubble.value.get("type") == _MODEL and together and not _joins(together, bubble):
                self._act(together)
                together = []
            if bubble.value.get("type") == _MODEL:
                together.append(bubble)
                continue
            self._act(together)
            together = []
            self._user(bubble)
        self._act(together)
        self._diffs(value, number)
        if value.get("status") in ("aborted", "cancelled"):
            self.talk.event("interrupt", number, string(value.get("status")))

    def _user(self, bubble: Bubble) -> None:
        said = text(bubble.value.get("text")) or string(bubble.value.get("rawText"))
        self._model = text(mapping(bubble.value.get("modelInfo")).get("modelName")) or self._model
        if bubble.value.get("type") != _USER or not said:
            self.uses.setdefault(bubble.number, ("ui", "bubble"))
            return
        self.talk.tell(Message("user", (Text(said),), (bubble.number,)))
        self.talk.event("user_text", bubble.number, said)
        self._used(bubble, "context")

    def _act(self, bubbles: Sequence[Bubble]) -> None:
        blocks = [block for bubble in bubbles for block in _blocks(bubble)]
        if not blocks:
            for bubble in bubbles:
                self._used(bubble, "ui")
            return
        last = bubbles[-1].value
        tokens = {key: n for key, n in mapping(last.get("tokenCount")).items() if isinstance(n, int) and n}
        model = text(mapping(last.get("modelInfo")).get("modelName")) or self._model
        numbers = tuple(dict.fromkeys(bubble.number for bubble in bubbles))
        action = Action(blocks, numbers, model, None, tokens, moment(bubbles[0].value.get("createdAt")))
        step = self.talk.act(action)
        for bubble in bubbles:
            self._step_of[bubble.name] = step
            self._used(bubble, "step")
        waiting = iter(list(self.talk.pending))
        for bubble in bubbles:
            if bubble.tool:
                self._settle(next(waiting), bubble)
            failed = mapping(bubble.value.get("errorDetails"))
            if failed:
                self.talk.event("api_error", bubble.number, text(failed.get("message")) or written(failed))

    def _settle(self, made: ToolCall, bubble: Bubble) -> None:
        tool = bubble.tool
        refused = tool.get("userDecision") == "rejected" or tool.get("status") == "rejected"
        if refused:
            self.talk.judge(Feedback("user_reject", source="user"))
        elif tool.get("userDecision") == "accepted":
            self.talk.event("approval", bubble.number, "accepted", call=made.id)
        came = opened(tool.get("result"))
        ended = tool.get("status") in _ENDED
        if came is None and not (refused or ended):
            return
        failed = tool.get("status") == "error"
        stopped = tool.get("status") in ("cancelled", "canceled", "aborted")
        status: ResultStatus = "rejected" if refused else "error" if failed else "interrupted" if stopped else "ok"
        flag = True if failed else False if tool.get("status") == "completed" and not refused else None
        said = written(tool.get("result")) or written(tool.get("error"))
        self.talk.settle(made, ToolResult("", said, flag, status), record=bubble.number)

    def _diffs(self, value: Mapping[str, Any], number: int) -> None:
        """Diffs that the user accepted or rejected, as judgements on the step that made them."""
        for blocks in mapping(value.get("codeBlockData")).values():
            listed = list(blocks.values()) if isinstance(blocks, dict) else mappings(blocks)
            for block in mappings(listed):
                step = self._step_of.get(string(block.get("bubbleId")))
                if step is not None and block.get("status") in ("accepted", "rejected"):
                    accepted = block["status"] == "accepted"
                    self.talk.judge(Feedback("accept", float(accepted), "", "user"), step=step)

    def _used(self, bubble: Bubble, use: str) -> None:
        if self.uses.get(bubble.number, ("", ""))[1] != "composerData":
            self.uses[bubble.number] = use, "bubble"


def _joins(together: Sequence[Bubble], bubble: Bubble) -> bool:
    """Whether a bubble belongs to the response that the bubbles before it are of."""
    last = together[-1].tool
    if not last:
        return True
    if not bubble.tool:
        return False
    first = text(last.get("modelCallId"))
    return first is not None and first == text(bubble.tool.get("modelCallId"))


def _blocks(bubble: Bubble) -> list[Block]:
    value = bubble.value
    thinking = value.get("thinking")
    said = text(mapping(thinking).get("text")) or (thinking if isinstance(thinking, str) else "")
    blocks: list[Block] = [Reasoning(said, text(mapping(thinking).get("signature")))] if said else []
    words = text(value.get("text")) or string(value.get("rawText"))
    blocks += [Text(words)] if words else []
    if tool := bubble.tool:
        name = text(tool.get("name")) or f"tool-{tool['tool']}"
        arguments = tool.get("rawArgs") if tool.get("rawArgs") not in (None, "") else tool.get("params")
        blocks.append(call(name, arguments, id=text(tool.get("toolCallId")) or f"bubble-{bubble.name}"))
    return blocks
