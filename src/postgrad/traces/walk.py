"""`walk`: from what a person names (files, folders, globs, archives) to the sources that there are to read.

A folder that a reader recognises is one source and is not gone into; so is an archive (an Inspect log is a zip file).
Any other archive is a folder of its members. Left out, unless named: hidden files and folders but those in which tools
keep traces (`.aider.chat.history.md`, `.specstory`), trace stores, what a run of ours writes of itself beside its
traces (`postgrad record`), and what a Mac adds to its archives.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from postgrad.core.errors import DataError
from postgrad.traces.sources import archive
from postgrad.traces.storage.store import Store

_HIDDEN_TRACES = (
    ".aider",
    ".specstory",
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".cline",
    ".continue",
    ".openhands",
)
_NO_ARCHIVE = frozenset({".jsonl", ".json", ".md", ".txt", ".log", ".gz", ".zst", ".py", ".db", ".vscdb"})
"""Endings of files that need not be opened to know that they are no zip archive: opening thousands takes its time."""


_OF_A_RUN = frozenset({"config.json", "environment.json"})
_ITS_OWN = _OF_A_RUN | {"inputs.json", "result.json"}
"""What every run folder of ours holds, and what else it may hold beside the verb's own files (`run.rundir`)."""


@dataclass(frozen=True)
class Found:
    """A source; `alone`: the person named this very path, so that it is a mistake if it cannot be read.

    `fault`: why there is nothing to read there.
    """

    path: Path
    alone: bool = False
    fault: str = ""


def walk(names: list[str], recognised: Callable[[Path], bool]) -> Iterator[Found]:
    """Every source once, in order.

    Args:
        names: files, folders and globs; "~" is the home folder.
        recognised: whether a folder or an archive is a source as a whole.

    Raises:
        DataError: there is nothing under a name.
    """
    seen: set[str] = set()
    folders: dict[str, str] = {}
    for name in names:
        path = Path(name).expanduser()
        empty = True
        for found in _named(path, recognised):
            empty = False
            place = _place(found.path, folders)
            if place not in seen:
                seen.add(place)
                yield found
        if empty:
            what = "the folder holds no file" if path.is_dir() else "no such file or folder"
            what = "the folder is a trace store, read already" if Store(path).exists else what
            raise DataError(what, got=name, expected="a file, a folder, an archive or a glob")


def _place(path: Path, folders: dict[str, str]) -> str:
    """The path without links; `folders` are those of which it is known already, for to ask takes its time."""
    folder, name = os.path.split(os.fspath(path))
    if name in ("", ".", "..") or path.is_symlink():
        return os.path.realpath(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    return os.path.join(folders[folder], name)


def _named(path: Path, recognised: Callable[[Path], bool]) -> Iterator[Found]:
    if path.is_dir():
        yield from _folder(path, recognised)
    elif path.exists() or _in_archive(path):
        yield from _file(path, recognised, alone=True)
    else:
        for match in sorted(glob.glob(str(path), recursive=True)):
            one = Path(match)
            yield from _folder(one, recognised) if one.is_dir() else _file(one, recognised)


def _folder(path: Path, recognised: Callable[[Path], bool]) -> Iterator[Found]:
    """A folder that is a source, or what is in it; the stack is ours, because folders can be deeper than Python's."""
    pending = [path]
    while pending:
        at = pending.pop()
        if not at.is_dir():
            yield from _file(at, recognised)
        elif not Store(at).exists:
            if recognised(at):
                yield Found(at)
                continue
            try:
                names = sorted(os.listdir(at), reverse=True)
            except OSError as error:
                yield Found(at, fault=f"cannot read the folder: {error.strerror}")
                continue
            own = _ITS_OWN if _OF_A_RUN.issubset(names) else frozenset()
            inside = (at / name for name in names if _shown(name) and name not in own)
            pending += [one for one in inside if not (one.is_symlink() and one.is_dir())]  # links can go in circles


def _file(path: Path, recognised: Callable[[Path], bool], *, alone: bool = False) -> Iterator[Found]:
    """A file, or the members of an archive; what is neither (a socket) is passed over."""
    if path.exists() and not path.is_file():
        return
    if not path.exists() and not _in_archive(path):
        if path.is_symlink():
            yield Found(path, alone, fault="the link leads nowhere")
        return
    try:
        members = archive.members(path) if path.suffix.lower() not in _NO_ARCHIVE else []
    except DataError as error:
        yield Found(path, alone, fault=str(error))
        return
    if not members or recognised(path):
        yield Found(path, alone)
        return
    for member in members:
        inside = member.relative_to(path).parts
        if all(_shown(name) for name in inside) and inside[0] != "__MACOSX":
            yield from _file(member, recognised)


def _shown(name: str) -> bool:
    return not name.startswith(".") or name.startswith(_HIDDEN_TRACES)


def _in_archive(path: Path) -> bool:
    outer = archive.archive_of(path)
    if outer is None:
        return False
    try:
        archive.entry_of(path)
    except (OSError, DataError):
        return False
    return True
