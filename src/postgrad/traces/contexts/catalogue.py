"""The catalogue: what applications give their models but do not write down, by application, version and model.

Agent logs lack the system prompt and the tool schemas. Both are the same for every session of one version, so they are
captured once (`postgrad record`, or by hand) and kept in a file, YAML or JSON:

    entries:
      - app: claude-code
        versions: ">=2.1,<2.2"          # comparisons, joined by commas; "2.1.*" and "2.1.44" too; left out: any
        models: ["claude-opus-*"]       # names with wildcards; left out: any
        system_file: prompts/cc-2.1.md  # or `system:` with the text itself; paths are relative to the catalogue
        tools_file: tools/cc-2.1.json   # or `tools:`; definitions in the shape of any provider
        tokenizer_file: tokenizer.json  # counts the rebuilt context; left out: an estimate

The first entry that fits a step is used, so the special ones stand first. Not covered: prompts that hold the date, the
folder or the git status: the text is taken as it is.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cached_property
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from postgrad.core.errors import ConfigError
from postgrad.core.message import Tool
from postgrad.core.trace import Source, StepKind
from postgrad.run.config import Config, validate
from postgrad.run.yaml import read_yaml
from postgrad.traces.formats.shapes.tools import tools as read_tools

_COMPARISON = re.compile(r"\s*(?P<sign>>=|<=|==|!=|>|<|)\s*v?(?P<version>\d[\w.+-]*?)(?P<any>\.\*)?\s*")
_SIGNS = {"==": eq, "!=": ne, ">=": ge, "<=": le, ">": gt, "<": lt}


def _main_only() -> list[StepKind]:
    return ["main"]


class Entry(Config):
    """What one application, in a range of versions, gives a model."""

    app: str
    """Name of the application as the readers write it: `claude-code`, `codex-cli`, ...; wildcards allowed."""
    versions: str | None = None
    """Versions that the entry holds for, e.g. `>=2.1,<2.2`."""
    models: list[str] = Field(default_factory=list)
    """Names of models that it holds for, with wildcards."""
    kinds: list[StepKind] = Field(default_factory=_main_only)
    """Kinds of steps that it holds for: subagents and compactions have prompts of their own."""
    system: str | None = None
    """The system prompt."""
    system_file: Path | None = None
    """A file with the system prompt."""
    tools: list[dict[str, Any]] | None = None
    """Tool definitions."""
    tools_file: Path | None = None
    """A JSON or YAML file with the tool definitions."""
    tokenizer_file: Path | None = None
    """A tokenizer (`tokenizer.json`) of the model."""

    @model_validator(mode="after")
    def _consistent(self) -> Entry:
        for one, other in (("system", "system_file"), ("tools", "tools_file")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ValueError(f"give {one} or {other}, not both")
        if self.versions is not None:
            _comparisons(self.versions)
        return self

    def holds_for(self, source: Source, *, model: str | None, kind: StepKind) -> bool:
        """Whether the entry is about a step of that model and kind, in a trace from `source`."""
        return (
            fnmatchcase((source.app or "").lower(), self.app.lower())
            and kind in self.kinds
            and (not self.models or any(fnmatchcase((model or "").lower(), name.lower()) for name in self.models))
            and (self.versions is None or in_range(source.app_version, self.versions))
        )


class CatalogueFile(Config):
    """The file."""

    entries: list[Entry]
    """Tried in order; the first that fits a step is used."""


class Filling:
    """An entry with its files read. `system` and `tools` (as `listed` in the file) are None where it has none."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.entry = entry
        self.system = entry.system if entry.system_file is None else _text(folder / entry.system_file)
        self.listed: Any = entry.tools if entry.tools_file is None else _listed(folder / entry.tools_file)
        self.tools: tuple[Tool, ...] | None = None if self.listed is None else read_tools(self.listed)
        if self.listed is not None and not self.tools:
            raise ConfigError("these tools cannot be read", got=entry.app, expected="a list of definitions with names")
        self.tokenizer = None if entry.tokenizer_file is None else folder / entry.tokenizer_file


class Catalogue:
    """All entries; `Catalogue.load(path)` reads a file, `Catalogue()` is empty."""

    def __init__(self, entries: tuple[Entry, ...] = (), folder: Path = Path()) -> None:
        self._entries, self._folder = entries, folder

    @classmethod
    def load(cls, path: Path) -> Catalogue:
        """Read a catalogue file and every file that it names.

        Raises:
            ConfigError: a file is missing or broken, a key is unknown, a version range cannot be read.
        """
        checked = validate(CatalogueFile, read_yaml(path), source=str(path))
        catalogue = cls(tuple(checked.entries), path.parent)
        return catalogue if catalogue.fillings else cls()

    @cached_property
    def fillings(self) -> tuple[Filling, ...]:
        """The entries with their files read."""
        return tuple(Filling(entry, self._folder) for entry in self._entries)

    def find(self, source: Source, *, model: str | None, kind: StepKind) -> Filling | None:
        """The first entry for a step, None if there is none."""
        return next((one for one in self.fillings if one.entry.holds_for(source, model=model, kind=kind)), None)


def in_range(version: str | None, wanted: str) -> bool:
    """Whether a version satisfies every comparison; an unknown version satisfies none.

    Versions compare by their numbers: 2.10 is above 2.9, and 2.1 equals 2.1.0. What follows a dash or plus is ignored.
    """
    if version is None or not re.match(r"\s*v?\d", version):
        return False
    ours = _numbers(version.strip().removeprefix("v"))
    return all(_satisfies(ours, *comparison) for comparison in _comparisons(wanted))


def _comparisons(wanted: str) -> list[tuple[str, tuple[int, ...], bool]]:
    found = []
    for part in wanted.split(","):
        match = _COMPARISON.fullmatch(part)
        if match is None or (match["any"] and match["sign"] not in ("", "==", "!=")):
            raise ValueError(f"cannot read the version range {wanted!r}; write e.g. '>=2.1,<2.2', '2.1.*' or '2.1.44'")
        found.append((match["sign"] or "==", _numbers(match["version"]), match["any"] is not None))
    return found


def _numbers(version: str) -> tuple[int, ...]:
    digits = re.match(r"\d+(?:\.\d+)*", version)
    assert digits is not None, "versions begin with a number"
    return tuple(int(part) for part in digits[0].split("."))


def _satisfies(ours: tuple[int, ...], sign: str, theirs: tuple[int, ...], wildcard: bool) -> bool:
    if wildcard:
        return (ours[: len(theirs)] == theirs) == (sign == "==")
    length = max(len(ours), len(theirs))
    one, other = (numbers + (0,) * (length - len(numbers)) for numbers in (ours, theirs))
    return bool(_SIGNS[sign](one, other))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", expected="a text file named in the catalogue") from None


def _listed(path: Path) -> Any:
    try:
        return json.loads(text) if (text := _text(path)).lstrip().startswith(("[", "{")) else read_yaml(path)
    except ValueError as error:
        raise ConfigError(f"cannot read {path}: {error}", expected="JSON or YAML with tool definitions") from None
