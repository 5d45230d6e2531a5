"""The same for a terminal: the list, the tree of a trace's steps, one step whole.

What users and models wrote is printed as text: no markup of theirs is read, and control characters, which a terminal
would obey, are shown as what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

MISTAKES = ("real", "user_correction")
_STYLES = {"real": "bold red", "user_correction": "yellow", "user_stop": "magenta", "user_followup": "magenta"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Object = Mapping[str, Any]


def plain(text: str, style: str = "") -> Text:
    """Foreign text, with its control characters made visible."""
    return Text(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n")), style=style)


def traces(rows: Sequence[Object], *, total: int) -> RenderableType:
    """The list; `total` may be more than the rows that are shown."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("trace", no_wrap=True)
    table.add_column("format", no_wrap=True)
    for name in ("steps", "tokens", "mistakes", "other"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("first words", overflow="ellipsis", no_wrap=True, ratio=1)
    for row in rows:
        wrong = mistakes(row)
        spent = row["tokens"]["input"] + row["tokens"]["output"]
        other = sum(row["verdicts"].values()) - wrong
        numbers = [row["steps"], spent or "", Text(str(wrong or ""), style="bold red"), other or ""]
        cells = [plain(row["short"]), row["format"], *numbers, plain(row["title"])]
        table.add_row(*(cell if isinstance(cell, Text) else str(cell) for cell in cells))
    more = total - len(rows)
    return Group(table, Text(f"and {more} more (--limit)", style="dim")) if more > 0 else table


def short_names(names: Sequence[str], *, least: int = 8) -> list[str]:
    """Beginnings, all of one length, that tell the names apart (whole names where nothing shorter does)."""
    longest = max(map(len, names), default=least)
    whole = len(set(names))
    enough = (length for length in range(least, longest) if len({name[:length] for name in names}) == whole)
    length = next(enough, longest)
    return [name[:length] for name in names]


def mistakes(row: Object) -> int:
    """Sites that are worth learning from."""
    return sum(row["verdicts"].get(name, 0) for name in MISTAKES)


def trace(whole: Object) -> RenderableType:
    """Head and steps of a trace, branches and sidechains to the right."""
    root = Tree(_head(whole), guide_style="dim")
    levels = [root]
    for step in whole["steps"]:
        del levels[step["depth"] + 1 :]
        while len(levels) <= step["depth"]:
            levels.append(levels[-1].children[-1] if levels[-1].children else levels[-1])
        for event in (event for event in whole["events"] if event["before_step"] == step["index"]):
            text = " ".join(event.get("text", "").split())[:100]
            levels[-1].add(plain(f"{event['kind'].replace('_', ' ')}: {text}".rstrip(": "), "dim italic"))
        node = levels[-1].add(_line(step))
        for site in step["sites"]:
            node.add(site_line(site))
    return root


def _head(whole: Object) -> Text:
    tokens = whole["tokens"]
    facts = [
        whole["format"],
        ", ".join(whole["models"]),
        f"{len(whole['steps'])} steps, {whole['calls']} calls, {whole['results']} results",
        f"{tokens['input']} tokens in, {tokens['cached']} cached, {tokens['output']} out, as logged"
        if any(tokens.values())
        else "tokens not logged",
        ", ".join(f"context {name} {n}" for name, n in whole["fidelity"].items()),
        f"parent {whole['parent']}" if whole["parent"] else "",
        whole["path"],
    ]
    head = plain(whole["id"], "bold")
    return head.append_text(plain("\n" + "\n".join(fact for fact in facts if fact), "dim not bold"))


def _line(step: Object) -> Text:
    line = Text(f"{step['index']:>3} ", style="dim", no_wrap=True, overflow="ellipsis")
    made = [block for block in step["blocks"] if block["type"] == "tool_call"]
    calls = [block["name"] for block in made] if len(made) != 1 else [f"{made[0]['name']} {_subject(made[0])}".rstrip()]
    said = " ".join(" ".join(b["text"].split()) for b in step["blocks"] if b["type"] == "text")
    line.append_text(plain(", ".join(calls), "cyan not dim"))
    line.append_text(plain(f"{' ' if calls else ''}{said[:90]}", "not dim"))
    marks = [step["kind"]] if step["kind"] != "main" else []
    marks += [step["agent"]] if step["agent"] else []
    marks += ["abandoned"] if step["abandoned"] else []
    marks += [f"goes on from {step['parent']}"] if step["parent"] not in (None, step["index"] - 1) else []
    return line.append_text(plain(f"  [{', '.join(marks)}]" if marks else "", "dim"))


def _subject(call: Object) -> str:
    """What a call is about: the first text of some length among its arguments."""
    texts = [" ".join(v.split()) for v in (call.get("arguments") or {}).values() if isinstance(v, str)]
    return next((text for text in texts if len(text) > 8), next(iter(texts), ""))[:60]


def site_line(site: Object) -> Text:
    """Verdict, kind, rule, evidence and where it was recovered, on one line."""
    style = _STYLES.get(site["verdict"], "dim")
    line = Text(site["verdict"].replace("_", " "), style=style, no_wrap=True, overflow="ellipsis")
    told = f" {site['kind'].replace('_', ' ')}, rule {site['rule']}"
    told += f", record {site['record']}" if site.get("record", -1) >= 0 else ""
    told += f", repeats step {site['repeat_of']}" if site.get("repeat_of") is not None else ""
    told += f", recovered at step {site['recovery_step']}" if site.get("recovery_step") is not None else ""
    return line.append_text(
        plain(f"{told}: {' '.join(site.get('text', '').split())[:120]}".rstrip(": "), "dim not bold")
    )


def step(whole: Object, index: int) -> RenderableType:
    """One step whole: what is new in its context, the answer, the results, the sites."""
    one = next(step for step in whole["steps"] if step["index"] == index)
    facts = [one["model"], one["stop"], one["time"], f"{one['context']} messages in context", one["fidelity"]]
    facts += [f"missing: {', '.join(one['missing'])}"] if one["missing"] else []
    facts += [f"{n} tokens {name}" for name, n in one["tokens"].items() if n]
    parts: list[RenderableType] = [Text(f"step {index}", style="bold"), plain(" · ".join(f for f in facts if f), "dim")]
    for message in (whole["messages"][key] for key in one["new"]):
        parts += [Rule(message["role"], style="dim", align="left"), *_blocks(message["blocks"], one)]
    parts += [Rule("answer", style="cyan", align="left"), *_blocks(one["blocks"], one)]
    for other in one["others"]:
        name = f"teacher {other['teacher']}" if other["teacher"] else "another answer"
        parts += [Rule(name, style="dim", align="left"), *_blocks(other["blocks"], {"results": {}})]
    parts += [plain(f"{said['kind']} {said.get('value', '')} {said.get('text', '')}") for said in one["feedback"]]
    parts += [site_line(site) for site in one["sites"]]
    return Group(*parts)


def _blocks(blocks: Sequence[Object], step: Object) -> list[RenderableType]:
    return [part for block in blocks for part in _block(block, step)]


def _block(block: Object, step: Object) -> list[RenderableType]:
    match block["type"]:
        case "text":
            return [plain(block["text"])]
        case "reasoning":
            return [plain(block.get("text") or "(thinking without text)", "italic dim")]
        case "tool_call":
            result = step["results"].get(block["id"])
            given = block.get("arguments")
            text = json.dumps(given, indent=2, ensure_ascii=False) if given is not None else block["arguments_raw"]
            shown = _result(result) if result else [plain("no result", "dim")]
            return [plain(block["name"], "bold cyan"), Padding(plain(text), (0, 0, 0, 2), expand=False), *shown]
        case "tool_result":
            return _result(block)
    return [plain(json.dumps(block, ensure_ascii=False), "dim")]


def _result(result: Object) -> list[RenderableType]:
    failed = result.get("is_error") is True or result.get("status", "ok") not in ("ok", "pending")
    word = result.get("status", "error" if failed else "result")
    return [plain(word, "red" if failed else "dim"), Padding(plain(result["text"]), (0, 0, 0, 2), expand=False)]
