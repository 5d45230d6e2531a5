"""`outline`: what a class says of itself in its source, read without importing it.

A help page must not import torch, and a channel's class does. So its docstring, its fields with their types and
defaults, and what its docstring says of them are read from the file. Aliases of types are followed, in the module and
into the modules of postgrad that it imports them from.
Not covered: fields of base classes, and defaults that are computed.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from postgrad.run.class_source import class_of, first_paragraph, summary, texts_below, tree
from postgrad.run.schema import FieldLine

_PLAIN = {"int": "integer", "float": "number", "bool": "yes/no", "str": "text", "Path": "path", "None": "null"}


class Outline(NamedTuple):
    """First line of the docstring, and a line a field."""

    summary: str
    fields: list[FieldLine]


def outline(target: str) -> Outline:
    """The outline of "module:Class"; the module is found, not imported."""
    module, _, name = target.partition(":")
    found = class_of(module, name)
    assert found is not None, f"{target} is no class"
    told = _attributes(ast.get_docstring(found) or "") | texts_below(found)
    fields: list[FieldLine] = []
    for node in found.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or _is_class_variable(node):
            continue
        key = node.target.id
        if isinstance(node.value, ast.Call):  # a section with defaults of its own: its fields in its place
            inner = outline(_defined(ast.unparse(node.annotation), module))
            for line in inner.fields:
                description = line.description or told.get(key, "")
                fields.append(line._replace(path=f"{key}.{line.path}", description=description))
        else:
            default = _default(node.value, module)
            fields.append(FieldLine(key, _type(node.annotation, module), default, told.get(key, "")))
    return Outline(first_paragraph(found), fields)


def headline(target: str) -> str:
    """What "module:Class" is, in its own words: the first paragraph of its docstring, without the full stop."""
    module, _, name = target.partition(":")
    return summary(module, name).removesuffix(".")


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
    value, place = _value(name, module)
    return _type(value, place) if value is not None else ""


def _value(name: str, module: str) -> tuple[ast.expr | None, str]:
    """What is assigned to a name, in the module or in the one of postgrad that it comes from, and which that is."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return node.value, module
    origin = _origin(name, module)
    return _value(*origin) if origin is not None else (None, module)


def _origin(name: str, module: str) -> tuple[str, str] | None:
    """The name and the module of postgrad that `name` is imported from."""
    for node in tree(module).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("postgrad."):
            original = next((one.name for one in node.names if (one.asname or one.name) == name), None)
            if original is not None:
                return original, str(node.module)
    return None


def _defined(name: str, module: str) -> str:
    """Where a class is defined, as "module:Class"."""
    origin = _origin(name, module)
    return _defined(*origin) if origin is not None else f"{module}:{name}"


def _default(node: ast.expr | None, module: str) -> str:
    if node is None:
        return "required"
    if isinstance(node, ast.Name):
        node = _value(node.id, module)[0] or node
    match node:
        case ast.BinOp(ast.Constant(int(number)), ast.LShift(), ast.Constant(int(bits))):  # 1 << 21
            return f"default {number << bits}"
    text = ast.unparse(node).strip("'\"")
    words = {"None": "null", "True": "true", "False": "false"}
    return f"default {words.get(text, text)}"
