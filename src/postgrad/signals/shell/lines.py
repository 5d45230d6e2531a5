"""Shell lines taken apart: simple commands with the operators between them, the files that a line writes.

A line's exit code is the last command's, as far as it is not thrown away on the way: behind a pipe, before `;`,
under `|| true`. Bodies of here-documents are data and not commands. Not covered: functions, substitutions inside
words, `set -o pipefail`; PowerShell and cmd lines only as far as they look like a Unix shell's.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

import msgspec

_PREFIXES = frozenset(
    {"sudo", "time", "env", "nohup", "exec", "command", "stdbuf", "nice", "xvfb-run", "unbuffer", "timeout"}
)
_KEYWORDS = frozenset({"do", "then", "else", "elif", "if", "while", "until", "{", "}", "(", ")", "!", "done", "fi"})
_ASSIGNMENT = re.compile(r"\w+=")
_TIME_LIMIT = re.compile(r"-\w+|--[\w-]+(?:=\S+)?|[\d.]+[smhd]?")
_LOOPS = frozenset({"for", "case", "select", "esac", "function"})
_LONGEST = 10_000  # characters
_SEPARATORS = frozenset(";|&\n")
_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*['\"\\]?(?P<word>\w+)['\"]?")
_REDIRECTED = re.compile(r"(?<![<>&\d=-])(?:1|&)?>{1,2}\|?\s*(?P<path>\"[^\"\n]+\"|'[^'\n]+'|[^\s;&|<>()'\"]+)")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(?P<path>\S.*?)\s*$", re.MULTILINE)
OPEN_FILE = "the open file"
"""What an agent's own `edit` command changes: the file that it opened before."""
# Python and Node in a line: what they open for writing, by a text or by a name that was given one.
_OPENED = re.compile(
    r"\bopen\(\s*(?:['\"](?P<path>[^'\"\n]+)['\"]|(?P<name>\w+))\s*,\s*(?:mode=)?['\"][wax]"
    r"|\bPath\(['\"](?P<text>[^'\"\n]+)['\"]\)\.write_(?:text|bytes)|\b(?P<held>\w+)\.write_(?:text|bytes)\("
    r"|\bwriteFileSync\(\s*(?:['\"](?P<js>[^'\"\n]+)['\"]|(?P<jsname>\w+))"
)
_GIVEN = re.compile(r"\b(?P<name>\w+) ?= ?(?:\w+\.)?(?:Path\()?[rf]?['\"](?P<path>[^'\"\n{}]+)['\"]")
_STREAMS = re.compile(r"\A(?:/dev/\w+|&\d|\$null|nul)\Z", re.IGNORECASE)


class ShellLine(msgspec.Struct, frozen=True):
    """`commands`: words of each simple command, its program first. `after[i]`: the operator behind command i."""

    commands: tuple[tuple[str, ...], ...]
    after: tuple[str, ...]

    @property
    def deciding(self) -> tuple[str, ...]:
        """The command whose exit code is the line's."""
        return self.commands[-1] if self.commands else ()

    @property
    def loses_code(self) -> bool:
        """Whether an earlier command can fail without the line's exit code telling."""
        return any(operator != "&&" for operator in self.after[:-1])


@lru_cache(maxsize=4096)
def parse_line(line: str) -> ShellLine:
    """The line as simple commands, without redirections, assignments, keywords and `sudo`-likes."""
    groups: list[tuple[list[str], str]] = []
    words: list[str] = []
    for word in _words(_without_bodies(line)):
        if set(word) <= _SEPARATORS:
            groups.append((words, _operator(word)))
            words = []
        else:
            words.append(word)
    groups.append((words, ""))
    kept = [(tuple(program), operator) for words, operator in groups if (program := _program_first(words))]
    return ShellLine(tuple(words for words, _ in kept), tuple(operator for _, operator in kept))


@lru_cache(maxsize=4096)
def _without_bodies(line: str) -> str:
    """The line without the bodies of its here-documents, cut where no line that somebody wrote would still go on."""
    rows = line.split("\n")
    ends = {row.strip() for row in rows}
    kept: list[str] = []
    end = ""
    for row in rows:
        if end:
            end = "" if row.strip() == end else end
            continue
        opened = _HEREDOC.search(row)
        if opened is not None and opened["word"] in ends:
            end = opened["word"]
            row = row[: opened.start()] + row[opened.end() :]
        kept.append(row)
    return "\n".join(kept)[:_LONGEST]


def _words(line: str) -> list[str]:
    joined = re.sub(r"\\\n", " ", line)
    lexer = shlex.shlex(joined, posix=True, punctuation_chars=";|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote: fall back to plain words
        parts = re.split(r"([;|&\n]+)", joined)
        return [word for at, part in enumerate(parts) for word in ([part] if at % 2 else part.split())]


def _operator(word: str) -> str:
    """Newlines and background runs separate like `;`."""
    bare = word.strip("\n")
    return bare if bare in ("&&", "||", "|", "|&") else ";"


def _program_first(words: list[str]) -> list[str]:
    if words and (words[0] in _LOOPS or words[0].startswith("#")):
        return []
    kept = [word for word in _unredirected(words) if word not in ("{", "}")]
    while kept and (kept[0] in _PREFIXES or kept[0] in _KEYWORDS or _ASSIGNMENT.match(kept[0])):
        if kept[:2] in (["command", "-v"], ["command", "-V"]):  # asks for a program and runs none
            break
        timed = kept[0] == "timeout"  # `timeout -k 5 60 CMD`: the program is the one that is timed
        kept = kept[1:]
        while timed and kept and _TIME_LIMIT.fullmatch(kept[0]):
            kept = kept[1:]
    if kept and len(kept[0]) > 1:
        kept[0] = kept[0].lstrip("(") or kept[0]
    return kept


def _unredirected(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif re.match(r"^\d*[<>]", word) or word.startswith("&>"):
            skip = re.fullmatch(r"\d*(?:[<>]{1,3}|&>>?)", word) is not None
        elif not re.fullmatch(r"\d", word):
            kept.append(word)
    return kept


def written_files(line: str) -> tuple[str, ...]:
    """Files that the line writes: redirections, `tee`, in-place `sed` and `perl`, patches, small programs in it."""
    patched = tuple(found["path"] for found in _PATCHED.finditer(line)) if "*** " in line or "+++ " in line else ()
    bare = _without_bodies(line)
    paths = [found["path"].strip("\"'") for found in _REDIRECTED.finditer(_unquoted(bare))]
    for words in parse_line(line).commands:
        name = words[0].rsplit("/", 1)[-1]
        if name == "tee":
            paths += [word for word in words[1:] if not word.startswith("-")]
        elif name in ("sed", "gsed", "perl") and any(re.match(r"^-\w*i|^--in-place", word) for word in words):
            paths += [word for word in words[1:] if not word.startswith("-")][-1:]
        elif name == "str_replace_editor" and words[1:2] != ("view",):  # an agent's own editing commands
            paths += words[2:3]
        elif name in ("create", "edit"):
            paths += words[1:2] if name == "create" else [OPEN_FILE]
    return tuple(path for path in (*paths, *patched, *_programmed(line)) if path and not _STREAMS.match(path))


def _programmed(line: str) -> list[str]:
    """What a program that stands in the line opens for writing (`python - <<EOF`, `node -e`)."""
    if "open(" not in line and ".write_" not in line and "writeFileSync(" not in line:
        return []
    given = {found["name"]: found["path"] for found in _GIVEN.finditer(line)}
    found = [{key: value for key, value in match.groupdict().items() if value} for match in _OPENED.finditer(line)]
    return [
        given.get(value, "") if key in ("name", "held", "jsname") else value
        for one in found
        for key, value in one.items()
    ]


def _unquoted(line: str) -> str:
    """Quoted words that hold an arrow (`echo "a > b"`) are text; a quoted file name behind an arrow is kept."""
    return re.sub(
        r"(?<![>\s])(?<!> )(\"[^\"\n]*\"|'[^'\n]*')|(?<=\s)(?<!> )(\"[^\"\n]*>[^\"\n]*\"|'[^'\n]*>[^'\n]*')", "''", line
    )
