"""Does one call match one acceptable call? The rules of BFCL's AST checker, over JSON schema.

An acceptable call gives per argument a list of acceptable values; an empty string among them means that the argument
may be left out. The rules, as in `bfcl_eval.eval_checker.ast_eval.ast_checker` (version 2026.3.23):

- types are strict: 5.0 and "5" are no integers, true is no number; a plain number parameter takes an integer, an
  element of a number array does not unless the acceptable list begins with an integer;
- a value of another type than the schema's still passes if the acceptable values have that type (BFCL's "variable"),
  and is then compared exactly;
- strings are compared without case, spaces and ``,./-_*^``, and ' equals "; so are the elements of lists and the
  values of objects, one level deep; list order counts.

Where BFCL's checker would crash (an acceptable value that is no list where the parameter is one), there is no match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TYPES: dict[str, type[Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_IGNORED = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True)
class Problem:
    """Why a call does not match: an error kind of `grader` and a sentence."""

    kind: str
    detail: str


def match_call(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], acceptable: Mapping[str, Any]
) -> Problem | None:
    """Compare the arguments of a call to the right function; None means that they match."""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in arguments:
            return Problem("missing_argument", f"the required argument '{name}' is missing")
    for name, value in arguments.items():
        if name not in properties or name not in acceptable:
            return Problem("unexpected_argument", f"there is no argument '{name}'")
        problem = _match_value(name, value, properties[name], acceptable[name])
        if problem:
            return problem
    for name, values in acceptable.items():
        if name not in arguments and "" not in values:
            return Problem("missing_argument", f"the request states '{name}', but the call leaves it out")
    return None


def _match_value(name: str, value: Any, schema: Mapping[str, Any], acceptable: Sequence[Any]) -> Problem | None:
    wanted = _python_type(schema)
    item = _python_type(schema["items"]) if wanted is list and "items" in schema else None
    if schema.get("type") == "number" and type(value) is int:
        value = float(value)
    if not _type_fits(value, acceptable, wanted, item):
        shown = schema.get("type", "string")
        return Problem("wrong_type", f"'{name}' must be {_article(shown)} as its schema says, got {value!r}")
    if not _equal(value, acceptable, wanted, item):
        return Problem("wrong_value", f"'{name}' is {value!r}, expected one of {list(acceptable)}")
    return None


def _type_fits(value: Any, acceptable: Sequence[Any], wanted: type[Any], item: type[Any] | None) -> bool:
    if type(value) is not wanted:
        return type(value) is _answer_type(acceptable)
    if item is None:
        return True
    # an acceptable "" (may be left out) says nothing about elements and lets any list through, as in BFCL
    return any(not isinstance(answer, list) or _elements_fit(value, answer, item) for answer in acceptable)


def _elements_fit(value: Sequence[Any], answer: Sequence[Any], item: type[Any]) -> bool:
    return all(type(element) is item or type(element) is _answer_type(answer) for element in value)


def _equal(value: Any, acceptable: Sequence[Any], wanted: type[Any], item: type[Any] | None) -> bool:
    answer_type = _answer_type(acceptable)
    verbatim = answer_type is not None and answer_type is not wanted
    if verbatim or wanted not in (str, list, dict):
        return value in acceptable
    if wanted is str:
        return standardize(value) in [standardize(answer) for answer in acceptable if isinstance(answer, str)]
    if wanted is dict:
        return any(_equal_object(value, answer) for answer in acceptable if answer != "")
    if item is dict:
        return any(_equal_objects(value, answer) for answer in acceptable)
    standard = [_standard(element) for element in value]
    return standard in [[_standard(e) for e in answer] for answer in acceptable if isinstance(answer, (list, str))]


def _equal_objects(value: Sequence[Any], answer: Any) -> bool:
    if not isinstance(answer, (list, str)) or len(value) != len(answer):
        return False
    pairs = zip(value, answer, strict=True)
    return all(isinstance(v, dict) and isinstance(a, dict) and _equal_object(v, a) for v, a in pairs)


def _equal_object(value: Mapping[str, Any], answer: Mapping[str, Sequence[Any]]) -> bool:
    """An object against an object of acceptable values per key."""
    for key, inner in value.items():
        if key not in answer or _standard(inner) not in [_standard(option) for option in answer[key]]:
            return False
    return all(key in value or "" in options for key, options in answer.items())


def standardize(text: str) -> str:
    """Lower case without spaces and ``,./-_*^``, single quotes made double."""
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _standard(value: Any) -> Any:
    return standardize(value) if isinstance(value, str) else value


def _answer_type(acceptable: Sequence[Any]) -> type[Any] | None:
    return next((type(answer) for answer in acceptable if answer != ""), None)


def _python_type(schema: Mapping[str, Any]) -> type[Any]:
    return _TYPES.get(schema.get("type", "string"), str)


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
