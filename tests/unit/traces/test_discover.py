"""Where agents keep their sessions: a made-up home folder per platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgrad.traces.discover import Place, find_places

LINUX = {
    ".claude/projects/p/s.jsonl": "claude-code",
    ".codex/sessions/2026/01/01/rollout-x.jsonl": "codex-cli",
    ".gemini/tmp/abc/chats/session-1.json": "gemini-cli",
    ".local/share/opencode/opencode.db": "opencode",
    ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json": "cline",
    ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/1/ui_messages.json": "roo-code",
    ".config/Code/User/workspaceStorage/h/chatSessions/1.json": "copilot-chat",
    ".config/Cursor/User/globalStorage/state.vscdb": "cursor",
    ".copilot/session-state/1/events.jsonl": "copilot-cli",
    ".continue/sessions/1.json": "continue",
    ".local/share/goose/sessions/sessions.db": "goose",
    ".openhands/conversations/1/base_state.json": "openhands",
    ".aider.chat.history.md": "aider",
}
MAC = {
    ".claude/projects/p/s.jsonl": "claude-code",
    "Library/Application Support/Cursor/User/globalStorage/state.vscdb": "cursor",
    "Library/Application Support/Code/User/globalStorage/kilocode.kilo-code/tasks/1/a.json": "kilo-code",
}
WINDOWS = {
    ".claude/projects/p/s.jsonl": "claude-code",
    "AppData/Roaming/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/a.json": "cline",
    "AppData/Roaming/Block/goose/data/sessions/sessions.db": "goose",
    "AppData/Local/opencode/storage/session/a.json": "opencode",
}


def home_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"12345")
    return folder


@pytest.mark.parametrize(("platform", "files"), [("linux", LINUX), ("darwin", MAC), ("win32", WINDOWS)])
def test_the_usual_places(tmp_path: Path, platform: str, files: dict[str, str]) -> None:
    home = home_with(tmp_path, *files, ".claude/settings.json", "notes.md")
    places = find_places(home=home, environment={}, platform=platform)
    assert sorted(place.app for place in places) == sorted(files.values())
    assert all((place.files, place.size) == (1, 5) for place in places)
    assert all(any((home / name).is_relative_to(place.path) for name in files) for place in places)


def test_variables_of_the_tools_replace_their_places(tmp_path: Path) -> None:
    home = home_with(tmp_path / "home", ".claude/projects/p/s.jsonl", ".codex/sessions/a.jsonl")
    other = home_with(tmp_path / "other", "projects/p/s.jsonl", "opencode/opencode.db", "sessions/b.jsonl.zst")
    variables = {
        "CLAUDE_CONFIG_DIR": f"{other},{tmp_path / 'none'}",
        "CODEX_HOME": str(other),
        "XDG_DATA_HOME": str(other),
    }
    places = find_places(home=home, environment=variables, platform="linux")
    assert [(place.app, str(place.path.relative_to(other))) for place in places] == [
        ("claude-code", "projects"),
        ("codex-cli", "sessions"),
        ("opencode", "opencode/opencode.db"),
    ]


def test_an_empty_home_has_no_places(tmp_path: Path) -> None:
    assert find_places(home=tmp_path, environment={}, platform="linux") == []


def test_files_and_bytes_are_counted(tmp_path: Path) -> None:
    home = home_with(tmp_path, ".claude/projects/a/1.jsonl", ".claude/projects/b/2.jsonl", ".claude/projects/b/x.png")
    (place,) = find_places(home=home, environment={}, platform="linux")
    assert place == Place("claude-code", home / ".claude" / "projects", 2, 10)
