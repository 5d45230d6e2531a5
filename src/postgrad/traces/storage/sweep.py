"""`sweep`: what the journal of a store does not name is taken out of its folder.

A row is alive as long as the journal says that its source is in its segment. The row of a source that was outgrown,
read anew, or added twice at the same moment is dead: readers pass it over, and the next `sweep` writes the segment
anew without it, so that other programs, which read the tables as they are, do not see it either. Mostly nothing is
dead, and then nothing that reads tables is loaded.
"""

from __future__ import annotations

from pathlib import Path

from postgrad.traces.storage.journal import Journal, Line

TABLES = ("records", "traces", "messages")
"""The folders with the Parquet files of a store."""


def sweep(folder: Path, journal: Journal) -> None:
    """Take out what the journal does not name: dead rows, and files that a killed process left behind."""
    alive: dict[str, list[str]] = {}
    for source in journal.sources.values():
        alive.setdefault(source.segment, []).append(source.sha256)
    for segment in [segment for segment in sorted(journal.stale) if segment in alive]:
        from postgrad.traces.storage.rewritten import rewritten

        new = rewritten(folder, segment, alive[segment])
        journal.append([Line(moved=(segment, new))])
    segments = {source.segment for source in journal.sources.values()}
    pieces = {piece.file for source in journal.sources.values() for piece in source.pieces}
    for path in [path for kind in TABLES for path in (folder / kind).glob("*") if path.stem not in segments]:
        path.unlink()
    for path in [path for path in (folder / "raw").glob("*") if path.name not in pieces]:
        path.unlink()
    for path in folder.glob(".*.tmp"):
        path.unlink()
