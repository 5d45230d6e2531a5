"""What was edited before a failure, and which of the edits the failure speaks of.

An edit is whatever writes a file: an edit tool, a patch, a redirection, `sed -i`. A failure speaks of an edit where it
names a place in its file (of a Python traceback the last frame counts: what comes before it only called), or where the
program that failed is the file itself (`bash clean.sh`). Not covered: files that are moved, and names made at run time.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple
from weakref import WeakKeyDictionary

from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.shell.commands import edited_files, path_of, simple_commands
from postgrad.signals.shell.lines import OPEN_FILE
from postgrad.signals.shell.programs import READERS, SEARCHES, checkers, is_check, is_test_run

FRAMES = re.compile(r"^\s*File \"([^\"]+)\", line \d+", re.MULTILINE)
TEST_FILE = re.compile(r"(?:^|[/\\_.-])(?:tests?|specs?)(?:[/\\_.-]|$)|[a-z]Tests?\.|__tests__", re.IGNORECASE)
BROKEN = re.compile(
    r"^(?:E\s+)?(?:SyntaxError|IndentationError|TabError|NameError|ImportError|ModuleNotFoundError): ", re.MULTILINE
)
"""What a Python file says that does not get to its work."""
_TEXTS = (("old_string", "old_str", "oldString"), ("new_string", "new_str", "newString"))
_TEST_CODE = re.compile(r"^\s*(?:#\[(?:\w+::)?test\b|#\[cfg\(test\)\]|test \"[^\"]*\" \{|unittest\b)", re.MULTILINE)
_INERT = re.compile(r"\.(?:md|rst|log|out|adoc)$|(?<!CMakeLists)(?<!requirements)\.txt$", re.IGNORECASE)
# What makes pages of texts.
_MAKES_PAGES = re.compile(
    r"\b(?:hugo|jekyll|mkdocs|sphinx-build|docusaurus|vitepress|mdbook|quarto|antora|asciidoctor)\b"
)
_BUILD_FILE = re.compile(
    r"^(?:CMakeLists\.txt|[Mm]akefile|build\.gradle(?:\.kts)?|pom\.xml|meson\.build)$|\.(?:cmake|mk|bazel)$"
)
_SCRATCH = re.compile(r"^(?:/private)?/(?:var/)?tmp/")
# Folders that no project is in.
_ELSEWHERE = re.compile(r"^(?:/private)?/(?:(?:var/)?tmp|usr|etc|dev|proc|sys|bin|opt|lib)(?:/|$)")
# `a.py:3`, `a.ts(3,7)`, `a.sh: line 3:`, `on main.tf line 3`, `[a.java:[3,7]`
_PLACES = re.compile(
    r"(?P<path>[\w./\\@-]*(?:\w\.[A-Za-z]\w{0,9}|\b(?:Make|Docker|Just|Rake|Gem)file))(?::\[?\d|\(\d+[,)]|: line \d"
    r"|['\"],? line:? \d| line:? \d)"
)
_INTERPRETERS = re.compile(
    r"python[\d.]*|node|deno|bun|tsx|ts-node|ruby|perl|php|lua|Rscript|(?:ba|z|da|k)?sh|pwsh|source|\."
)
_EDGE = 6000  # characters


class Edit(NamedTuple):
    """A file that was changed at a step.

    `creates`: the call made or overwrote it whole. `tests`: it is a file of tests, or tests were added to it.
    """

    step: int
    path: str
    creates: bool
    tests: bool

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return base(self.path)

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self.name.split(".", 1)[0]

    @property
    def inert(self) -> bool:
        """Notes and logs break nothing."""
        return _INERT.search(self.path) is not None


class _Done(NamedTuple):
    """What one call edited, and its line if it is one that went well."""

    step: int
    edits: list[Edit]
    passed: str | None


_DONE: WeakKeyDictionary[History, list[_Done]] = WeakKeyDictionary()  # worked out once a trace and not once a question


def edits_since_pass(history: History, stop: int, *, line: str) -> list[Edit]:
    """A build that passes does not vouch for the tests, nor one linter for another: only a run of the kind does."""
    edits: list[Edit] = []
    for done in _done_before(history, stop):
        if done.passed is not None and _vouches(done.passed, line):
            edits.clear()
        edits += done.edits
    return [edit for edit in edits if not edit.inert or _MAKES_PAGES.search(line)]


def edits_before(history: History, stop: int) -> list[Edit]:
    """Every edit before a step, in order."""
    return [edit for done in _done_before(history, stop) for edit in done.edits]


def edits_before_run(evidence: Evidence, step: int) -> list[Edit]:
    """``sed -i ... && pytest``: the line itself edits, and then runs."""
    line = evidence.line or ""
    runs = [words for words in simple_commands(line) if is_test_run(shlex.join(words)) or is_check(shlex.join(words))]
    start = line.rfind(runs[0][0]) if runs else 0
    made = [path for path in edited_files(evidence.call) if -1 < line.find(path) < start]
    tests = [TEST_FILE.search(path) is not None for path in made]
    edits = [Edit(step, path, creates=test, tests=test) for path, test in zip(made, tests, strict=True)]
    return [edit for edit in edits if not edit.inert]


def blamed(edits: list[Edit], text: str) -> int:
    """The step of the latest edit whose file the text names, else of the latest edit.

    A test that was written before its code names itself when the code does not do what it asks; that is the code's
    fault, unless the test is broken itself.
    """
    spoken = [edit for edit in edits if names_file(text, edit.name)]
    tests = [edit for edit in spoken if edit.tests]
    if tests and tests == spoken and not BROKEN.search(text):
        code = [edit for edit in edits if edit not in tests and edit.step > tests[0].step]
        spoken = [edit for edit in code if any(edit.stem in test.stem for test in tests)] or spoken
    return (spoken or edits)[-1].step


def edit_at_fault(history: History, evidence: Evidence, *, step: int) -> int | None:
    """The step of the edit that a failed command speaks of by a place, or that wrote the program it runs."""
    reads = evidence.programs and evidence.programs[-1] in READERS | SEARCHES
    if evidence.line is None or reads:
        return None
    wanted = places_in(evidence.outcome.output) or _scripts(evidence.line)
    found: list[Edit] = []
    for done in _done_before(history, step):
        ran = _scripts(done.passed) if done.passed is not None else []  # what went well since is not what failed
        found = [edit for edit in found if not any(_same_file(edit.path, path) for path in ran)]
        found += [edit for edit in done.edits if any(_same_file(edit.path, path) for path in wanted)]
    return found[-1].step if found else None


def breaks_build(history: History, evidence: Evidence, *, step: int) -> bool:
    """Whether what is wrong with a build stands in a build file that was edited before."""
    places = [path for path in places_in(evidence.outcome.output) if _BUILD_FILE.search(base(path))]
    return any(_same_file(edit.path, path) for edit in edits_before(history, step) for path in places)


def names_file(text: str, name: str) -> bool:
    """Whether a text has the name as a whole: `test_a.py` is not `a.py`."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def base(path: str) -> str:
    """The last part of a path."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def _done_before(history: History, stop: int) -> Iterator[_Done]:
    if history not in _DONE:
        _DONE[history] = list(_all_done(history))
    return takewhile(lambda done: done.step < stop, _DONE[history])


def _all_done(history: History) -> Iterator[_Done]:
    opened = ""
    scratch = _has_project(history)
    for step, evidence in history.answered():
        opened = _opened(evidence) or opened
        paths = (opened or path if path == OPEN_FILE else path for path in edited_files(evidence.call))
        files = [path for path in paths if not (scratch and _SCRATCH.match(path))]
        went_well = history.succeeded(evidence)
        if not went_well:  # `cat > a.py <<EOF ...; python a.py`: what failed is the run, the file is there
            files = [path for path in files if evidence.line is not None and _writes_first(evidence.line, path)]
        creates = evidence.kind == "shell" or re.search(r"write|create", evidence.call.name, re.IGNORECASE) is not None
        sub = (evidence.call.arguments or {}).get("command")
        adds = _adds_tests(evidence)
        made = [
            Edit(step.index, path, creates or sub == "create" or adds, adds or TEST_FILE.search(path) is not None)
            for path in files
        ]
        passed = evidence.line if went_well and evidence.line is not None and _tells(evidence.line) else None
        if made or passed is not None:
            yield _Done(step.index, made, passed)


def _adds_tests(evidence: Evidence) -> bool:
    """Whether an edit puts a test beside the code and changes nothing else (Rust, Zig, D)."""
    arguments = evidence.call.arguments or {}
    texts = ([arguments[key] for key in keys if isinstance(arguments.get(key), str)] for keys in _TEXTS)
    old, new = (found[0] if found else "" for found in texts)
    return bool(old) and old.strip() in new and _TEST_CODE.search(new.replace(old.strip(), "", 1)) is not None


def _has_project(history: History) -> bool:
    """Whether the session works somewhere else than in a folder for scratch files; there these are beside the work."""
    for _, evidence in history.answered():
        paths = [path_of(evidence.call.arguments) or ""]
        paths += [words[1] for words in simple_commands(evidence.line or "") if words[0] == "cd" and len(words) > 1]
        where = (evidence.call.arguments or {}).get("workdir")
        paths += [where] if isinstance(where, str) else []
        if any(path.startswith(("/", "~")) and not _ELSEWHERE.match(path) for path in paths):
            return True
    return False


def _tells(line: str) -> bool:
    """Whether a line that went well says something of what was edited before."""
    return is_test_run(line) or is_check(line) or bool(_scripts(line))


def _opened(evidence: Evidence) -> str:
    """The file that an agent's own command opened (`open a.py`, `create a.py`), which `edit` is then about."""
    commands = simple_commands(evidence.line) if evidence.line is not None else []
    return next((words[1] for words in commands if words[0] in ("open", "create") and len(words) > 1), "")


def _vouches(passed: str, line: str) -> bool:
    """Whether a run of `passed` that went well says that `line` would have, too."""
    if not (is_test_run(passed) or is_check(passed)):
        return False
    return is_test_run(passed) if is_test_run(line) else bool(checkers(passed) & checkers(line))


def _writes_first(line: str, path: str) -> bool:
    """Whether a file is written by the line before its last command."""
    commands = simple_commands(line)
    return len(commands) > 1 and -1 < line.find(path) < line.rfind(commands[-1][0])


def places_in(output: str) -> list[str]:
    """The files in which a complaint names a place."""
    text = output if len(output) <= 2 * _EDGE else f"{output[:_EDGE]}\n{output[-_EDGE:]}"
    frames = FRAMES.findall(text)
    return frames[-1:] or [found["path"] for found in _PLACES.finditer(text)]


def _scripts(line: str) -> list[str]:
    """The files that a line runs as programs: `python a.py`, `./a.sh`."""
    found = []
    for words in simple_commands(line):
        runs = _INTERPRETERS.fullmatch(base(words[0])) is not None
        first = next((word for word in words[1:] if not word.startswith("-")), "") if runs else words[0]
        alone = not runs or not any(word.startswith(("-c", "-e", "-m")) for word in words[1:])
        found += [first] if alone and "." in base(first) else []
    return found


def _same_file(one: str, other: str) -> bool:
    """Whether two paths, each from some folder, may be the same file: the shorter one ends the longer."""
    parts = [[part for part in re.split(r"[\\/]", path) if part not in ("", ".")] for path in (one, other)]
    shorter, longer = sorted(parts, key=len)
    return bool(shorter) and longer[-len(shorter) :] == shorter
