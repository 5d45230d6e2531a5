"""Calls that the model wrote as XML into its text: ``<read_file><path>a.py</path></read_file>``.

A call's `arguments_raw` is the very piece of text, so text and raw arguments, put one behind the other, are the
message. Only names of tools are looked for: other tags (``<thinking>``) are text. A call that is not closed was cut:
it has no arguments and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from postgrad.core.message import Block, Text, ToolCall

TOOLS = frozenset(
    {
        *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "search_files"),
        *("list_files", "list_code_definition_names", "browser_action", "use_mcp_tool", "access_mcp_resource"),
        *("ask_followup_question", "attempt_completion", "new_task", "plan_mode_respond", "plan_mode_response"),
        *("load_mcp_documentation", "switch_mode", "fetch_instructions", "insert_content", "search_and_replace"),
        *("codebase_search", "update_todo_list", "generate_image", "new_rule", "condense", "report_bug", "web_fetch"),
        *("summarize_task", "use_skill", "skill", "run_slash_command", "act_mode_respond", "edit_file"),
        *("web_search", "search_replace", "apply_patch", "explain_changes", "use_subagents", "delete_file"),
    }
)
_PARAMETER = re.compile(r"<(\w+)>")


def split_calls(said: str, *, id: str, names: Iterable[str] = TOOLS) -> list[Block]:
    """The text with its calls taken out, in order; they are named `id`-0, `id`-1, ..."""
    opening = re.compile(rf"<({'|'.join(sorted(map(re.escape, names)))})>")
    blocks: list[Block] = []
    at = calls = 0
    while match := opening.search(said, at):
        name, close = match[1], f"</{match[1]}>"
        stop = _close(said, match.end(), close)
        end = len(said) if stop < 0 else stop + len(close)
        if said[at : match.start()]:
            blocks.append(Text(said[at : match.start()]))
        raw, key = said[match.start() : end], f"{id}-{calls}"
        if stop < 0:
            blocks.append(ToolCall(key, name, raw, None, f"no {close} after the call"))
        else:
            blocks.append(ToolCall(key, name, raw, _parameters(said[match.end() : stop])))
        at, calls = end, calls + 1
    return [*blocks, Text(said[at:])] if said[at:] else blocks


def _close(said: str, start: int, close: str) -> int:
    """Where a call ends: at its first closing tag that is not inside a parameter; -1 if it does not."""
    first = stop = said.find(close, start)
    while stop >= 0:
        if _balanced(said[start:stop]):
            return stop
        stop = said.find(close, stop + len(close))
    return first


def _balanced(inside: str) -> bool:
    """Whether every parameter that is opened is closed."""
    at = 0
    while match := _PARAMETER.search(inside, at):
        stop = inside.find(f"</{match[1]}>", match.end())
        if stop < 0:
            return False
        at = stop + len(match[1]) + 3
    return True


def _parameters(inside: str) -> dict[str, str]:
    """Parameters in order; the text of one runs to the last closing tag before the next parameter's opening one."""
    given: dict[str, str] = {}
    at = 0
    while match := _PARAMETER.search(inside, at):
        close = f"</{match[1]}>"
        stop = inside.rfind(close) if match[1] in ("content", "diff", "file_text") else inside.find(close, match.end())
        if stop < match.end():
            at = match.end()
            continue
        value = inside[match.end() : stop]
        given[match[1]] = value.removeprefix("\n").removesuffix("\n")
        at = stop + len(close)
    return given
