"""`resolve`: from a short name in a recipe to the object that it names.

Three ways, in this order: the plug-in point's own table, `module:Attribute` written out, an installed entry point of
the group `postgrad.<point>`. Tables hold text, so naming a plug-in imports nothing and nothing registers on import.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from typing import Any

from postgrad.core.errors import ConfigError
from postgrad.run.nearest import close, nearest

_FEW = 20  # names; more of them hide the one that was meant


def resolve(point: str, name: str, table: Mapping[str, str]) -> Any:
    """Import what `name` stands for.

    Args:
        point: the plug-in point, as errors and entry points name it ("teacher", "method", ...).
        name: a key of `table`, a `module:Attribute`, or the name of an entry point.
        table: short name -> `module:Attribute`.

    Raises:
        ConfigError: nothing has this name (the nearest or all known ones are told), or the module or attribute is not
            there.
    """
    if name in table:
        return _attribute(table[name])
    if ":" in name:
        return _imported(point, name)
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    installed = {entry.name: entry for entry in entry_points(group=f"postgrad.{point}")}
    if name in installed:
        return installed[name].load()
    known = sorted({*table, *installed})
    meant = nearest(name, known) if close(name, known) else ""
    names = f"one of {len(known)} names" if meant and len(known) > _FEW else f"one of {', '.join(known)}"
    raise ConfigError(f"unknown {point}", got=name, expected=f"{names}, or module:Attribute", do=meant)


def _imported(point: str, target: str) -> Any:
    """A target that the user wrote: what is not there is the user's mistake, not ours."""
    module = target.partition(":")[0]
    try:
        return _attribute(target)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise  # the module is there, but a library that it needs is not
        raise ConfigError(f"{point} '{target}': no module named '{error.name}'") from None
    except AttributeError:
        raise ConfigError(f"{point} '{target}': the module has no such attribute") from None


def _attribute(target: str) -> Any:
    module, _, attributes = target.partition(":")
    return reduce(getattr, attributes.split("."), import_module(module))
