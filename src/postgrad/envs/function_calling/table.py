"""The function tables: one text file a domain, read into `Function`s.

    cone_volume: Volume of a cone.                       a function and its description
      radius int 2..30: Radius of the base in cm.        a parameter: name, kind of value, description
      unit? one of cm, m = cm: Unit of the lengths.      an optional one, with its default
      > What is the volume of a cone ...                 phrasings of the request

Kinds of values are listed in `values.parse_kind`, the template language in `phrase`. Broken tables are bugs of this
package and fail by assertion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from postgrad.core.message import Tool
from postgrad.envs.function_calling.phrase import Phrase, parse_phrase
from postgrad.envs.function_calling.values import Kind, parse_kind

_FUNCTION = re.compile(r"([a-z][\w.]*): (.+)")
_PARAMETER = re.compile(r"  (\w+)(\?)? (.+?)(?: = (.+?))?: (.+)")


@dataclass(frozen=True)
class Parameter:
    """One parameter; an optional one may have a default."""

    name: str
    kind: Kind
    description: str
    required: bool
    default: Any = None

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema; the default is told in the description, where every chat template shows it."""
        told = self.description if self.default is None else f"{self.description} Default is {_plain(self.default)}."
        return {**self.kind.schema, "description": told}


@dataclass(frozen=True)
class Function:
    """One function with the phrasings that ask for it."""

    name: str
    domain: str
    description: str
    parameters: tuple[Parameter, ...]
    phrases: tuple[Phrase, ...]

    @property
    def tool(self) -> Tool:
        """What the model is offered."""
        return Tool(
            self.name,
            self.description,
            {
                "type": "object",
                "properties": {p.name: p.schema for p in self.parameters},
                "required": [p.name for p in self.parameters if p.required],
            },
        )


@cache
def load_domain(domain: str) -> tuple[Function, ...]:
    """The functions of one domain, in the order of its file."""
    pools = dict(line.split(": ", 1) for line in _text("pools").splitlines() if line and not line.startswith("#"))
    functions: list[Function] = []
    for block in re.split(r"\n(?=\w)", _text(domain).strip()):
        functions.append(_function(block, domain, pools))
    return tuple(functions)


def _text(name: str) -> str:
    return (files("postgrad.envs.function_calling") / "domains" / f"{name}.txt").read_text(encoding="utf-8")


def _function(block: str, domain: str, pools: dict[str, str]) -> Function:
    head, *lines = block.splitlines()
    named = _FUNCTION.fullmatch(head)
    assert named, f"{domain}: not a function: {head}"
    parameters = tuple(_parameter(line, pools) for line in lines if line.strip() and not line.startswith("  > "))
    phrases = tuple(parse_phrase(line.removeprefix("  > ")) for line in lines if line.startswith("  > "))
    function = Function(named[1], domain, named[2], parameters, phrases)
    _check(function)
    return function


def _parameter(line: str, pools: dict[str, str]) -> Parameter:
    match = _PARAMETER.fullmatch(line)
    assert match, f"not a parameter: {line}"
    name, optional, kind_text, default, description = match.groups()
    kind = parse_kind(kind_text, pools)
    assert default is None or optional, f"a required parameter has no default: {line}"
    return Parameter(name, kind, description, not optional, kind.read(default) if default is not None else None)


def _check(function: Function) -> None:
    """Every phrasing must state every required argument for certain and no argument that does not exist."""
    known = {p.name for p in function.parameters}
    required = {p.name for p in function.parameters if p.required}
    assert function.phrases, f"{function.name}: no phrasing"
    for phrase in function.phrases:
        unknown = phrase.names(certain=False) - known
        assert not unknown, f"{function.name}: phrasing names unknown arguments {unknown}"
        missing = required - phrase.names(certain=True)
        assert not missing, f"{function.name}: phrasing leaves out {missing}"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
