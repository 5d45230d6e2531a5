"""How postgrad's pages are set: one jinja environment, and the colours and letters that they share (`base.css`).

Everything is escaped unless it is marked as safe, and a name that is not given is an error.
"""

from __future__ import annotations

from functools import cache

import jinja2


@cache
def environment(package: str) -> jinja2.Environment:
    """The templates of `package`, with the shared ones behind them."""
    own = jinja2.PackageLoader(package, "templates")
    shared = jinja2.PackageLoader("postgrad.run", "templates")
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([own, shared]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
