"""Chat-completions logs: requests and responses, linked to conversations (`conversations`). Contexts are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from postgrad.traces.formats.api_log.reader import LogReader


@dataclass(frozen=True)
class OpenAIChat(LogReader):
    """Reader of chat-completions request/response logs and batch files, postgrad's own captures among them."""

    format: str = "openai_chat"
    kinds: ClassVar[tuple[str, ...]] = ("chat",)
