"""Results of calls inside a user's message, as Cline writes them: tool_result blocks, or texts.

Texts begin with ``[read_file for 'a.py'] Result:`` and go on to the next such line or to what is no result
(``<environment_details>``, ``[ERROR]``). They answer the waiting call of that tool, else the first that waits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from postgrad.core.message import Block, Media, ResultStatus, Text, ToolCall, ToolResult
from postgrad.traces.conversation import provider_key
from postgrad.traces.formats.content import Answered

_HEADER = re.compile(r"\A\[(?P<tool>[\w-]+)(?: .*?)?\] Result:[ \t]*\n?(?P<rest>.*)\Z", re.DOTALL)
_SECOND = re.compile(r"\A\s*Tool \[(?P<tool>[\w-]+)\] was not executed because")
_OTHER = re.compile(r"\A\s*(<environment_details>|\[ERROR\]|<user_message>|<task>|\[TASK RESUMPTION\])")
_FAILED = re.compile(
    r"\A\s*(The tool execution failed with the following error|<error>|Error executing|\{\s*\"status\":\s*\"error\")"
)
_DENIED = re.compile(r"\A\s*(The user denied this operation|\{\s*\"status\":\s*\"denied\")")
_SAID = re.compile(r"<(feedback|user_message)>\s*(.*?)\s*</\1>|\"feedback\":\s*\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)


@dataclass
class Reply:
    """A user's message taken apart: results under the ids of the calls, and the blocks that are no result."""

    results: list[Answered] = field(default_factory=list)
    rest: list[Block] = field(default_factory=list)


def words_in(said: str) -> str:
    """What the user typed into a result, "" for nothing."""
    found = _SAID.search(said)
    return (found[2] or found[3] or "") if found else ""


def judged(result: ToolResult) -> ToolResult:
    """A result with the flag and status that its text, which the application wrote, stands for."""
    status: ResultStatus
    if _DENIED.match(result.text):
        return ToolResult(result.call_id, result.text, result.is_error, "rejected")
    failed = bool(_FAILED.match(result.text) or _SECOND.match(result.text)) or result.is_error is True
    status = "error" if failed else "ok"
    return ToolResult(result.call_id, result.text, True if failed else result.is_error, status)


def read_reply(blocks: Sequence[Block], results: Sequence[Answered], waiting: Sequence[ToolCall]) -> Reply:
    """Find the results in a message; `waiting` are the calls that have none yet."""
    reply = Reply([Answered(judged(item.result), item.media) for item in results])
    known = {item.result.call_id for item in results}
    calls = [call for call in waiting if provider_key(call) not in known]
    current: list[Block] | None = None
    owner: ToolCall | None = None

    def close() -> None:
        nonlocal current, owner
        if current is not None and owner is not None:
            said = "\n".join(block.text for block in current if isinstance(block, Text))
            found = tuple(block for block in current if isinstance(block, Media))
            reply.results.append(Answered(judged(ToolResult(provider_key(owner), said)), found))
        current = owner = None

    for block in blocks:
        header = _HEADER.match(block.text) or _SECOND.match(block.text) if isinstance(block, Text) else None
        if header is not None and calls:
            close()
            owner = next((call for call in calls if call.name == header["tool"]), calls[0])
            calls.remove(owner)
            rest = header.groupdict().get("rest")
            assert isinstance(block, Text)
            current = [Text(block.text if rest is None else rest)] if rest != "" else []
        elif current is None or (isinstance(block, Text) and _OTHER.match(block.text)):
            close()
            reply.rest.append(block)
        else:
            current.append(block)
    close()
    return reply
