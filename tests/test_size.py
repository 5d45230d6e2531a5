"""Nothing grows past what one sitting can read: files, functions, signatures, configuration classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src").rglob("*.py"))
FILE_LINES, INIT_LINES, FUNCTION_LINES, PARAMETERS, FIELDS = 300, 40, 60, 7, 10

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_limits(path: Path) -> None:
    assert list(too_big(path)) == []


def too_big(path: Path) -> Iterator[str]:
    """Everything in a file that is above a limit, in words."""
    text = path.read_text()
    lines = len(text.splitlines())
    limit = INIT_LINES if path.name == "__init__.py" else FILE_LINES
    if lines > limit:
        yield f"{lines} lines (limit {limit})"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FunctionNode):
            yield from _too_big_function(node)
        elif isinstance(node, ast.ClassDef) and _is_config(node):
            fields = sum(isinstance(statement, ast.AnnAssign) for statement in node.body)
            if fields > FIELDS:
                yield f"{node.name}: {fields} fields (limit {FIELDS})"


def _too_big_function(node: FunctionNode) -> Iterator[str]:
    assert node.end_lineno is not None
    lines = node.end_lineno - node.lineno + 1
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    parameters = sum(argument.arg not in ("self", "cls") for argument in arguments)
    if lines > FUNCTION_LINES:
        yield f"{node.name}: {lines} lines (limit {FUNCTION_LINES})"
    if parameters > PARAMETERS:
        yield f"{node.name}: {parameters} parameters (limit {PARAMETERS})"


def _is_config(node: ast.ClassDef) -> bool:
    """A class whose base is named like a configuration: `Config`, `TrainConfig`."""
    return any(isinstance(base, ast.Name) and base.id.endswith("Config") for base in node.bases)


def test_a_file_is_named_for_what_it_is() -> None:
    assert [path for path in FILES if path.stem in ("utils", "util", "helpers", "common", "misc")] == []


def test_the_limits_are_noticed(tmp_path: Path) -> None:
    """61 lines, 8 parameters, 11 fields: one too many of each."""
    body = "\n".join("    pass" for _ in range(60))
    parameters = ", ".join(f"p{number}" for number in range(8))
    fields = "\n".join(f"    f{number}: int" for number in range(11))
    (tmp_path / "big.py").write_text(f"def f({parameters}):\n{body}\nclass C(Config):\n{fields}\n")
    assert list(too_big(tmp_path / "big.py")) == [
        "f: 61 lines (limit 60)",
        "f: 8 parameters (limit 7)",
        "C: 11 fields (limit 10)",
    ]
