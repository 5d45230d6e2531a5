"""Small files of coding agents, one valid source a format, for the tests of their readers.

`WRITERS` maps a format to a function that writes such a source into a folder and returns its path. Every one of them
is one user's request, one answer with a call, its result, and a last answer: two steps, one call, one result.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def write_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def database(path: Path, script: str, rows: dict[str, list[tuple[Any, ...]]]) -> Path:
    """A new SQLite database: its tables, and rows by the statement that inserts them."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("pragma synchronous = off")
    connection.executescript(script)
    for statement, values in rows.items():
        connection.executemany(statement, values)
    connection.commit()
    connection.close()
    return path


# OpenHands up to 0.x


def run_action(number: int, response: str, call: str, command: str) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {
                "id": call,
                "type": "function",
                "function": {"name": "execute_bash", "arguments": json.dumps({"command": command})},
            }
        ],
    }
    return {
        "id": number,
        "timestamp": f"2025-04-30T10:00:{number:02d}",
        "source": "agent",
        "action": "run",
        "args": {"command": command, "thought": "Let me look."},
        "tool_call_metadata": {
            "function_name": "execute_bash",
            "tool_call_id": call,
            "total_calls_in_response": 1,
            "model_response": {
                "id": response,
                "model": "model-1",
                "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 3},
            },
        },
    }


def run_observation(number: int, cause: int, text: str, code: int) -> dict[str, Any]:
    extras = {"command": "ls", "metadata": {"exit_code": code, "suffix": f"\n[The command completed with {code}.]"}}
    return {"id": number, "source": "agent", "observation": "run", "cause": cause, "content": text, "extras": extras}


def says(number: int, source: str, text: str) -> dict[str, Any]:
    return {"id": number, "source": source, "action": "message", "args": {"content": text}}


def openhands_events() -> list[dict[str, Any]]:
    return [
        says(0, "user", "List the files"),
        run_action(2, "r1", "c1", "ls"),
        run_observation(3, 2, "a.txt", 0),
        says(4, "agent", "There is a.txt."),
    ]


# OpenHands V1


def sdk_event(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"kind": kind, "id": name, "timestamp": "2026-01-28T14:33:09", **rest}


def sdk_action(name: str, response: str, call: str, arguments: str, **rest: Any) -> dict[str, Any]:
    return sdk_event(
        "ActionEvent",
        name,
        source="agent",
        tool_name="terminal",
        tool_call_id=call,
        tool_call={"id": call, "name": "terminal", "arguments": arguments},
        llm_response_id=response,
        **{"thought": [], "action": {"kind": "TerminalAction"}, **rest},
    )


def sdk_observation(name: str, action: str, call: str, text: str, **rest: Any) -> dict[str, Any]:
    seen = {"content": [{"type": "text", "text": text}], "is_error": False, **rest}
    return sdk_event(
        "ObservationEvent", name, source="environment", action_id=action, tool_call_id=call, observation=seen
    )


def sdk_message(name: str, role: str, text: str) -> dict[str, Any]:
    source = "agent" if role == "assistant" else "user"
    content = [{"type": "text", "text": text}]
    return sdk_event("MessageEvent", name, source=source, llm_message={"role": role, "content": content})


def sdk_events() -> list[dict[str, Any]]:
    return [
        sdk_message("m1", "user", "List the files"),
        sdk_action("a1", "r1", "c1", '{"command": "ls"}'),
        sdk_observation("o1", "a1", "c1", "a.txt", exit_code=0),
        sdk_message("m2", "assistant", "There is a.txt."),
    ]


# SWE-agent and mini-swe-agent


def swe_agent_run() -> dict[str, Any]:
    steps = [
        {
            "action": "ls -F\n",
            "observation": "a.txt",
            "response": "Let me look.\n```\nls -F\n```",
            "thought": "Let me look.\n",
        },
        {"action": "", "observation": "", "response": "There is a.txt.", "thought": "There is a.txt."},
    ]
    history = [
        {"role": "system", "content": "You are an agent.", "agent": "primary"},
        {"role": "user", "content": "List the files", "agent": "primary"},
        {"role": "assistant", "content": steps[0]["response"], "action": "ls -F\n", "agent": "primary"},
        {"role": "user", "content": "a.txt", "agent": "primary"},
        {"role": "assistant", "content": "There is a.txt.", "action": "", "agent": "primary"},
    ]
    return {"environment": "main", "trajectory": steps, "history": history, "info": {"exit_status": "submitted"}}


def mini_messages() -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "Answer with one bash block."},
        {"role": "user", "content": "List the files"},
        {"role": "assistant", "content": "Let me look.\n\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.txt\n</output>"},
        {"role": "assistant", "content": "There is a.txt."},
    ]


# Cline


def cline_history() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": [{"type": "text", "text": "<task>\nList the files\n</task>"}], "ts": 1767225600000},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Let me look.\n<list_files>\n<path>.</path>\n</list_files>"}],
            "ts": 1767225601000,
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[list_files for '.'] Result:"},
                {"type": "text", "text": "a.txt"},
                {"type": "text", "text": "<environment_details>\nnow\n</environment_details>"},
            ],
            "ts": 1767225602000,
        },
        {"role": "assistant", "content": [{"type": "text", "text": "There is a.txt."}], "ts": 1767225603000},
    ]


# Aider


# Aider ends its own lines with two blanks; here a ~ stands for them.
AIDER_CHAT = """
# aider chat started at 2024-08-05 19:33:32

> Aider v0.47.2~
> Model: gpt-4o with diff edit format~

#### Add a line~

Certainly, `a.py`:

```python
<<<<<<< SEARCH
#### not the user
> not the tool
=======
x = 1
>>>>>>> REPLACE
```

> Tokens: 5,244 sent, 604 received. Cost: $0.02 request, $0.02 session.~
> Applied edit to a.py~
> Commit fd43cd4 feat: Add a line~

#### thanks~

You are welcome.
""".replace("~", "  ")
AIDER_LOG = """TO LLM 2024-08-05T19:33:32
-------
SYSTEM Act as an expert.
-------
USER hi
LLM RESPONSE 2024-08-05T19:33:40
ASSISTANT Hello
ASSISTANT there
TO LLM 2024-08-05T19:34:32
-------
SYSTEM Act as an expert.
-------
USER hi
-------
ASSISTANT Hello
ASSISTANT there
-------
USER more
LLM RESPONSE 2024-08-05T19:34:40
ASSISTANT Bye
"""


# Copilot CLI, Cursor CLI


def copilot_rows() -> list[dict[str, Any]]:
    def row(name: str, kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data, "id": name, "timestamp": "2026-01-05T00:00:00.000Z", "parentId": None}

    request = {"toolCallId": "c1", "name": "shell", "arguments": '{"command": "ls"}'}
    return [
        row("e1", "session.start", sessionId="s1", copilotVersion="1.0.77"),
        row("e2", "user.message", content="List the files", transformedContent="List the files"),
        row("e3", "assistant.message", content="Let me look.", toolRequests=[request], messageId="m1", model="gpt-5"),
        row("e4", "tool.execution_start", toolCallId="c1", toolName="shell"),
        row("e5", "tool.execution_complete", toolCallId="c1", success=True, result={"content": "a.txt"}),
        row("e6", "assistant.message", content="There is a.txt.", toolRequests=[], messageId="m2", outputTokens=3),
    ]


def cursor_rows() -> list[dict[str, Any]]:
    use = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.txt"}]}
    return [
        {"role": "user", "message": {"content": "<user_query>\nList the files\n</user_query>"}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "Let me look."}, use]}},
        {"role": "user", "message": {"content": [result]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "There is a.txt."}]}},
        {"type": "turn_ended", "status": "success"},
    ]


# VS Code chat


def vscode_session() -> dict[str, Any]:
    rounds = [
        {
            "response": "Let me look.",
            "toolCalls": [{"id": "c1", "name": "list_dir", "arguments": '{"path": "."}'}],
            "thinking": {"text": "Hm."},
        },
        {"response": "There is a.txt.", "toolCalls": []},
    ]
    results = {"c1": {"content": [{"$mid": 21, "value": "a.txt"}]}}
    metadata = {"toolCallRounds": rounds, "toolCallResults": results, "promptTokens": 100, "outputTokens": 7}
    request = {
        "requestId": "q1",
        "message": {"text": "List the files", "parts": []},
        "response": [{"kind": "toolInvocationSerialized", "toolId": "list_dir", "isConfirmed": True}],
        "result": {"metadata": metadata},
        "modelId": "copilot/gpt-5",
        "timestamp": 1767225600000,
        "vote": 1,
    }
    return {"version": 3, "sessionId": "v1", "requesterUsername": "u", "creationDate": 1, "requests": [request]}


# Continue


def continue_session() -> dict[str, Any]:
    made = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"dir": "."}'}}
    state = {"toolCallId": "c1", "toolCall": made, "status": "done", "output": [{"name": "ls", "content": "a.txt"}]}
    return {
        "sessionId": "k1",
        "title": "files",
        "history": [
            {"message": {"role": "user", "content": "List the files"}, "contextItems": []},
            {
                "message": {"role": "assistant", "content": "Let me look.", "toolCalls": [made]},
                "contextItems": [],
                "toolCallStates": [state],
            },
            {"message": {"role": "tool", "content": "a.txt", "toolCallId": "c1"}, "contextItems": []},
            {"message": {"role": "assistant", "content": "There is a.txt."}, "contextItems": []},
        ],
    }


def continue_events() -> list[dict[str, Any]]:
    own = {"schema": "0.2.0", "userAgent": "vscode", "selectedProfileId": "local"}
    prompt = "<system>\nBe brief.\n\n<user>\nList the files\n\n"
    first = {"eventName": "chatInteraction", "sessionId": "k1", "prompt": prompt, "completion": "Let me look."}
    tool = {"eventName": "toolUsage", "functionName": "ls", "toolCallArgs": '{"dir": "."}', "accepted": True}
    return [{**first, **own}, {**tool, **own, "succeeded": True, "output": [{"content": "a.txt"}]}]


# Databases


GOOSE_TABLES = """
create table sessions(id text primary key, name text, session_type text, model_config_json text);
create table messages(id integer primary key, message_id text, session_id text, role text, content_json text,
                      created_timestamp integer, metadata_json text);
"""


def goose_messages() -> list[dict[str, Any]]:
    request = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "ls"}}}
    response = {"status": "success", "value": [{"type": "text", "text": "a.txt"}]}
    return [
        goose_message("user", {"type": "text", "text": "List the files"}),
        goose_message(
            "assistant",
            {"type": "text", "text": "Let me look."},
            {"type": "toolRequest", "id": "c1", "toolCall": request},
        ),
        goose_message("user", {"type": "toolResponse", "id": "c1", "toolResult": response}),
        goose_message("assistant", {"type": "text", "text": "There is a.txt."}),
    ]


def goose_message(role: str, *content: dict[str, Any], **metadata: bool) -> dict[str, Any]:
    return {"role": role, "created": 1750000000, "content": list(content), "metadata": metadata}


def goose_database(path: Path, messages: list[dict[str, Any]], session: str = "g1") -> Path:
    rows = [(session, m["role"], json.dumps(m["content"]), m["created"], json.dumps(m["metadata"])) for m in messages]
    insert = (
        "insert into messages(session_id, role, content_json, created_timestamp, metadata_json) values(?, ?, ?, ?, ?)"
    )
    own = {"insert into sessions values(?, ?, ?, ?)": [(session, "files", "user", '{"model_name": "gpt-5"}')]}
    return database(path, GOOSE_TABLES, {**own, insert: rows})


CURSOR_TABLES = """
create table ItemTable(key text unique on conflict replace, value blob);
create table cursorDiskKV(key text unique on conflict replace, value blob);
"""


def cursor_bubbles() -> dict[str, dict[str, Any]]:
    tool = {
        "name": "list_dir",
        "toolCallId": "c1",
        "rawArgs": '{"path": "."}',
        "status": "completed",
        "result": '{"files": ["a.txt"]}',
    }
    return {
        "b1": {"type": 1, "text": "List the files"},
        "b2": {"type": 2, "text": "Let me look.", "thinking": {"text": "Hm.", "signature": "s"}},
        "b3": {"type": 2, "text": "", "toolFormerData": tool},
        "b4": {"type": 2, "text": "There is a.txt.", "tokenCount": {"inputTokens": 9, "outputTokens": 4}},
    }


def cursor_database(path: Path, bubbles: dict[str, dict[str, Any]], **composer: Any) -> Path:
    headers = [{"bubbleId": name, "type": bubble["type"]} for name, bubble in bubbles.items()]
    value = {"composerId": "k", "modelConfig": {"modelName": "model-1"}, "fullConversationHeadersOnly": headers}
    rows: list[tuple[Any, ...]] = [("composerData:k", json.dumps({**value, **composer})), ("checkpointId:k:1", None)]
    rows += [(f"bubbleId:k:{name}", json.dumps(bubble)) for name, bubble in bubbles.items()]
    return database(path, CURSOR_TABLES, {"insert into cursorDiskKV values(?, ?)": rows})


ZED_TABLES = """
create table threads(id text primary key, summary text, updated_at text, data_type text, data blob, parent_id text);
"""


def zed_thread() -> dict[str, Any]:
    use = {"id": "c1", "name": "list_directory", "raw_input": '{"path": "."}', "input": {"path": "."}}
    result = {"tool_use_id": "c1", "tool_name": "list_directory", "is_error": False, "content": {"Text": "a.txt"}}
    return {
        "version": "0.3.0",
        "title": "files",
        "model": {"provider": "zed.dev", "model": "model-1"},
        "messages": [
            {"User": {"id": "u1", "content": [{"Text": "List the files"}]}},
            {"Agent": {"content": [{"Text": "Let me look."}, {"ToolUse": use}], "tool_results": {"c1": result}}},
            {"Agent": {"content": [{"Text": "There is a.txt."}], "tool_results": {}}},
        ],
    }


SPECSTORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# 2026-01-16 16:48:38Z

<!-- Claude Code Session e317d7b9-0000 (2026-01-16 16:48:38Z) -->

_**User (2026-01-16 16:48:38Z)**_

List the files

---

_**Agent (claude-opus 2026-01-16 16:48:43Z)**_

<think><details><summary>Thought Process</summary>
Hm.
</details></think>

_**Agent (claude-opus 2026-01-16 16:48:44Z)**_

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>
 `ls`

```text
a.txt
_**User (2026-01-16 16:48:38Z)**_
```
</details></tool-use>

_**Agent (claude-opus 2026-01-16 16:48:50Z)**_

There is a.txt.

---
"""


def _text(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def _openhands_folder(folder: Path) -> Path:
    for event in openhands_events():
        write_json(folder / "session" / "events" / f"{event['id']}.json", event)
    return folder / "session"


def _sdk_folder(folder: Path) -> Path:
    for number, event in enumerate(sdk_events()):
        write_json(folder / "talk" / "events" / f"event-{number:05d}-{event['id']}.json", event)
    write_json(folder / "talk" / "base_state.json", {"id": "talk"})
    return folder / "talk"


def _cline_task(folder: Path) -> Path:
    write_json(folder / "task" / "api_conversation_history.json", cline_history())
    write_json(folder / "task" / "ui_messages.json", [{"ts": 1767225600000, "type": "say", "say": "text", "text": "x"}])
    return folder / "task"


def _zed(folder: Path) -> Path:
    rows = [("z1", "files", "2026-01-01T00:00:00+00:00", "json", json.dumps(zed_thread()), None)]
    return database(folder / "threads.db", ZED_TABLES, {"insert into threads values(?, ?, ?, ?, ?, ?)": rows})


def _swe_agent(folder: Path) -> Path:
    return write_json(folder / "run.traj", swe_agent_run())


WRITERS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "openhands document": ("openhands", lambda folder: write_json(folder / "trajectory.json", openhands_events())),
    "openhands folder": ("openhands", _openhands_folder),
    "openhands evaluation": (
        "openhands",
        lambda folder: write_lines(folder / "output.jsonl", [{"instance_id": "i", "history": openhands_events()}]),
    ),
    "openhands_v1 lines": ("openhands_v1", lambda folder: write_lines(folder / "events.jsonl", sdk_events())),
    "openhands_v1 document": ("openhands_v1", lambda folder: write_json(folder / "e.json", {"items": sdk_events()})),
    "openhands_v1 folder": ("openhands_v1", _sdk_folder),
    "swe_agent": ("swe_agent", _swe_agent),
    "mini_swe_agent": ("mini_swe_agent", lambda folder: write_json(folder / "run.traj.json", mini_messages())),
    "cline history": ("cline", lambda folder: write_json(folder / "api_conversation_history.json", cline_history())),
    "cline task": ("cline", _cline_task),
    "cline session": (
        "cline",
        lambda folder: write_json(
            folder / "s.messages.json",
            {"version": 1, "agent": "lead", "sessionId": "s", "system_prompt": "Be.", "messages": cline_history()},
        ),
    ),
    "aider": ("aider", _text(".aider.chat.history.md", AIDER_CHAT)),
    "aider_llm": ("aider_llm", _text(".aider.llm.history", AIDER_LOG)),
    "copilot_cli": ("copilot_cli", lambda folder: write_lines(folder / "events.jsonl", copilot_rows())),
    "cursor_cli": ("cursor_cli", lambda folder: write_lines(folder / "chat.jsonl", cursor_rows())),
    "vscode_chat document": ("vscode_chat", lambda folder: write_json(folder / "chat.json", vscode_session())),
    "vscode_chat log": (
        "vscode_chat",
        lambda folder: write_lines(folder / "chat.jsonl", [{"kind": 0, "v": vscode_session()}]),
    ),
    "continue": ("continue", lambda folder: write_json(folder / "k1.json", continue_session())),
    "continue_dev_data": (
        "continue_dev_data",
        lambda folder: write_lines(folder / "chatInteraction.jsonl", continue_events()),
    ),
    "goose lines": (
        "goose",
        lambda folder: write_lines(folder / "g.jsonl", [{"id": "g1", "working_dir": "/w"}, *goose_messages()]),
    ),
    "goose database": ("goose", lambda folder: goose_database(folder / "sessions.db", goose_messages())),
    "cursor": ("cursor", lambda folder: cursor_database(folder / "state.vscdb", cursor_bubbles())),
    "zed": ("zed", _zed),
    "specstory": ("specstory", _text("2026-01-16.md", SPECSTORY)),
}
