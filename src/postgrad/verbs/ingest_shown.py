"""What `ingest` shows a person: a row per source, per folder where there are many, and what it all came to.

What all rows share (their folder, their format) is said once above them. What was not read has no numbers and stands
below with the reason.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from postgrad.core.words import counted
from postgrad.verbs.tables import Rows

_COLUMNS = {
    **{"records": "records", "steps": "steps", "tool_calls": "calls", "tool_results": "results"},
    **{"calls_without_result": "open", "flagged_errors": "errors"},
}
"""What is shown of a source -> the column's name; short, for ten columns share a terminal."""
_MANY = 30  # rows; more of them nobody reads: then there is a row a folder
_SOME = 5  # of what was not read, and of notes

Source = dict[str, Any]


def shown(result: dict[str, Any]) -> RenderableType:
    """A row per source (or folder), and the sums; for a discovery a row per place."""
    if "discovered" in result:
        return _shown_places(result)
    if "rebuilt" in result:
        names = ("rebuilt", "up to date", "without raw bytes")
        numbers = (*(str(result[name]) for name in ("rebuilt", "up_to_date")), str(len(result["without_raw"])))
        return Rows(names, [numbers], numbers=names)
    read = [source for source in result["sources"] if source["format"]]
    told = [*_summary(result, read), *_notes(read), *_not_read(result["sources"], every=bool(result.get("verbose")))]
    return Group(_table(result, read), *(Text(line, overflow="fold") for line in told))


def _table(result: dict[str, Any], read: Sequence[Source]) -> Rows:
    """The numbers of every source, or of every folder where there are many; of several formats one after the other."""
    sites = Counter(site["source"] for site in result["sites"])
    many = len(read) > _MANY and not result.get("verbose")
    formats = list(dict.fromkeys(source["format"] for source in read))
    width = len(_COLUMNS) + 2 + many
    rows: list[tuple[str, ...] | None] = []
    for name in formats:
        of_format = [source for source in read if source["format"] == name]
        where, told = _rows(of_format, sites, many=many)
        if len(formats) > 1:
            rows += [None, (f"{name}{where}:", *[""] * width)]
        rows += told
    if len(read) > 1:
        rows += [None, ("all", *_numbers(read, sites, files=many))]
    columns = ("folder" if many else "source", *(("files",) if many else ()), *_COLUMNS.values(), "sites", "notes")
    what = f"{counted(len(read), 'source')}{f' of {formats[0]}{where}' if len(formats) == 1 else ''}"
    return Rows(columns, rows, title=f"{what}: {_found(result)}", numbers=columns[1:], flexible=columns[:1])


def _rows(read: Sequence[Source], sites: Counter[str], *, many: bool) -> tuple[str, list[tuple[str, ...]]]:
    """The folder that all lie in, to be said once (" in FOLDER"), and a row a source or folder."""
    groups = _by_folder(read) if many else [(source["path"], [source]) for source in read]
    base = _common_folder(read) if len(groups) > 1 else ""
    names = (os.path.relpath(path, base) if base else path for path, _ in groups)
    rows = [(name, *_numbers(group, sites, files=many)) for name, (_, group) in zip(names, groups, strict=True)]
    return f" in {base}" if base else "", rows


def _numbers(group: Sequence[Source], sites: Counter[str], *, files: bool) -> list[str]:
    found = sum(sites[source["path"]] for source in group)
    notes = sum(len(source["diagnostics"]) for source in group)
    sums = [sum(source[name] for source in group) for name in _COLUMNS]
    return [str(number) for number in [*([len(group)] if files else []), *sums, found, notes]]


def _found(result: dict[str, Any]) -> str:
    return f"{counted(len(result['sites']), 'error site')}, {counted(sum(result['redactions'].values()), 'redaction')}"


def _common_folder(sources: Sequence[Source]) -> str:
    """The folder that all sources lie in; empty where that says nothing."""
    try:
        common = os.path.commonpath([os.path.dirname(source["path"]) or "." for source in sources])
    except ValueError:  # absolute and relative names
        return ""
    return "" if common in (".", os.sep) else common


def _by_folder(sources: Sequence[Source]) -> list[tuple[str, list[Source]]]:
    """Sources together by folder; by outer folders where there would be more than `_MANY` rows."""
    paths = [Path(source["path"]).parent.parts for source in sources]
    for depth in range(max(map(len, paths)), -1, -1):
        groups: dict[tuple[str, ...], list[Source]] = {}
        for parts, source in zip(paths, sources, strict=True):
            groups.setdefault(parts[:depth], []).append(source)
        if len(groups) <= _MANY or depth <= 1:
            break
    return [(str(Path(*parts)), group) for parts, group in groups.items()]


def _summary(result: dict[str, Any], read: Sequence[Source]) -> Iterator[str]:
    """How well the contexts are known, what the error sites came to, which sessions were read twice, what is next."""
    verdicts = Counter(site["verdict"] for site in result["sites"])
    rules = Counter(site["rule"] for site in result["sites"])
    rows = {
        "contexts": list(result["fidelity"].items()),
        "verdicts": verdicts.most_common(),
        "rules": rules.most_common(),
    }
    for name, counts in rows.items():
        if counts:
            yield f"{name}: {', '.join(f'{count} {word}' for word, count in counts)}"
    yield from _repeated(read)
    if "store" in result:
        yield f"store: {result['store']} (postgrad show {result['store']})"


def _repeated(read: Sequence[Source]) -> Iterator[str]:
    """Why the store may hold less than the sources together: what several traces of a session share is kept once."""
    ids = Counter(trace["id"] for source in read for trace in source.get("traces", ()))
    again = {name: count for name, count in ids.items() if count > 1}
    if again:
        are = f"{sum(again.values())} of {counted(ids.total(), 'trace')} are of {counted(len(again), 'session')}"
        yield f"{are}, copied, resumed or forked: what they share is kept once"


def _notes(read: Sequence[Source]) -> Iterator[str]:
    """The first things that could not be read as they should."""
    notes = [note for source in read for note in source["diagnostics"]]
    for note in notes[:_SOME]:
        line = f":{note['line']}" if note.get("line") is not None else ""
        yield f"note: {note['file']}{line}: {note['what']}; {note['done']}"
    if more := len(notes) - _SOME:
        yield from [f"and {counted(more, 'note')} more (--json has them all)"] if more > 0 else []


def _not_read(sources: Sequence[Source], *, every: bool) -> Iterator[str]:
    refused = [source for source in sources if not source["format"]]
    if not refused:
        return
    yield f"not read: {len(refused)} of {counted(len(sources), 'source')}"
    told = refused if every else refused[:_SOME]
    for source in told:
        yield f"  {source['path']}: {'; '.join(note['what'] for note in source['diagnostics'])}"
    if more := len(refused) - len(told):
        yield f"  and {more} more (--verbose)"


def _shown_places(result: dict[str, Any]) -> Rows:
    rows = [
        (place["app"], place["path"], str(place["files"]), f"{place['bytes'] / 1e6:.1f}")
        for place in result["discovered"]
    ]
    columns, title = ("application", "path", "files", "MB"), "read" if result["read"] else "found, not read"
    return Rows(columns, rows, title=title, numbers=columns[2:], flexible=("path",))
