"""Rows of `session_message`, the second generation of opencode's tables, in the form of the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postgrad.traces.formats.opencode.sessions import Sessions
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text, written
from postgrad.traces.sources.document import Item


def read_second(item: Item, data: Mapping[str, Any], sessions: Sessions) -> None:
    """Enter a row as a message with its parts, all of which stand in that one record."""
    kind, home = string(item.value.get("type")), string(item.value.get("session_id"))
    base = {"id": item.key, "sessionID": home, "time": mapping(data.get("time"))}
    if kind == "assistant":
        model = mapping(data.get("model"))
        info = {**base, "role": "assistant", "modelID": model.get("id"), "providerID": model.get("providerID")}
        extra = {name: data[name] for name in ("agent", "finish", "error", "tokens") if name in data}
        parts = [{"type": "step-start"}, *(_part(part) for part in mappings(data.get("content"))), _finish(data)]
        _enter({**info, **extra}, parts, item.number, sessions)
    elif kind == "user":
        files = [{"type": "file", "url": f.get("uri"), "mime": f.get("mime")} for f in mappings(data.get("files"))]
        said = {"type": "text", "text": string(data.get("text"))}
        _enter({**base, "role": "user"}, [said, *files], item.number, sessions)
    elif kind == "synthetic":
        _enter({**base, "role": "user"}, [_added(string(data.get("text")))], item.number, sessions)
    elif kind == "compaction":
        _enter({**base, "role": "user"}, [{"type": "compaction"}], item.number, sessions)
        summary = {"type": "text", "text": string(data.get("summary"))}
        info = {**base, "id": f"{item.key}-summary", "role": "assistant", "summary": True, "parentID": item.key}
        _enter(info, [summary], item.number, sessions)
    elif kind == "shell":
        ran = f"$ {string(data.get('command'))}\n{string(data.get('output'))}"
        _enter({**base, "role": "user"}, [_added(ran)], item.number, sessions)
    else:
        agent = text(data.get("agent"))
        _enter({**base, "role": "user", **({"agent": agent} if agent else {})}, [], item.number, sessions)


def _added(words: str) -> dict[str, Any]:
    """A text that the application put into a message."""
    return {"type": "text", "text": words, "synthetic": True}


def _enter(info: dict[str, Any], parts: list[dict[str, Any]], row: int, sessions: Sessions) -> None:
    sessions.message(info, row)
    for place, part in enumerate(parts):
        sessions.part({**part, "id": f"{info['id']}-{place:04}", "messageID": info["id"]}, row)


def _finish(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "step-finish", "reason": data.get("finish"), "tokens": data.get("tokens"), "cost": data.get("cost")}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") != "tool":
        return dict(part)
    state = dict(mapping(part.get("state")))
    given = state.get("input")
    if isinstance(given, str):
        state |= {"input": {}, "raw": given}
    if state.get("status") == "completed":
        content = mappings(state.get("content"))
        state["output"] = "\n".join(string(c.get("text")) if "text" in c else written(c) for c in content)
        state["metadata"] = mapping(state.get("structured"))
    elif state.get("status") == "error":
        error = state.get("error")
        state["error"] = string(mapping(error).get("message")) or written(error)
    return {"type": "tool", "tool": part.get("name"), "callID": part.get("id"), "state": state}
