"""What `ingest` shows a person: a row per source, per folder where there are many, and what it all came to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from postgrad.core.words import counted
from postgrad.verbs.tables import Rows

_COLUMNS = {
    **{"records": "records", "steps": "steps", "tool_calls": "calls", "tool_results": "results"},
    **{"calls_without_result": "open", "flagged_errors": "errors"},
}
"""What is shown of a source -> the column's name; short, for ten columns share a terminal."""
_MANY = 30  # rows; more of them nobody reads: then there is a row a folder


def shown(result: dict[str, Any]) -> RenderableType:
    """A row per source (or folder), and the sums; for a discovery a row per place."""
    if "discovered" in result:
        return _shown_places(result)
    if "rebuilt" in result:
        table = Table("rebuilt", "up to date", "without raw bytes")
        table.add_row(*(str(result[name]) for name in ("rebuilt", "up_to_date")), str(len(result["without_raw"])))
        return table
    return _shown_sources(result)


def _shown_sources(result: dict[str, Any]) -> RenderableType:
    sources = result["sources"]
    if len(sources) > _MANY and not result.get("verbose"):
        return _shown_folders(result)
    sites = Counter(site["source"] for site in result["sites"])
    columns = ("path", "format", *_COLUMNS.values(), "sites", "notes")
    rows: list[tuple[str, ...] | None] = []
    for source in sources:
        cells = [source[name] for name in _COLUMNS] + [sites[source["path"]], len(source["diagnostics"])]
        rows.append((source["path"], source["format"] or "not recognised", *map(str, cells)))
    if len(sources) > 1:
        rows += [None, ("all", "", *map(str, _sums(sources)), str(sites.total()), "")]
    table = Rows(columns, rows, title=_title(result), numbers=columns[2:], flexible=columns[:1])
    return Group(table, Text(_brief(result)))


def _shown_folders(result: dict[str, Any]) -> Table:
    """A row per folder and format; the numbers keep their width, the folder's name gives way."""
    sources, sites = result["sources"], Counter(site["source"] for site in result["sites"])
    table = Table(title=_title(result), caption=_brief(result) + "\nEvery source: --verbose, or --json", padding=(0, 0))
    table.add_column("folder, format", overflow="fold", ratio=1)
    for name in ("files", *_COLUMNS.values(), "sites", "notes"):
        table.add_column(name, justify="right", no_wrap=True)
    groups = [(f"{name} {group[0]['format'] or 'not recognised'}", group) for name, group in _by_folder(sources)]
    for name, group in [*groups, ("all", sources)]:
        if group is sources:
            table.add_section()
        found = sum(sites[source["path"]] for source in group)
        notes = sum(len(source["diagnostics"]) for source in group)
        table.add_row(name, str(len(group)), *map(str, [*_sums(group), found, notes]))
    return table


def _title(result: dict[str, Any]) -> str:
    return f"{counted(len(result['sites']), 'error site')}, {counted(sum(result['redactions'].values()), 'redaction')}"


def _sums(sources: list[dict[str, Any]]) -> list[int]:
    return [sum(source[name] for source in sources) for name in _COLUMNS]


def _by_folder(sources: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Sources together by folder and format; by outer folders where there would be more than `_MANY` rows."""
    paths = [Path(source["path"]).parent.parts for source in sources]
    for depth in range(max(map(len, paths)), 0, -1):
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for parts, source in zip(paths, sources, strict=True):
            groups.setdefault((parts[:depth], source["format"]), []).append(source)
        if len(groups) <= _MANY or depth == 1:
            break
    return [(str(Path(*parts)), group) for (parts, _), group in groups.items()]


def _brief(result: dict[str, Any]) -> str:
    """How well the contexts are known, and what the error sites came to: verdicts, and the rules that found them."""
    verdicts = Counter(site["verdict"] for site in result["sites"])
    rules = Counter(site["rule"] for site in result["sites"])
    rows = {
        "contexts": list(result["fidelity"].items()),
        "verdicts": verdicts.most_common(),
        "rules": rules.most_common(),
    }
    told = (
        f"{name}: {', '.join(f'{count} {word}' for word, count in counts)}" for name, counts in rows.items() if counts
    )
    return "\n".join(told)


def _shown_places(result: dict[str, Any]) -> Table:
    table = Table(title="read" if result["read"] else "found, not read")
    for name in ("application", "path", "files", "MB"):
        table.add_column(name, justify="left" if name in ("application", "path") else "right")
    for place in result["discovered"]:
        table.add_row(place["app"], place["path"], str(place["files"]), f"{place['bytes'] / 1e6:.1f}")
    return table
