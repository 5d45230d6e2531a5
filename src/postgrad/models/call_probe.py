"""Which call form a chat template has: it is given calls, and what it writes around them is read off.

One call and two calls are rendered with names and arguments that can be found again. The texts before, between and
after these are the form. A template that writes them as the Hermes form does, or that takes no calls, has the Hermes
form; so has one whose arguments come out neither as JSON nor in a notation that `spelled_probe` can read off.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import jinja2

from postgrad.core.message import ToolCall
from postgrad.models.call_forms import FINAL, JSON_BODY, CallForm, Given, Harmony, Hermes, wire_id
from postgrad.models.calls import OPEN
from postgrad.models.inline_calls import ID, Inline
from postgrad.models.spelled_probe import Asking, spelled_form
from postgrad.models.template_probe import IDS, KEYS, NAMES, PROBE_TOOL, Render, answer_in, behind_mark


def call_turn(call: ToolCall, given: Given, *, key: str) -> dict[str, Any]:
    """The turn of an assistant that makes `call`, as the template takes it, with one private argument."""
    arguments = json.dumps({key: ""}, ensure_ascii=False) if given.textual else {key: ""}
    function = {"name": call.name, "arguments": arguments}
    wire = {"id": wire_id(call.provider_id or call.id), "type": "function", "function": function}
    return {"role": "assistant", "content": given.beside, "tool_calls": [wire]}


def call_form(render: Render, user: dict[str, Any], *, opened: str, answer: str, turn_end: str) -> CallForm:
    """The form of a template; `opened` is the text that asks for an answer to `user`."""
    for beside, textual in product(("", None), (False, True)):
        if textual and not _wants_text(_rendered(render, user, Given(beside), 1)):
            continue
        given = Given(beside, textual)
        found = _form(render, user, given, opened=opened, answer=answer, turn_end=turn_end)
        if found is not None:
            return found
    for beside in ("", None):
        asking = Asking(render, user, Given(beside), opened=opened, answer=answer, turn_end=turn_end)
        if (spelled := spelled_form(asking)) is not None:
            return spelled
    return Hermes()


def writes_otherwise(render: Render, user: dict[str, Any]) -> bool:
    """Whether a template writes calls, and not as the Hermes form does."""
    answer = behind_mark(_rendered(render, user, Given(), 1) or "")
    return PROBE_TOOL.name in answer and f'{OPEN}{{"name": "{PROBE_TOOL.name}", "arguments": ' not in answer


def _wants_text(text: str | None) -> bool:
    """Whether a template fails on arguments that are an object, or prints the object as Python does.

    One that writes them in a notation of its own would put the text of another notation in its place.
    """
    return text is None or str({KEYS[0]: ""}) in text


def _form(
    render: Render, user: dict[str, Any], given: Given, *, opened: str, answer: str, turn_end: str
) -> CallForm | None:
    one = _answer(render, user, given, calls=1, opened=opened)
    if one is None or (pieces := _pieces(one, 1)) is None:
        return None
    first, middle, last = pieces[0], pieces[1], pieces[-1]
    if middle == JSON_BODY and answer == FINAL:
        return Harmony(given)
    if first.endswith('<tool_call>\n{"name": "') or ID in first:
        return None
    plain = bool(answer) and first.startswith(answer)
    first, last = first.removeprefix(answer), last.removesuffix(turn_end)
    two = _answer(render, user, given, calls=2, opened=opened)
    several = _pieces(two, 2) if two is not None else None
    form = Inline(first, middle, several[2] if several else f"{last}; {first}", last, given, plain)
    return form if form.readable else None


def _rendered(render: Render, user: dict[str, Any], given: Given, calls: int) -> str | None:
    turn: dict[str, Any] = {"role": "assistant", "content": given.beside, "tool_calls": []}
    for place in range(calls):
        call = ToolCall(IDS[place], NAMES[place], "{}", {})
        turn["tool_calls"] += call_turn(call, given, key=KEYS[place])["tool_calls"]
    try:
        return render([user, turn], tools=(PROBE_TOOL,))
    except (jinja2.TemplateError, TypeError):  # a template may take it that a content is a text
        return None


def _answer(render: Render, user: dict[str, Any], given: Given, *, calls: int, opened: str) -> str | None:
    text = _rendered(render, user, given, calls)
    return None if text is None else answer_in(text, opened)


def _pieces(text: str, calls: int) -> list[str] | None:
    """The texts before, between and after names and arguments; None where one is missing or comes twice."""
    pieces: list[str] = []
    for place in range(calls):
        arguments = json.dumps({KEYS[place]: ""}, ensure_ascii=False)
        for value in (NAMES[place], arguments):
            before, found, text = text.partition(value)
            if not found:
                return None
            pieces.append(before)
    pieces.append(text)
    pieces = [piece.replace(IDS[0], ID).replace(IDS[1], ID) for piece in pieces]
    if any(NAMES[0] in piece for piece in pieces[:-1]) or any(piece.count(ID) > 1 for piece in pieces):
        return None
    return pieces
