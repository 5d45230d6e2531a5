"""Builds small Claude Code session files, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"


class ClaudeFile:
    """Rows in file order; every row hangs on the row before unless `parent` says otherwise. Methods give the uuid."""

    def __init__(self, *, session: str = SESSION) -> None:
        self.session = session
        self.rows: list[dict[str, Any]] = []
        self._last: str | None = None

    def row(self, type: str, *, parent: str | None = "last", **fields: Any) -> str:
        uuid = f"u{len(self.rows) + 1}"
        above = self._last if parent == "last" else parent
        stamp = f"2026-01-01T00:00:{len(self.rows):02d}.000Z"
        common = {"parentUuid": above, "sessionId": self.session, "isSidechain": False, "version": "2.1.0"}
        self.rows.append({**common, "type": type, "uuid": uuid, "timestamp": stamp, **fields})
        self._last = self.rows[-1]["uuid"]
        return str(self._last)

    def user(self, content: Any, **fields: Any) -> str:
        return self.row("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, id: str | None, *blocks: dict[str, Any], parent: str | None = "last", **message: Any) -> str:
        base = {"model": "claude-x", "role": "assistant", "content": list(blocks), **message}
        return self.row("assistant", parent=parent, message={**base, "id": id} if id else base)

    def result(self, call: str, text: Any = "done", *, parent: str | None = "last", **block: Any) -> str:
        part = {"type": "tool_result", "tool_use_id": call, "content": text, **block}
        return self.user([part], parent=parent)

    def bare(self, type: str, **fields: Any) -> None:
        """A row outside the tree."""
        self.rows.append({"type": type, "sessionId": self.session, **fields})

    @property
    def data(self) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in self.rows)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data)
        return path


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}
