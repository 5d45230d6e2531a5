"""Is the model that answered the one that was asked?

Names are compared without case and without the part before the last slash (a router's or an organisation's name).
Tags after a colon (`:70b`) must be equal where both names have one that says something (`:latest` and `:free` do not).
Then the served name must be the asked one, or the asked one with a version behind it: a date (`-2024-08-06`,
`-20240806`, `-0806`), a number (`-001`, `@001`) or `-latest`. An asked name that ends in `-latest` stands for any
version of what is before. What else may answer is listed by the user; `*` is anything. A response that names no model
is taken at its word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|latest)\Z")
_SAYS_NOTHING = ("latest", "free")


def same_model(asked: str, served: str, accepted: Sequence[str] = ()) -> bool:
    """Whether an answer of `served` counts as one of `asked`; `accepted` are further names that may answer."""
    if not served or "*" in accepted:
        return True
    name, tag = _parts(served)
    for wanted, wanted_tag in map(_parts, (asked, *accepted)):
        versions = (name, _VERSION.sub("", name))
        if wanted.removesuffix("-latest") in versions and (tag == wanted_tag or not tag or not wanted_tag):
            return True
    return False


def _parts(name: str) -> tuple[str, str]:
    """Name and tag, both without what says nothing."""
    plain, _, tag = name.strip().lower().rstrip("/").rpartition("/")[2].partition(":")
    return plain, "" if tag in _SAYS_NOTHING else tag
