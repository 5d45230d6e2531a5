"""A trace format of your own: one class, read by `ingest` without touching the package.

The format here is a support chat's log, one line per message: {"chat": "17", "who": "customer", "said": "..."}.
Every answer of "bot" is a step; what stands before it in the same chat is its context.

Run: python examples/new_format.py
Use: PYTHONPATH=examples postgrad ingest chats.jsonl --format new_format:SupportChat -o store
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postgrad.core.message import Message
from postgrad.core.trace import Candidate, Request, Source, Step, Trace
from postgrad.traces.pool import MessagePool
from postgrad.traces.readers import read
from postgrad.traces.records import ReadResult, counts
from postgrad.traces.sources.jsonl import JsonLines


class SupportChat:
    """Reads the log; `new_format:SupportChat` is its name on the command line."""

    format = "support_chat"

    def recognises(self, head: Sequence[dict[str, Any]]) -> bool:
        """Strict: every row has exactly the three keys."""
        return bool(head) and all(set(row) == {"chat", "who", "said"} for row in head)

    def read(self, path: Path) -> ReadResult:
        """One trace per chat; the record table says of every line what it was used as."""
        lines = JsonLines(path)
        chats: dict[str, list[Message]] = {}
        for row in lines.rows():
            role = "assistant" if row.value["who"] == "bot" else "user"
            message = Message(role, Message.of(role, row.value["said"]).blocks, (row.number,))
            chats.setdefault(row.value["chat"], []).append(message)
            lines.use(row.number, "step" if role == "assistant" else "message", row.value["who"])
        source = Source(str(path), self.format, sha256=lines.sha256)
        return lines.result(source, [_trace(chat, said, source, k) for k, (chat, said) in enumerate(chats.items())])


def _trace(chat: str, said: Sequence[Message], source: Source, index: int) -> Trace:
    pool = MessagePool()
    ids = pool.extend(said)
    places = [place for place, message in enumerate(said) if message.role == "assistant"]
    steps = tuple(
        Step(
            number,
            # The log knows neither the system prompt nor the tools, and says so.
            Request(ids[:place], fidelity="reconstructed", missing=("system", "tools")),
            (Candidate(said[place]),),
            records=said[place].records,
        )
        for number, place in enumerate(places)
    )
    return Trace(chat, source, pool.messages, steps, index)


if __name__ == "__main__":
    log = [
        {"chat": "17", "who": "customer", "said": "My order is late."},
        {"chat": "18", "who": "customer", "said": "Hi"},
        {"chat": "17", "who": "bot", "said": "It arrives tomorrow."},
        {"chat": "17", "who": "customer", "said": "Thanks."},
        {"chat": "17", "who": "bot", "said": "You are welcome."},
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chats.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in log))
        result = read(path, format="new_format:SupportChat")
    print("records:", dict(result.uses))
    for trace in result.traces:
        print(f"chat {trace.id}:", counts(trace)["steps"], "steps")
        for step in trace.steps:
            print(f"  after {len(trace.context(step))} messages: {step.action.text}")
