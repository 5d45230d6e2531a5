"""How a run folder and an artifact are printed: what the verb itself prints at its end, the last metrics, plain facts.

Plain facts are YAML, as recipes are written, and no Python: a person reads them without knowing the language.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import yaml
from rich.console import Group, RenderableType
from rich.text import Text

from postgrad.core.artifact import MANIFEST
from postgrad.core.words import counted
from postgrad.verbs import VERBS
from postgrad.verbs.stages_table import show as show_stages
from postgrad.verbs.tables import Rows

WIDTH = 80
"""Characters that the table of metrics may take; the file has the values that do not fit."""


def run_shown(result: Mapping[str, Any]) -> RenderableType:
    """A run: its state, what came out or its stages, the tail of its metrics, its verdict."""
    state = "complete" if result["complete"] else "not complete"
    parts: list[RenderableType] = [Text(f"{result['path']}: {result['verb']}, {state}", overflow="fold")]
    if result["stages"]:
        parts.append(_stages(result))
    elif result["result"]:
        parts.append(_as_its_verb_shows(result["verb"], result["result"]))
    if not result["complete"] and result["verb"] in VERBS:
        parts.append(Text(f"to go on: postgrad {result['verb']} --resume {result['path']}", overflow="fold"))
    if result["metrics"]["lines"]:
        parts.append(_metrics(result["metrics"]))
    if result["verdict"] and result["verb"] != "gate":
        verdict = result["verdict"]
        parts.append(Text(f"verdict: {verdict['decision']}; {'; '.join(verdict['reasons'])}"))
    return Group(*parts)


def facts(values: Mapping[str, Any]) -> Text:
    """Plain data as YAML; empty values are left out."""
    told = {key: value for key, value in values.items() if value not in (None, "", [], {}, ())}
    return Text(yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=76).rstrip("\n"), overflow="fold")


def artifact_shown(result: Mapping[str, Any]) -> RenderableType:
    """An artifact: where it comes from and what it was trained on; of its long recipe the method's part."""
    manifest = dict(result["manifest"])
    recipe = manifest.pop("recipe", {})
    for key in ("data", "weights"):
        manifest[key] = {name: sha256[:16] for name, sha256 in manifest.get(key, {}).items()}
    told = facts({"path": result["path"], **manifest, "trained with": recipe.get("method", {})})
    whole = Text(f"the whole recipe, and all of the hashes: {result['path']}/{MANIFEST}", overflow="fold")
    return Group(told, whole) if recipe else told


def _as_its_verb_shows(verb: str, result: Mapping[str, Any]) -> RenderableType:
    """As the verb printed it; plain facts of a verb that is not ours, or of a result that an older version wrote."""
    if verb not in VERBS:
        return facts(result)
    show = getattr(import_module(VERBS[verb][0].partition(":")[0]), "show", facts)
    try:
        shown: RenderableType = show(dict(result))
    except (KeyError, TypeError, IndexError):
        return facts(result)
    return Text(shown, overflow="fold") if isinstance(shown, str) else shown


def _stages(result: Mapping[str, Any]) -> RenderableType:
    seconds = sum(stage["seconds"] for stage in result["stages"])
    told = result["result"] or {"name": result["config"].get("name", ""), "run": result["path"]}
    return show_stages({**told, "stages": result["stages"], "seconds": seconds})


def _metrics(metrics: Mapping[str, Any]) -> Rows:
    """The tail of the metrics: of the values that the last line has the first ones, as many as stand side by side."""
    tail, columns, room = metrics["tail"], [], WIDTH - 1
    for key, value in tail[-1].items():
        room -= 3 + max(len(key), *(len(_cell(line.get(key, ""))) for line in tail))
        if room >= 0 and isinstance(value, (int, float, str)):
            columns.append(key)
    rows = [[_cell(line.get(column, "")) for column in columns] for line in tail]
    title = f"metrics.jsonl: the last of {counted(metrics['lines'], 'line')}"
    return Rows(columns, rows, title=title, numbers=columns)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
