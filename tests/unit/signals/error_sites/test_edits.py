"""Whose fault is a command that fails after an edit? That of the edit of which it speaks, if of any."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Text
from postgrad.signals.error_sites.sites import Site, find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

OK = [("done", False)]


def wrote(path: str, id: str = "e0") -> Message:
    return act(call("Write", {"file_path": path, "content": "x"}, id))


def only(builder: TraceBuilder) -> Site:
    (site,) = find_sites(builder.build())
    return site


@pytest.mark.parametrize(
    ("path", "command", "text"),
    [
        ("proto/user.proto", "gen", "proto/user.proto:3:21:field number 1 has already been used"),
        ("/w/src/cli.py", "app --json", '  File "/w/src/cli.py", line 3\n    x(\n     ^\nSyntaxError: never closed'),
        ("clean.sh", "bash clean.sh", "find: unknown predicate `-emtpy'"),
        ("deploy/main.tf", "terragrunt apply", "Error: Unsupported block\n\n  on deploy/main.tf line 3, in resource"),
        ("blog/models.py", "python manage.py makemigrations", "impossible to add a non-nullable field"),  # a check
        ("Main.java", "gen", "[ERROR] Main.java:[14,13] cannot find symbol"),
    ],
)
def test_a_place_in_an_edited_file_or_an_edited_program_is_the_edits_fault(path: str, command: str, text: str) -> None:
    """The edit is step 0, the command step 1; what stands in the file is a check on the edit."""
    builder = TraceBuilder().step(wrote(path), OK).step(act(bash(command, "c1")), [(f"Exit code 1\n{text}", True)])
    site = only(builder)
    assert (site.kind, site.verdict, site.step, site.call) == ("check_failed", "real", 0, "c1")


@pytest.mark.parametrize(
    ("path", "command", "text"),
    [
        ("user.proto", "gen", "proto/account.proto:3:21:field number 1 has already been used"),
        ("a.py", "python -c 'import a; a.f(1, 2)'", '  File "<string>", line 1, in <module>\nTypeError: f() takes 1'),
        ("a.py", "python b.py", '  File "a.py", line 1, in f\n  File "b.py", line 2, in g\nKeyError: 1'),
        ("b.sh", "./ab.sh", "permission denied while copying"),
    ],
)
def test_other_places_leave_the_blame_with_the_command(path: str, command: str, text: str) -> None:
    builder = TraceBuilder().step(wrote(path), OK).step(act(bash(command, "c1")), [(f"Exit code 1\n{text}", True)])
    assert (only(builder).kind, only(builder).step) == ("tool_error", 1)


def test_a_program_that_ran_well_since_is_not_to_blame() -> None:
    builder = TraceBuilder().step(wrote("a.py"), OK).step(act(bash("python a.py", "c1")), OK)
    fails = [('Exit code 1\n  File "a.py", line 2, in f\nZeroDivisionError: division by zero', True)]
    assert only(builder.step(act(bash("python a.py 0", "c2")), fails)).step == 2


def test_a_file_is_named_by_its_whole_name() -> None:
    """`test_slug.py` names the test and not `slug.py`: a run of the test alone is no test-first run of both."""
    fails = [("Exit code 1\ntests/test_slug.py:9: AssertionError\n1 failed", True)]
    run = act(bash("pytest -q tests/test_slug.py", "c2"))
    both = TraceBuilder().step(wrote("tests/test_slug.py", "e0"), OK).step(wrote("src/slug.py", "e1"), OK)
    site = only(both.step(run, fails))
    assert (site.verdict, site.step) == ("real", 1)
    assert only(TraceBuilder().step(wrote("tests/test_slug.py"), OK).step(run, fails)).verdict == "expected"


def test_a_test_that_is_broken_itself_is_to_blame_and_one_of_other_code_too() -> None:
    broken = [
        ("Exit code 1\ntests/test_slug.py:2: in test\nE   NameError: name 'slugify' is not defined\n1 failed", True)
    ]
    fails = [("Exit code 1\ntests/test_slug.py:9: AssertionError\n1 failed", True)]
    for path, text in (("src/slug.py", broken), ("mix.exs", fails)):
        builder = TraceBuilder().step(wrote("tests/test_slug.py", "e0"), OK).step(wrote(path, "e1"), OK)
        assert only(builder.step(act(bash("pytest", "c2")), text)).step == 0


def test_an_agents_edit_is_of_the_file_that_it_opened() -> None:
    """SWE-agent's `edit` names no file: the script that shows the bug is the one that was created before."""
    builder = TraceBuilder().step(act(bash("create reproduce.py", "c0")), OK)
    builder.step(act(bash("edit 1:1\nprint(f([]))\nend_of_edit", "c1")), OK)
    fails = [("Traceback (most recent call last):\nIndexError: list index out of range", None)]
    assert only(builder.step(act(bash("python reproduce.py", "c2")), fails)).verdict == "expected"


@pytest.mark.parametrize(
    ("said", "text", "expected"),
    [
        ("Let me reproduce the issue first.", "Expecting property name: line 4 column 1", "expected"),
        ("I'll confirm that the import fails.", "RuntimeError: the bug", "expected"),
        ("Let me reproduce the issue first.", "usage: csvstat [-h]", "real"),
        ("Let me reproduce the issue first.", '  File "<string>", line 1\nSyntaxError: invalid syntax', "real"),
        ("Let me look at the numbers.", "Expecting property name: line 4 column 1", "real"),
    ],
)
def test_a_command_that_is_to_show_the_bug_may_fail_as_the_model_says(said: str, text: str, expected: str) -> None:
    shows = act(Text(said), bash("csvstat --json a.csv", "c0"))
    assert only(TraceBuilder().step(shows, [(f"Exit code 1\n{text}", True)])).verdict == expected


@pytest.mark.parametrize(
    ("asked", "command", "text", "expected"),
    [
        ("find out why the daemon segfaults", "./daemon", "Segmentation fault (core dumped)", "expected"),
        ("app.py fails on Windows", "python app.py", "Traceback (most recent call last):\nKeyError: 1", "expected"),
        ("app.py fails on Windows", "python -c 'f(1)'", "Traceback (most recent call last):\nKeyError: 1", "real"),
        ("app.py fails on Windows", "python app.py", "app.py: bad option", "real"),
        ("add a dark theme", "./daemon", "Segmentation fault (core dumped)", "real"),
    ],
)
def test_a_program_that_the_user_says_fails_may_crash(asked: str, command: str, text: str, expected: str) -> None:
    builder = TraceBuilder(asked).step(act(bash(command)), [(f"Exit code 1\n{text}", True)])
    assert only(builder).verdict == expected


def test_after_an_edit_of_the_source_it_may_not() -> None:
    shows = act(Text("Reproduce it again."), bash("csvstat --json a.csv", "c1"))
    builder = TraceBuilder().step(wrote("src/stat.py"), OK).step(shows, [("Exit code 1\nRuntimeError: the bug", True)])
    assert only(builder).verdict == "real"
