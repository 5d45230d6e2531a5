"""Is the place to blame? What a sandbox lacks, networks, limits and time outs are no mistake of the model.

A program that nobody promised, a service that is down, a missing system library: verdict `env`. A path or module that
the session itself speaks of is not unknown: to run it from the wrong place is a mistake. The second identical try is a
mistake too (`repeats`).
"""

from __future__ import annotations

import re

from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.shell.commands import about_files
from postgrad.signals.shell.misspelt import is_misspelt
from postgrad.signals.words.phrases import Phrases, one_of
from postgrad.signals.words.wordings import (
    BUSY_OR_LIMITED,
    COMMAND_NOT_FOUND,
    MISSING_SYSTEM_PART,
    NETWORK_DOWN,
    NO_RULE,
    NO_SUCH_FILE,
    NOT_ALLOWED,
    OUT_OF_SERVICE,
    PERMISSION_DENIED,
    TIMED_OUT,
)

_MODULE = re.compile(
    r"No module named ['\"]?([\w-]+)|Cannot find (?:module|package) '(?![A-Za-z]:|node:)([^'./\\][^'/]*)"
    r"|no required module provides package (\S+?)[;\s]"
    r"|package ([\w.]+) does not exist$|cannot load such file -- (\w+)",
    re.MULTILINE,
)
_PROGRAM = re.compile(
    r"(?:^|: )([^\s:'\"]+): (?:command )?not found|command not found: (\S+)"
    r"|['‘“\"]([^'’”\"\n]+)['’”\"] is not recognized|^(?:\S+: )?(\S+): ",
    re.MULTILINE,
)
_BUILDS = frozenset({"make", "gmake", "cmake", "ninja", "configure", "meson", "bazel"})
# A place in source code, or the name of a failing test: the build got as far as the code.
_IN_SOURCE = re.compile(
    r"[\w./\\-]+\.[A-Za-z]\w{0,5}(?:[:(]\d+|\", line \d+)|^--- FAIL|^FAIL(?:ED)?[: (]"
    r"|\b\d+ (?:passed|failed|failures?|tests?|examples?)\b",
    re.MULTILINE,
)
_BUILD_FILES = re.compile(r"(?:CMakeLists\.txt|\.cmake|[Mm]akefile|\.mk|\.bazel|build\.gradle|pom\.xml)[:(]\d+")
# What is wrong in the build file itself, or that there is none where the model looks for it.
_BAD_BUILD_FILE = re.compile(
    r"does not appear to contain CMakeLists|no targets specified and no makefile|unknown target|missing separator"
    r"|recipe commences before|unterminated|(?:syntax|parse) error|unexpected (?:token|end"
    r"|character)|missing endif",
    re.I,
)
_LOCAL_SERVER = Phrases(
    r"connection refused|ECONNREFUSED|failed to connect to (?:localhost|127\.)|connection to \S+ (?:was )?refused"
)
_WINDOWS = Phrases(r"the name of a cmdlet|an internal or external command|als Name eines Cmdlet|interner oder externer")
_OF_UNIX = frozenset(
    [
        *("grep", "sed", "awk", "head", "tail", "touch", "which", "export", "cut", "tr", "xargs", "wc", "uniq", "ls"),
        *("chmod", "chown", "ln", "cat", "rm", "cp", "mv", "less", "nano", "vi", "sudo", "source", "true"),
    ]
)
# The names that services give to their own trouble, in an error object: `ServiceUnavailable`, `token_expired`.
_CODES = (
    r"(?:service|server|temporarily|backend|upstream)?_?unavailable|overloaded|under_?maintenance",
    r"throttl\w+|rate_?limit\w*|too_?many_?requests|quota_?exceeded|resource_?exhausted",
    r"(?:token|session|key|credentials?)_?expired|expired_?(?:token|session|key|credentials?)",
    r"unauthenticated|unauthori[sz]ed|authentication_?(?:error|failed|required)",
    r"internal(?:_?(?:server_?)?error)?|bad_?gateway|gateway_?time_?out|(?:\w+_)?timed?_?out|deadline_?exceeded",
    r"forbidden|(?:permission|access)_?denied|(?:insufficient|missing)_?(?:permissions?|scopes?|privileges?)",
    r"(?:in|under|scheduled)?_?maintenance(?:_?mode)?|[45]0[13]|50[024]|429",
    r"market_?closed|outside_?(?:of_?)?(?:business|trading|opening|office|market)_?hours",
    r"network_?error|connection_?(?:error|reset|refused|failed|lost|closed)",
)
_NAMED_CODE = re.compile(
    rf"\"(?:error|code|type|status|reason|name|(?:error|status)_?code|__type)\"\s*:\s*\"?{one_of(*_CODES)}"
    r"(?:_?(?:error|exception))?\"?\s*[,}\]]",
    re.IGNORECASE,
)
_OUTSIDE = (NETWORK_DOWN, BUSY_OR_LIMITED, TIMED_OUT, MISSING_SYSTEM_PART)
# The server was reached and does not know what was asked for.
_ANSWERED = re.compile(r"\b(?:status(?: code)?|HTTP(?:/[\d.]+)?|error)\W{0,3}4(?:0[0456]|1\d|2[0-8])\b", re.IGNORECASE)
# Programs that say with their exit code alone that the network let them down.
_NETWORK_CODES = {"curl": (5, 6, 28, 35, 56), "wget": (4,)}
# A package of others that does not build here; the project itself is the model's business.
_OF_OTHERS = re.compile(r"\bpip3? install (?!.*(?:\s\.(?:\[|/|\s|$)|\s-e\b|--editable))")
_DOES_NOT_BUILD = re.compile(
    r"subprocess-exited-with-error|failed (?:to build|building wheel)|metadata-generation-failed", re.I
)
_FILE_TOOLS = re.compile(r"^(?:rm|cp|mv|mkdir|rmdir|touch|ln|install|tee|chmod|chown|rsync): ")
# A page that its server keeps from programs, or from strangers.
_KEPT_FROM_US = re.compile(
    r"unable to fetch|robots\.txt|not allowed to (?:fetch|access)|\b(?:status(?: code)?|HTTP(?:/[\d.]+)?"
    r"|error)\W{0,3}4(?:0[137]|51)\b",
    re.IGNORECASE,
)
# What belongs to the system and not to the work.
_SYSTEM_PATH = re.compile(
    r"['\"` ]/(?:var|etc|usr|opt|root|sys|proc|dev|boot|lib|run|srv|Library|System|Applications|Volumes|mnt)\b"
)
# A page that was there while the model looked for a part of it: the part was named wrongly.
_NO_PART = re.compile(
    r"waiting for (?:\w+ )?(?:locator|selector|element|getBy\w+)|locator\.\w+: timeout|waiting for (?:function"
    r"|navigation)",
    re.I,
)
LOST = re.compile(r"\S*\s?cd\b|\S*sh: .{0,20}cd: ")
"""How a shell complains that it cannot go to a folder."""
_LOCAL = re.compile(r"localhost|127\.0\.0\.1|\[?::1\b")
_EDGE, _FEW_ROWS, _FIRST_WORDS = 3000, 12, 300


def lacks(evidence: Evidence) -> bool:
    """Whether the failure tells of the environment and not of the action."""
    output = evidence.outcome.output
    text = output if len(output) <= 2 * _EDGE else f"{output[:_EDGE]}\n{output[-_EDGE:]}"
    if any(_SYSTEM_PATH.search(row) and PERMISSION_DENIED.search(row) for row in text.splitlines()[:_FEW_ROWS]):
        return True
    if any(_FILE_TOOLS.match(row) and PERMISSION_DENIED.search(row) for row in text.splitlines()[:_FEW_ROWS]):
        return True
    if evidence.line is not None and _OF_OTHERS.search(evidence.line) and _DOES_NOT_BUILD.search(text):
        return True
    if evidence.kind in ("read", "edit", "search") and about_files(evidence.call):
        return bool(
            TIMED_OUT.search(text[:300]) or BUSY_OR_LIMITED.search(text[:300]) or NETWORK_DOWN.search(text[:300])
        )
    if _NAMED_CODE.search(text[:_EDGE]):
        return True
    if _NO_PART.search(text[:_EDGE]):
        return False
    if evidence.kind == "other" and (
        OUT_OF_SERVICE.search(text[:_FIRST_WORDS]) or NOT_ALLOWED.search(text[:_FIRST_WORDS])
    ):
        return True
    if "url" in (evidence.call.arguments or {}) and _KEPT_FROM_US.search(text[:300]):
        return True
    if evidence.outcome.code in _NETWORK_CODES.get((evidence.programs or ("",))[-1], ()):
        return True
    if evidence.outcome.code == 124 or _unknown_program(evidence, text) or _unknown_module(evidence, text):
        return True
    outside = (BUSY_OR_LIMITED, TIMED_OUT, MISSING_SYSTEM_PART) if _ANSWERED.search(text) else _OUTSIDE
    if any(pattern.search(text) for pattern in outside):
        return True
    if _LOCAL_SERVER.search(text) and not _LOCAL.search(evidence.line or ""):
        return True
    return _build_cannot_start(evidence, text)


def _unknown_program(evidence: Evidence, text: str) -> bool:
    """A program that is not there and that nobody promised; a path to one is a guess of the model's."""
    if not COMMAND_NOT_FOUND.search(text):
        return False
    if NO_SUCH_FILE.search(text) and evidence.outcome.code == 127 and "not found" not in text.lower():
        return False
    names = {name for found in _PROGRAM.finditer(text) for name in found.groups() if name}
    typed = [name for name in names if name in (evidence.line or "")]
    typed += [name for name in evidence.programs if name in text.lower()]
    other_shell = _WINDOWS.search(text) is not None and any(name in _OF_UNIX for name in typed)
    return not other_shell and not any("/" in name or is_misspelt(name) for name in typed)


def slipped(evidence: Evidence) -> bool:
    """Whether the shell does not know a name of the line that is written wrongly: `esle`, `pytets`."""
    said = evidence.outcome.output[:_EDGE]
    if not COMMAND_NOT_FOUND.search(said):
        return False
    names = {name for found in _PROGRAM.finditer(said) for name in found.groups() if name}
    return any(is_misspelt(name) for name in names if name in (evidence.line or ""))


def _unknown_module(evidence: Evidence, text: str) -> bool:
    """A library that is not installed, unless it is the project's own."""
    found = [name for match in _MODULE.finditer(text) for name in match.groups() if name]
    return bool(found) and not any(name.split(".")[0].lower() in evidence.session_names for name in found)


def is_lost(text: str) -> bool:
    """The shell cannot go to the folder that the model named, and says no more: what was to come did not begin."""
    rows = text.strip().splitlines()
    return len(rows) == 1 and LOST.match(rows[0]) is not None


def _build_cannot_start(evidence: Evidence, text: str) -> bool:
    """A build system that fails before it comes to any source file cannot run in this place."""
    deciding = [name for name in evidence.programs if name in _BUILDS]
    if not deciding or deciding[-1] != evidence.programs[-1] or is_lost(text):
        return False
    asked = NO_RULE.search(text) is not None and re.search(r"['\"`»«“]Makefile", text) is None
    if asked or _BAD_BUILD_FILE.search(text) or re.search(r"(?:invalid|unknown|unrecogni[sz]ed) option", text):
        return False
    return _IN_SOURCE.search(_BUILD_FILES.sub("", text)) is None and not PERMISSION_DENIED.search(text)
