"""What the source of a class says: its docstring and the texts below its fields, read from the file that defines it.

Texts below fields are the help of options. A help page needs them; a run does not, so they are read when a page asks
and not when a class is made, and a module is parsed once.
Not covered: classes inside of functions and other classes, and classes without a file.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from functools import cache
from pathlib import Path


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module, which is found and not imported."""
    return ast.parse(_text(module))


def class_of(module: str, name: str) -> ast.ClassDef | None:
    """The class `name` of the top of a module; None: it is not there."""
    return next((node for node in tree(module).body if isinstance(node, ast.ClassDef) and node.name == name), None)


def summary(module: str, name: str) -> str:
    """The first paragraph of the class's docstring on one line; only its own lines are parsed."""
    lines = _text(module).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith((f"class {name}(", f"class {name}:")))
    after = (place for place, line in enumerate(lines) if place > first and line[:1].strip(" )#"))
    try:
        [found] = ast.parse("\n".join(lines[first : next(after, len(lines))])).body
    except SyntaxError:  # a text of several lines that begins one of them at the margin
        return first_paragraph(class_of(module, name))
    return first_paragraph(found)


def first_paragraph(found: ast.stmt | None) -> str:
    """Of the docstring of a class; empty for what is none or has none."""
    document = ast.get_docstring(found) if isinstance(found, ast.ClassDef) else None
    return (document or "").partition("\n\n")[0].replace("\n", " ")


def texts_below(found: ast.ClassDef) -> dict[str, str]:
    """Name -> the text that stands below the field."""
    told = {}
    for node, following in zip(found.body, found.body[1:], strict=False):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        match following:
            case ast.Expr(ast.Constant(str(text))):
                told[node.target.id] = " ".join(text.split())
    return told


@cache
def _text(module: str) -> str:
    """The source of a module, loaded or not; empty for one without a file, such as what was typed in."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None and module not in sys.modules:
        spec = importlib.util.find_spec(module)
        assert spec is not None, f"{module} is no module"
        file = spec.origin
    return Path(file).read_text(encoding="utf-8") if file and file.endswith(".py") else ""
