"""The public surface, pinned in surface.txt: names of the nouns and packages, verbs, and every key of every recipe.

A change here is a change for users: it belongs in CHANGELOG.md. `python tests/test_surface.py` writes the file anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PINNED = Path(__file__).parent / "surface.txt"
SOURCE = Path(__file__).parents[1] / "src" / "postgrad"


def surface() -> list[str]:
    return [*names(), *keys()]


def names() -> Iterator[str]:
    """Public names of the nouns and of what each package's __init__ hands on; read, not imported."""
    for path in sorted([*SOURCE.rglob("__init__.py"), *(SOURCE / "core").glob("*.py")], key=str):
        module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for name in sorted(public_names(ast.parse(path.read_text()))):
            line = f"{module}.{name}"
            if line not in ("postgrad.__version__",):
                yield line


def public_names(tree: ast.Module) -> set[str]:
    """What a module defines, and in an `__all__` what it hands on."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        for target in [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", []):
            if isinstance(target, ast.Name) and target.id == "__all__":
                found |= set(ast.literal_eval(node.value))  # type: ignore[attr-defined]
            elif isinstance(target, ast.Name):
                found.add(target.id)
    return {name for name in found if not name.startswith("_")}


def keys() -> Iterator[str]:
    """`verb --key type`, for every verb and key."""
    from postgrad.run.schema import schema_lines
    from postgrad.verbs import VERBS

    for verb, (target, _) in VERBS.items():
        for line in schema_lines(import_module(target.partition(":")[0]).CONFIG):
            yield f"{verb} --{line.path} {line.type}"


def test_the_public_surface_is_the_pinned_one() -> None:
    assert surface() == PINNED.read_text().splitlines(), "if this is meant: python tests/test_surface.py, CHANGELOG.md"


if __name__ == "__main__":
    PINNED.write_text("\n".join(surface()) + "\n")
