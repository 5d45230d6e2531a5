"""`outline`: what a class says of itself in its source, read without importing it.

A help page must not import torch, and a channel's class does. So its docstring, its fields with their types and
defaults, and what its docstring says of them are read from the file. Aliases of types are followed, in the module and
into the modules of postgrad that it imports them from.
Not covered: fields of base classes, and defaults that are computed.
"""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path
from typing import NamedTuple

from postgrad.run.schema import FieldLine

_PLAIN = {"int": "integer", "float": "number", "bool": "yes/no", "str": "text", "Path": "path", "None": "null"}


class Outline(NamedTuple):
    """First line of the docstring, and a line a field."""

    summary: str
    fields: list[FieldLine]


def outline(target: str) -> Outline:
    """The outline of "module:Class"; the module is found, not imported."""
    module, _, name = target.partition(":")
    tree = _tree(module)
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    document = ast.get_docstring(found) or ""
    told = _attributes(document) | _below(found)
    fields = [
        FieldLine(node.target.id, _type(node.annotation, module), _default(node.value), told.get(node.target.id, ""))
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not _is_class_variable(node)
    ]
    return Outline(document.partition("\n\n")[0].replace("\n", " "), fields)


@cache
def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"{module} is no module"
    assert spec.origin is not None, f"{module} is no file"
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _is_class_variable(node: ast.AnnAssign) -> bool:
    return ast.unparse(node.annotation).startswith("ClassVar")


def _attributes(document: str) -> dict[str, str]:
    """Name -> words of the section "Attributes:"."""
    told: dict[str, str] = {}
    name = ""
    for line in document.partition("Attributes:\n")[2].splitlines():
        text = line.strip()
        if line.startswith("    ") and not line.startswith("     ") and ": " in text:
            name, _, text = text.partition(": ")
            told[name] = text
        elif not text:
            break
        else:
            told[name] += f" {text}"
    return told


def _below(found: ast.ClassDef) -> dict[str, str]:
    """Name -> the text that stands below the field."""
    told = {}
    for node, following in zip(found.body, found.body[1:], strict=False):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        match following:
            case ast.Expr(ast.Constant(str(text))):
                told[node.target.id] = " ".join(text.split())
    return told


def _type(node: ast.expr, module: str) -> str:
    """A type in the words of `schema.type_name`."""
    if isinstance(node, ast.BinOp):
        return f"{_type(node.left, module)} | {_type(node.right, module)}"
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if node.value.id == "Annotated":
            return _type(inner[0], module)
        if node.value.id == "Literal":
            return "|".join(str(one.value) for one in inner if isinstance(one, ast.Constant))
        return f"list of {_type(inner[0], module)}" if node.value.id in ("list", "tuple") else ast.unparse(node)
    text = ast.unparse(node)
    return _PLAIN.get(text) or _alias(text, module) or text


def _alias(name: str, module: str) -> str:
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return _type(node.value, module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("postgrad."):
            original = next((one.name for one in node.names if (one.asname or one.name) == name), None)
            if original is not None:
                return _alias(original, str(node.module))
    return ""


def _default(node: ast.expr | None) -> str:
    if node is None:
        return "required"
    text = ast.unparse(node).strip("'\"")
    if isinstance(node, ast.Call):  # a section with defaults of its own
        return "default {}"
    words = {"None": "null", "True": "true", "False": "false"}
    return f"default {words.get(text, text)}"
