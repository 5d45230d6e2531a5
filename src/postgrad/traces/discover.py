"""`find_places`: where agents keep their sessions on this machine, by the tools' own defaults and variables.

Each tool has folders or files below a base: the home folder, the XDG data folder, an editor's global storage. A
variable that the tool itself honours (`CLAUDE_CONFIG_DIR`, `CODEX_HOME`, ...) replaces its base. Nothing is read here
but names and sizes. Not covered: folders of projects, in which Aider and SpecStory write (the home folder's are found).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

_EDITORS: Final = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS: Final = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server")


@dataclass(frozen=True)
class Place:
    """A folder or file with traces: which application's, how many files and bytes."""

    app: str
    path: Path
    files: int
    size: int

    def shown(self) -> dict[str, Any]:
        """Plain data."""
        return {"app": self.app, "path": str(self.path), "files": self.files, "bytes": self.size}


@dataclass(frozen=True)
class _Spot:
    """Where one application writes: paths below a base, and the names of the files that count.

    `variable`: an environment variable that names the base instead.
    """

    app: str
    base: str
    paths: tuple[str, ...]
    names: tuple[str, ...] = ("*.jsonl", "*.json")
    variable: str = ""


_SPOTS: Final = (
    _Spot("claude-code", "home/.claude", ("projects",), variable="CLAUDE_CONFIG_DIR"),
    _Spot("claude-code", "config/claude", ("projects",)),
    _Spot("codex-cli", "home/.codex", ("sessions", "archived_sessions"), ("*.jsonl", "*.jsonl.zst"), "CODEX_HOME"),
    _Spot("gemini-cli", "home/.gemini", ("tmp",), variable="GEMINI_DIR"),
    _Spot("qwen-code", "home/.qwen", ("tmp", "projects")),
    _Spot("opencode", "data/opencode", ("storage", "opencode.db"), ("*.json", "*.db")),
    _Spot("cline", "home/.cline", ("data/sessions", "data/tasks")),
    _Spot("cline", "storage", ("saoudrizwan.claude-dev/tasks",)),
    _Spot("roo-code", "storage", ("rooveterinaryinc.roo-cline/tasks",)),
    _Spot("kilo-code", "storage", ("kilocode.kilo-code/tasks",)),
    _Spot("cursor", "editor", ("globalStorage/state.vscdb",), ("*.vscdb",)),
    _Spot("cursor-cli", "home/.cursor", ("projects",)),
    _Spot("copilot-chat", "editor", ("workspaceStorage/*/chatSessions", "globalStorage/emptyWindowChatSessions")),
    _Spot("copilot-cli", "home/.copilot", ("session-state", "history-session-state"), variable="COPILOT_HOME"),
    _Spot("continue", "home/.continue", ("sessions", "dev_data"), variable="CONTINUE_GLOBAL_DIR"),
    _Spot("goose", "data/goose", ("sessions",), ("*.jsonl", "*.db")),
    _Spot("goose", "appdata/Block/goose/data", ("sessions",), ("*.jsonl", "*.db")),
    _Spot("openhands", "home/.openhands", ("sessions", "conversations"), variable="OH_PERSISTENCE_DIR"),
    _Spot("mini-swe-agent", "config/mini-swe-agent", (".",), ("*.traj.json",), "MSWEA_GLOBAL_CONFIG_DIR"),
    _Spot("aider", "home", (".aider.chat.history.md", ".aider.llm.history"), ("*.md", "*.history")),
    _Spot("inspect", "home", ("logs",), ("*.eval",), "INSPECT_LOG_DIR"),
)


def find_places(
    *, home: Path | None = None, environment: Mapping[str, str] | None = None, platform: str = sys.platform
) -> list[Place]:
    """The places that hold at least one file of traces, in the order of the applications.

    Args:
        home: the home folder, this user's if None.
        environment: the variables, this process's if None.
        platform: as `sys.platform` says it: "linux", "darwin", "win32".
    """
    home = Path.home() if home is None else home
    variables = os.environ if environment is None else environment
    found: dict[Path, Place] = {}
    for spot in _SPOTS:
        for base in _bases(spot, home, variables, platform):
            for path in _matches(base, spot.paths):
                place = _counted(spot, path)
                if place.files:
                    found.setdefault(path, place)
    return list(found.values())


def _bases(spot: _Spot, home: Path, variables: Mapping[str, str], platform: str) -> Iterator[Path]:
    if spot.variable and variables.get(spot.variable):
        # Claude Code allows several folders in its variable, joined by commas.
        for name in variables[spot.variable].split(","):
            yield Path(name.strip()).expanduser()
        return
    kind, _, rest = spot.base.partition("/")
    for base in _roots(kind, home, variables, platform):
        yield base / rest if rest else base


def _roots(kind: str, home: Path, variables: Mapping[str, str], platform: str) -> list[Path]:
    """What a base begins with, on this platform; several where a tool's habits changed."""
    roaming = Path(variables.get("APPDATA") or home / "AppData" / "Roaming")
    local = Path(variables.get("LOCALAPPDATA") or home / "AppData" / "Local")
    config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    data = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    library = home / "Library" / "Application Support"
    if kind == "home":
        return [home]
    if kind == "config":
        return {"darwin": [config, library], "win32": [config, roaming]}.get(platform, [config])
    if kind == "data":
        return {"darwin": [data, library], "win32": [data, local, roaming]}.get(platform, [data])
    if kind == "appdata":
        return [roaming] if platform == "win32" else []
    above = {"darwin": library, "win32": roaming}.get(platform, config)
    editors = [above / name / "User" for name in _EDITORS] + [home / name / "data" / "User" for name in _SERVERS]
    return editors if kind == "editor" else [editor / "globalStorage" for editor in editors]


def _matches(base: Path, paths: tuple[str, ...]) -> Iterator[Path]:
    for pattern in paths:
        if pattern == ".":
            yield base
        elif "*" in pattern:
            yield from sorted(base.glob(pattern))
        else:
            yield base / pattern


def _counted(spot: _Spot, path: Path) -> Place:
    """Files and bytes of those names; what cannot be looked at counts as nothing."""
    files = size = 0
    for file in _files(path):
        if any(fnmatch(file.name, name) for name in spot.names):
            try:
                size += file.stat().st_size
                files += 1
            except OSError:
                continue
    return Place(spot.app, path, files, size)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, _, names in os.walk(path):
        yield from (Path(folder) / name for name in names)
