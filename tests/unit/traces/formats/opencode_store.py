"""Builds one opencode session and writes it in each of the forms that it can lie in."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any


class OpenCodeStore:
    """Messages of one or more sessions, a second apart; ids grow in the order in which they are made."""

    def __init__(self, session: str = "ses_1", **info: Any) -> None:
        self.sessions: list[dict[str, Any]] = []
        self.messages: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self.begin(session, **info)

    def begin(self, session: str, **info: Any) -> None:
        """Another session; what follows belongs to it."""
        time = {"created": 1_700_000_000_000 + len(self.sessions)}
        self.sessions.append({"id": session, "version": "1.2.0", "directory": "/w", "title": "t", "time": time, **info})

    def _message(self, role: str, parts: tuple[dict[str, Any], ...], **info: Any) -> str:
        number = len(self.messages) + 1
        name, home = f"msg_{number:04}", self.sessions[-1]["id"]
        base = {"id": name, "sessionID": home, "role": role, "time": {"created": 1_700_000_000_000 + 1000 * number}}
        held = [
            {"id": f"prt_{number:04}_{place:02}", "sessionID": home, "messageID": name, **part}
            for place, part in enumerate(parts)
        ]
        self.messages.append(({**base, **info}, held))
        return name

    def user(self, *parts: dict[str, Any], **info: Any) -> str:
        return self._message("user", parts, **info)

    def assistant(self, *parts: dict[str, Any], reason: str = "stop", spans: bool = True, **info: Any) -> str:
        """An answer; by default the parts are one span, from `step-start` to `step-finish`."""
        finish = {"type": "step-finish", "reason": reason, "tokens": {"input": len(parts)}, "cost": 0}
        whole = ({"type": "step-start"}, *parts, finish) if spans else parts
        return self._message("assistant", whole, modelID="m", providerID="p", **info)

    def export(self, path: Path) -> Path:
        messages = [{"info": info, "parts": parts} for info, parts in self.messages]
        path.write_text(json.dumps({"info": self.sessions[0], "messages": messages}, indent=1))
        return path

    def folder(self, path: Path) -> Path:
        for session in self.sessions:
            _write(path / "session" / "project" / f"{session['id']}.json", session)
        for info, parts in self.messages:
            _write(path / "message" / info["sessionID"] / f"{info['id']}.json", info)
            for part in parts:
                _write(path / "part" / info["id"] / f"{part['id']}.json", part)
        return path

    def database(self, path: Path) -> Path:
        with sqlite3.connect(path) as base:
            base.execute("create table session (id text, parent_id text, version text, time_created int, revert text)")
            base.execute("create table message (id text, session_id text, time_created int, data text)")
            base.execute("create table part (id text, message_id text, session_id text, data text)")
            for s in self.sessions:
                row = (s["id"], s.get("parentID"), s["version"], s["time"]["created"], json.dumps(s.get("revert")))
                base.execute("insert into session values (?, ?, ?, ?, ?)", row)
            for info, parts in self.messages:
                data = {name: value for name, value in info.items() if name not in ("id", "sessionID")}
                row = (info["id"], info["sessionID"], info["time"]["created"], json.dumps(data))
                base.execute("insert into message values (?, ?, ?, ?)", row)
                for part in parts:
                    data = {k: v for k, v in part.items() if k not in ("id", "sessionID", "messageID")}
                    row = (part["id"], info["id"], info["sessionID"], json.dumps(data))
                    base.execute("insert into part values (?, ?, ?, ?)", row)
        base.close()
        return path

    def stream(self, path: Path) -> Path:
        events = [("session.created", {"info": session}) for session in self.sessions]
        for info, parts in self.messages:
            events.append(("message.updated", {"info": {**info, "time": info["time"]}}))
            events += [("message.part.updated", {"part": part}) for part in parts]
            events.append(("message.updated", {"info": info}))
        rows = [{"timestamp": n, "event": {"type": kind, "properties": p}} for n, (kind, p) in enumerate(events)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def tool(id: str, status: str = "completed", name: str = "bash", **state: Any) -> dict[str, Any]:
    given = {"input": {"command": id}, "metadata": {}, "time": {"start": 1, "end": 2}}
    outcome = {"completed": {"output": f"out {id}", "title": ""}, "error": {"error": "failed"}}.get(status, {})
    return {"type": "tool", "tool": name, "callID": id, "state": {"status": status, **given, **outcome, **state}}
