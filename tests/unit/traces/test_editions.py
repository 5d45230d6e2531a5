"""No change of what reads or judges traces goes by without a new edition: stores would keep what the old code made."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

import postgrad
from postgrad.traces import READERS, editions

PACKAGE = Path(postgrad.__file__).parent
ROOTS = (
    *(
        "traces.contexts.fidelity",
        "traces.redaction.redactor",
        "traces.readers",
        "traces.storage.tables",
        "signals.error_sites.sites",
    ),
    *(target.partition(":")[0].removeprefix("postgrad.") for target in READERS.values()),
)
WATCHED = ("traces", "signals")
BOOKKEEPING = (
    "traces",
    "traces.editions",
    "traces.table",
    "traces.storage.journal",
    "traces.packing.spool",
    "traces.storage.vault",
)
"""Read and judge nothing."""


def test_the_code_is_that_of_its_edition() -> None:
    found = code_hash()
    told = f"what reads or judges traces has changed: raise traces/editions.py EDITION and set CODE to {found!r}"
    assert found == editions.CODE, told


def test_code_is_known_by_what_it_does() -> None:
    """Comments, docstrings and blank lines are not code; a string that is no docstring is."""
    one = '"""Says."""\n\n# note\ndef f():\n    """More\n    of it."""\n    return "x"\n'
    other = 'def f():\n    return "x"\n'
    assert list(code_lines(one)) == list(code_lines(other)) == ["def f():", '    return "x"']
    assert list(code_lines(other.replace("x", "y"))) != list(code_lines(one))


def test_the_rules_and_every_format_are_watched() -> None:
    watched = modules()
    assert {
        "signals.error_sites.rules",
        "signals.words.phrases",
        "traces.formats.claude_code.rows",
        "traces.redaction.rules",
    } <= watched
    assert not any(name.startswith("signals.rows.preferences") for name in watched)


def code_hash() -> str:
    """Of all watched modules."""
    digest = hashlib.sha256()
    for name in sorted(modules()):
        lines = "\n".join(code_lines(file_of(name).read_text(encoding="utf-8")))
        digest.update(f"{name}\n{lines}\n".encode())
    return digest.hexdigest()[:16]


def modules() -> set[str]:
    """The watched modules that the roots import, directly or not."""
    found: set[str] = set()
    todo = list(ROOTS)
    while todo:
        name = todo.pop()
        if name not in found and name not in BOOKKEEPING:
            found.add(name)
            todo += [one for one in imports(name) if one.partition(".")[0] in WATCHED]
    return found


def imports(name: str) -> Iterator[str]:
    """The modules of the package that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(file_of(name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("postgrad."):
            base = (node.module or "").removeprefix("postgrad.")
            inner = [f"{base}.{alias.name}" for alias in node.names if is_module(f"{base}.{alias.name}")]
            yield from inner or ([base] if is_module(base) else [])


def is_module(name: str) -> bool:
    return (PACKAGE / f"{name.replace('.', '/')}.py").is_file()


def file_of(name: str) -> Path:
    return PACKAGE / f"{name.replace('.', '/')}.py"


def code_lines(text: str) -> Iterator[str]:
    """The lines that are neither blank, nor only a comment, nor part of a docstring."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            words = part.value if isinstance(part, ast.Expr) else None
            if isinstance(words, ast.Constant) and isinstance(words.value, str):
                docs.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    for number, line in enumerate(text.splitlines(), 1):
        if number not in docs and line.strip() and not line.lstrip().startswith("#"):
            yield line.rstrip()
