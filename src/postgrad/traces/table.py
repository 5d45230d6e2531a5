"""The trace formats by name, in the order in which their readers are asked whether a source is theirs."""

from __future__ import annotations

_FORMATS = "postgrad.traces.formats"
READERS: dict[str, str] = {
    "claude_code": f"{_FORMATS}.claude_code.reader:ClaudeCode",
    "openai_chat": f"{_FORMATS}.openai_chat.reader:OpenAIChat",
}
