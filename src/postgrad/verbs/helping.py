"""`HelpfulCommand`: a verb's --help, which also lists the fields of its configuration and what its words may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from postgrad.run.config import Config
from postgrad.run.schema import schema_lines

REST = "postgrad.rest"
"""In click's meta data: the words after `--`."""
COLUMN = 44
"""Widest first column of a list."""


class Topic(NamedTuple):
    """A section of a help page: its title and rows of a name and what it is."""

    title: str
    rows: Sequence[tuple[str, str]]


Topics = Callable[[Sequence[str]], tuple[list[Topic], bool]]
"""Bare words of the command line -> sections, and whether they stand in place of the configuration's fields."""


class HelpfulCommand(click.Command):
    """A click command whose help also lists the configuration's fields, and the verb's own topics."""

    def __init__(self, name: str, *, CONFIG: type[Config], options: Mapping[str, Any], **settings: Any) -> None:
        super().__init__(name, **settings)
        self._CONFIG, self._options = CONFIG, options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the words after `--` apart, and keep the bare ones for the help page."""
        if "rest" in self._options and "--" in args:
            place = args.index("--")
            args, ctx.meta[REST] = args[:place], args[place + 1 :]
        ctx.obj = [word for word in args if not word.startswith("-")]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The words after the verb's name in the first line."""
        positional = self._options.get("positional")
        first = f"[{positional.upper()}]..." if positional else "[RECIPE.yaml]"
        rest = [f"[-- {self._options['rest'].upper()}...]"] if "rest" in self._options else []
        return [first, "[--section.key VALUE]...", *rest]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of every verb, the topics, the fields of the configuration."""
        super().format_options(ctx, formatter)
        topics: Topics | None = self._options.get("topics")
        sections, instead = topics(ctx.obj or ()) if topics is not None else ([], False)
        if not instead:
            short = {field: option for option, field in (self._options.get("short") or {}).items()}
            title = "Configuration (recipe keys and options)"
            rows = key_rows(self._CONFIG, prefix="", short=short)
            if recipe := self._options.get("default_recipe"):
                rows = [(key, told.replace("(required)", f"(from recipe {recipe})")) for key, told in rows]
            sections.insert(0, Topic(title, rows))
        for topic in sections:
            with formatter.section(topic.title):
                formatter.write_dl([*topic.rows], col_max=COLUMN)


def key_rows(model: type[Any], *, prefix: str, short: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """A row a field: its option and type; what it means and its default."""
    rows = []
    for line in schema_lines(model):
        option = f"--{prefix}{line.path}"
        option = f"{short[line.path]}, {option}" if short and line.path in short else option
        rows.append((f"{option} {line.type}", f"{line.description} ({line.default})".strip()))
    return rows
