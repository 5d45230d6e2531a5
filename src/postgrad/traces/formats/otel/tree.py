"""Attributes asked by key and by prefix: flat keys with dots and numbers as the lists and objects that they spell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NESTED = frozenset({"llm", "openinference", "input", "output", "tool", "session", "agent", "gen_ai", "metadata"})


class Attributes:
    """The attributes of a span; Phoenix nests them, everything else keeps them flat."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values: dict[str, Any] = {}
        for key, value in values.items():
            if key in _NESTED and isinstance(value, dict):
                self.values |= _flat(key, value)
            else:
                self.values[key] = value

    def get(self, *keys: str) -> Any:
        """The first of these attributes that is there and says something."""
        return next((self.values[key] for key in keys if self.values.get(key) not in (None, "")), None)

    def text(self, *keys: str) -> str | None:
        """The first of these attributes that is a text."""
        return next((v for key in keys if isinstance(v := self.values.get(key), str) and v), None)

    def under(self, prefix: str) -> Any:
        """What the attributes below a prefix spell, numbers as places in lists ("10" after "9"); None without any."""
        found = {key: value for key, value in self.values.items() if key.startswith(f"{prefix}.")}
        if not found:
            return None
        tree: dict[str, Any] = {}
        for key, value in found.items():
            node = tree
            *path, leaf = key.removeprefix(f"{prefix}.").split(".")
            for name in path:
                inner = node.get(name)
                if not isinstance(inner, dict):
                    inner = node[name] = {}
                node = inner
            if not isinstance(node.get(leaf), dict):
                node[leaf] = value
        return _lists(tree)

    def having(self, *prefixes: str) -> bool:
        """Whether any attribute has one of these prefixes."""
        return any(key.startswith(prefixes) for key in self.values)


def _flat(prefix: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = [(str(place), item) for place, item in enumerate(value)]
    else:
        return {prefix: value}
    return {key: item for name, inner in items for key, item in _flat(f"{prefix}.{name}", inner).items()}


def _lists(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(key.isdigit() for key in node):
        return [_lists(node[key]) for key in sorted(node, key=int)]
    return {key: _lists(value) for key, value in node.items()}
