"""Builds small Codex rollouts, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class CodexFile:
    """Rows in file order, a second apart unless `clock` says otherwise."""

    def __init__(self, session: str | None = "child", **meta: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.clock = 0.0
        if session is not None:
            self.meta(session, **meta)

    def row(self, row_type: str, **payload: Any) -> int:
        """Add a row; its line number."""
        minutes, seconds = divmod(self.clock, 60)
        stamp = f"2026-01-01T00:{int(minutes):02d}:{seconds:06.3f}Z"
        self.rows.append({"timestamp": stamp, "type": row_type, "payload": payload})
        self.clock += 1.0
        return len(self.rows)

    def meta(self, session: str, **fields: Any) -> int:
        return self.row("session_meta", id=session, cwd="/w", cli_version="0.150.0", **fields)

    def item(self, type: str, **fields: Any) -> int:
        return self.row("response_item", type=type, **fields)

    def event(self, type: str, **fields: Any) -> int:
        return self.row("event_msg", type=type, **fields)

    def user(self, words: str) -> int:
        return self.item("message", role="user", content=[{"type": "input_text", "text": words}])

    def says(self, words: str) -> int:
        return self.item("message", role="assistant", content=[{"type": "output_text", "text": words}])

    def thinks(self, words: str, **fields: Any) -> int:
        return self.item("reasoning", summary=[{"type": "summary_text", "text": words}], **fields)

    def calls(self, id: str, name: str = "shell", arguments: str = "{}") -> int:
        return self.item("function_call", name=name, arguments=arguments, call_id=id)

    def output(self, id: str, output: Any = "done") -> int:
        return self.item("function_call_output", call_id=id, output=output)

    def tokens(self, input: int) -> int:
        return self.event("token_count", info={"last_token_usage": {"input_tokens": input}})

    @property
    def data(self) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in self.rows)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data)
        return path
