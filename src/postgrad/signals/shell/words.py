"""The normal form of a shell line, as far as it is safe: spacing and needless quotes do not count, meaning does.

A word whose every character stands for itself counts by these characters, however it was quoted: ``ls  "a b"`` is
``ls 'a b'``, and ``a='1' run`` is ``a=1 run`` (but not ``'a=1' run``, which assigns nothing). A word with an expansion,
a pattern, a backslash or a comment counts as it was written, so that ``$HOME`` and ``'$HOME'`` stay apart. Line ends
separate like ``;``. Lines with here-documents count as they stand. Not covered: order of options, equal commands in
other words.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST = 20_000  # characters
_PART = re.compile(
    r"(?P<space>(?:[ \t]|\\\n)+)"
    r"|(?P<operator>\r?\n|&&|\|\||\|&|;;|&>>|&>|>>|>&|>\||<<<|<&|<>|<\(|>\(|[;&|<>()])"
    r"|(?P<single>'[^']*')"
    r'|(?P<double>"(?:[^"\\]|\\.)*")'
    r"|(?P<plain>(?:\\.|[^\s'\"\\;&|<>()])+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_EXPANDED = re.compile(r"[$`\\!]")  # means something between double quotes
_SPECIAL = re.compile(r"[$`*?\[\]{}~!#\\=^%]")  # means something, somewhere, outside of quotes
_OPTION = re.compile(r"--?[\w-]+=[\w./:,@+-]*")  # there `=` is an ordinary character
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")  # the start of an assignment, as long as it is not quoted
_STREAM = re.compile(r"\d+|\{\w+\}")
_KEYWORDS = frozenset(
    {
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "until",
        "for",
        "in",
        "function",
        "time",
    }
)


@lru_cache(maxsize=4096)
def normal_line(line: str) -> tuple[str, ...] | str:
    """What a line says: its words and operators, each marked with what it is; the bare line where that is not safe."""
    bare = line.strip()
    if "<<" in bare.replace("<<<", "") or len(bare) > _LONGEST:
        return bare
    words: list[str] = []
    open_word: list[tuple[str, str]] = []
    for found in _PART.finditer(bare):
        kind = str(found.lastgroup)
        if kind == "other" or (kind == "double" and _is_nested(found[0])):  # an open quote; quotes in quotes
            return bare
        if kind in ("space", "operator"):
            stream = _stream(open_word) if found[0][0] in "<>" else ""
            words += [] if stream else _closed(open_word)
            open_word = []
        if kind == "operator":
            words += _operator(stream + found[0], words)
        elif kind != "space":
            if not open_word and found.start() and bare[found.start() - 1] == ")":
                words.append("on")  # `$(pwd)/a` is one word, `$(pwd) /a` two
            open_word.append((kind, found[0]))
    words += _closed(open_word)
    while words and words[-1] == "op ;":
        words.pop()
    return tuple(words)


def _is_nested(text: str) -> bool:
    """Whether what looks like a quoted part ends at a quote inside of a command that is substituted in it."""
    return text.count("$(") > text.count(")") or text.count("`") % 2 == 1


def _stream(parts: list[tuple[str, str]]) -> str:
    """The number right before a redirection, which says what is redirected: ``2>log`` is not ``2 >log``."""
    return parts[0][1] if len(parts) == 1 and _STREAM.fullmatch(parts[0][1]) else ""


def _operator(written: str, before: list[str]) -> list[str]:
    """Line ends are ``;``; one that follows an operator separates nothing."""
    if written.strip():
        return [f"op {written}"]
    return [] if not before or before[-1].startswith("op ") else ["op ;"]


def _closed(parts: list[tuple[str, str]]) -> list[str]:
    """A word: ``is TEXT`` where it stands for its text, ``set NAME=TEXT`` also, ``as WRITTEN`` where it does not."""
    if not parts:
        return []
    name = _ASSIGNED.match(parts[0][1]) if parts[0][0] == "plain" else None
    if name:
        value = [("plain", parts[0][1][name.end() :]), *parts[1:]]
        if not any(_means_more(kind, text) for kind, text in value):
            return [f"set {name[0]}{_bare(value)}"]
    written = "".join(text for _, text in parts)
    if any(_means_more(kind, text) for kind, text in parts) or (len(parts) == 1 and written in _KEYWORDS):
        return [f"as {written}"]
    return [f"is {_bare(parts)}"]


def _bare(parts: list[tuple[str, str]]) -> str:
    return "".join(text if kind == "plain" else text[1:-1] for kind, text in parts)


def _means_more(kind: str, text: str) -> bool:
    if kind == "plain":
        return _SPECIAL.search(text) is not None and not _OPTION.fullmatch(text)
    return kind == "double" and _EXPANDED.search(text) is not None
