"""A sieve before the secret scanner: most texts cannot hold a secret, and that can be known forty times faster.

The scanner (betterleaks, in Go) looks at some 6 MB/s. All its rules are regular expressions, and hyperscan tells at
some 200 MB/s which of them, and of ours, may match; it may name too many, never too few. So the scanner sees only what
one of its rules may match, each rule of ours only what it may match itself, and the finds are the same. The scanner's
rules are read from its own library, where its configuration is embedded, so that the two cannot disagree.

Compiling the rules takes some ten seconds and is done once a machine, when there is much to read (`prepare`); the
result lies in the cache folder. Without it, without hyperscan, or with a scanner whose rules are not found, everything
is scanned.
"""

from __future__ import annotations

import hashlib
import platform
import re
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import betterleaks

from postgrad.core.errors import OutsideFailure
from postgrad.core.files import write_bytes
from postgrad.models.cachedir import cache_dir
from postgrad.run.progress import note
from postgrad.traces.redaction.rules import RULES

_RULE: Final = re.compile(rb"\[\[rules\]\]\n(.*?)(?=\[\[rules\]\]|\0|\Z)", re.DOTALL)
_REGEX: Final = re.compile(rb"^regex = '''(.*?)'''", re.DOTALL | re.MULTILINE)
_FEWEST: Final = 100  # rules; fewer were found only in something that is not the configuration
# Two letters outside ASCII that are equal to "s" and "k" for the scanner, which ignores case in all of Unicode.
_FOLDED: Final = ("\u017f", "\u212a")


_OURS: Final = tuple(pattern.pattern.encode() for _, _, pattern in RULES)


SCANNER: Final = len(RULES)
"""Stands for all rules of the scanner."""


def suspected(text: str) -> set[int] | None:
    """Which rules could find something in `text`: places in `RULES`, and `SCANNER`; None where that is not known."""
    database = _compiled()
    if database is None or (not text.isascii() and any(letter in text for letter in _FOLDED)):
        return None
    found: set[int] = set()
    database.scan(text.encode("utf-8", "replace"), match_event_handler=_note, context=found)
    return found


def prepare() -> None:
    """Compile the sieve if that has not been done on this machine, and can be."""
    path = _path()
    if path is None or path.exists():
        return
    import hyperscan

    expressions = rules()
    if len(expressions) < _FEWEST:
        return
    note("preparing the search for secrets, once on this machine")
    database = hyperscan.Database()
    flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_PREFILTER
    ours = hyperscan.HS_FLAG_DOTALL | hyperscan.HS_FLAG_MULTILINE  # fit more than our rules ask for
    numbers = [*range(len(_OURS)), *[SCANNER] * len(expressions)]
    several = [flags | ours] * len(_OURS) + [flags] * len(expressions)
    try:
        database.compile(expressions=[*_OURS, *expressions], ids=numbers, flags=several)
        write_bytes(path, hyperscan.dumpb(database))
    except (hyperscan.error, OutsideFailure) as error:
        note(f"the search for secrets stays slow: {error}")
    _compiled.cache_clear()


def rules() -> list[bytes]:
    """The expressions of the scanner's rules, from its library; a rule without one looks at names of files only."""
    data = _library().read_bytes()
    start = data.find(b"[[rules]]")
    if start < 0:
        return []
    return [found[1] for block in _RULE.finditer(data, start) if (found := _REGEX.search(block[1]))]


@lru_cache(maxsize=1)
def _compiled() -> Any:
    """The database, None if there is none for this scanner on this machine."""
    path = _path()
    if path is None or not path.exists():
        return None
    import hyperscan

    try:
        database = hyperscan.loadb(path.read_bytes(), hyperscan.HS_MODE_BLOCK)
        database.scratch = hyperscan.Scratch(database)
    except (hyperscan.error, OSError):  # written on another kind of processor
        return None
    return database


def _path() -> Path | None:
    """Where the database lies, by everything that it depends on; None without hyperscan."""
    try:
        engine = version("hyperscan")
    except ModuleNotFoundError:
        return None
    status = _library().stat()
    parts = (betterleaks.__version__, status.st_size, engine, platform.machine(), platform.system(), _OURS, SCANNER)
    return cache_dir() / f"secret-sieve-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.hs"


def _library() -> Path:
    found = sorted(Path(betterleaks.__file__).parent.rglob("*betterleaks*.so"))
    found += sorted(Path(betterleaks.__file__).parent.rglob("*betterleaks*.d[yl]*"))
    return found[0] if found else Path(betterleaks.__file__)


def _note(rule: int, start: int, end: int, flags: int, found: set[int]) -> None:
    found.add(rule)
