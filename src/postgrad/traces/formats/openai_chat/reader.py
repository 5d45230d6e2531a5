"""Chat-completions logs: requests and responses, linked to conversations (`conversations`). Contexts are exact."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postgrad.traces.formats.api_log.reader import first_protocol, read_log
from postgrad.traces.head import Head
from postgrad.traces.records import ReadResult


@dataclass(frozen=True)
class OpenAIChat:
    """Reader of chat-completions request/response logs, postgrad's own captures among them."""

    format: str = "openai_chat"

    def recognises(self, head: Head) -> bool:
        """A chat-completions request with its response, or a batch file of them."""
        return first_protocol(head) == "chat"

    def read(self, path: Path) -> ReadResult:
        """Read a log.

        Raises:
            DataError: it cannot be opened.
        """
        return read_log(path, self.format)
