"""Failures seen again with what stands around them: what came before, what the model did and said next."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Reasoning, Text
from postgrad.signals.error_sites.sites import find_sites
from postgrad.signals.words.admissions import admits, yields
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

RED = [("Exit code 1\nAssertionError\n1 failed", True)]
OK = [("done", False)]


def first(builder: TraceBuilder) -> str:
    """The verdict on the first site."""
    return find_sites(builder.build())[0].verdict


def edited() -> TraceBuilder:
    made = call("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, "c0")
    return TraceBuilder().step(act(made), OK)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("These failures are pre-existing and unrelated to our change.", "benign"),
        ("The same tests fail on main.", "benign"),
        ("As expected, the new test fails.", "expected"),
        ("This confirms the bug.", "real"),  # the model had edited: it may be its own
        ("Let me fix the assertion.", "real"),
        ("", "real"),
    ],
)
def test_what_the_model_says_of_a_red_run_after_its_edit(said: str, expected: str) -> None:
    builder = edited().step(act(bash("pytest", "c1")), RED)
    assert first(builder.step(act(Text(said), bash("ls", "c2")), OK)) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I've successfully reproduced the issue.", "expected"),
        ("Docker is not available in this environment.", "env"),
        ("The directory is missing, that's fine.", "benign"),
        ("I will try another way.", "real"),
        ("I see the issue, the flag is wrong.", "real"),
        ("A number was expected there.", "real"),
    ],
)
def test_what_the_model_says_of_a_failed_command(said: str, expected: str) -> None:
    failed = [("Exit code 1\nValueError: x", True)]
    assert first(TraceBuilder().step(act(bash("app run")), failed).step(act(Text(said)))) == expected


def test_thoughts_count_as_words_and_the_users_words_in_between_end_them() -> None:
    thought = Message("assistant", (Reasoning("Good, the test fails as expected."), bash("ls", "c2")))
    assert first(edited().step(act(bash("pytest", "c1")), RED).step(thought, OK)) == "expected"
    asked = edited().step(act(bash("pytest", "c1")), RED).event("user_text", "is that expected?")
    assert first(asked.step(act(Text("That is expected."))))[:4] == "real"


@pytest.mark.parametrize(
    ("between", "expected"),
    [("cat log", "env"), ("sleep 5", "env"), ("docker compose up -d", "real"), ("sed -i s/a/b/ x", "real")],
)
def test_the_very_same_command_that_works_after_a_look_was_right(between: str, expected: str) -> None:
    builder = TraceBuilder().step(act(bash("deploy web")), [("Exit code 1\nError: x", True)])
    builder.step(act(bash(between, "c1")), OK)
    assert first(builder.step(act(bash("deploy web", "c2")), OK)) == expected


@pytest.mark.parametrize(
    ("tool", "wrong", "right", "expected"),
    [
        ("Bash", {"command": "cat srv/main.py"}, {"command": "cat src/main.py"}, "real"),
        ("Bash", {"command": "cat src/main.py"}, {"command": "cat lib/other.py"}, "benign"),
        ("Bash", {"command": "cat v1.txt"}, {"command": "cat v2.txt"}, "benign"),
        ("Read", {"file_path": "/w/modles.py"}, {"file_path": "/w/models.py"}, "real"),
        ("Read", {"file_path": "/w/models.py"}, {"file_path": "/w/model.py"}, "benign"),
    ],
)
def test_a_name_that_is_spelt_otherwise_next_was_a_slip(
    tool: str, wrong: dict[str, str], right: dict[str, str], expected: str
) -> None:
    missing = [("cat: x: No such file or directory" if tool == "Bash" else "File does not exist.", True)]
    builder = TraceBuilder().step(act(call(tool, wrong)), missing)
    assert first(builder.step(act(call(tool, right, "c1")), OK)) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("reprot.txt", "real"), ("other.txt", "benign"), ("report2.txt", "benign")]
)
def test_a_name_that_is_a_slip_of_one_named_before_was_known(name: str, expected: str) -> None:
    missing = [(f"Exit code 1\nbash: {name}: No such file or directory", True)]
    for line in (f"wc -l {name}", f"wc -l < {name}"):
        builder = TraceBuilder().step(act(bash("app > report.txt")), OK)
        assert first(builder.step(act(bash(line, "c1")), missing)) == expected


@pytest.mark.parametrize(
    ("before", "command", "text", "expected"),
    [
        ("ls", "node app.js", "Error: listen EADDRINUSE: address already in use :::3000", "env"),
        ("npm run dev &", "node app.js", "Error: listen EADDRINUSE: address already in use :::3000", "real"),
        ("ls", "curl -s localhost:3000", "curl: (7) Failed to connect to localhost port 3000", "benign"),
        ("node app.js &", "curl -s localhost:3000", "curl: (7) Failed to connect to localhost port 3000", "real"),
        ("node app.js & sleep 1; kill $!", "curl -s localhost:3000", "curl: (7) Failed to connect", "benign"),
        ("ls", "curl -s a.test", "curl: (22) The requested URL returned error: 400", "real"),
    ],
)
def test_ports_and_servers_are_the_models_doing_where_it_started_one(
    before: str, command: str, text: str, expected: str
) -> None:
    builder = TraceBuilder().step(act(bash(before)), OK)
    assert first(builder.step(act(bash(command, "c1")), [(f"Exit code 7\n{text}", True)])) == expected


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("The new test should fail until I add the check.", "expected"),
        ("Without an argument it must refuse.", "expected"),
        ("A missing file should give the readable error.", "expected"),
        ("There are no types yet, so this will list what is to be annotated.", "expected"),
        ("First confirm that it is broken at HEAD.", "expected"),
        ("Check that it is not broken any more.", "real"),
        ("The test should not fail any more.", "real"),
        ("This should now pass.", "real"),
    ],
)
def test_what_was_announced_to_fail_is_expected(says: str, expected: str) -> None:
    assert first(edited().step(act(Text(says), bash("pytest", "c1")), RED)) == expected


@pytest.mark.parametrize(
    ("command", "output", "next_edit", "expected"),
    [
        ("ruff check .", "b.py:1:1 F401 unused", "c.py", "benign"),
        ("ruff check .", "a.py:1:1 F401 unused", "c.py", "real"),  # edited before
        ("ruff check .", "b.py:1:1 F401 unused", "b.py", "real"),  # edited next
        ("mypy .", 'b.py:1: error: Name "other" is not defined', "c.py", "benign"),
        ("mypy .", 'b.py:1: error: Module "a" has no attribute "former"', "c.py", "real"),  # the edit took it away
    ],
)
def test_findings_in_files_that_the_model_leaves_alone_were_there_before(
    command: str, output: str, next_edit: str, expected: str
) -> None:
    made = call("Edit", {"file_path": "a.py", "old_string": "former", "new_string": "latter"}, "c0")
    builder = TraceBuilder().step(act(made), OK).step(act(bash(command, "c1")), [(f"Exit code 1\n{output}", True)])
    again = call("Edit", {"file_path": next_edit, "old_string": "x", "new_string": "y"}, "c2")
    assert first(builder.step(act(again), OK)) == expected


@pytest.mark.parametrize(
    ("tests", "code", "expected"),
    [("tests/test_a.py", "a.py", "expected"), ("tests/test_a.py", "tests/test_a.py", "real"), ("a.py", "a.py", "real")],
)
def test_a_test_added_before_its_code_may_fail_until_code_alone_makes_it_pass(
    tests: str, code: str, expected: str
) -> None:
    builder = TraceBuilder()
    for number, path in enumerate((tests, code)):
        made = call("Edit", {"file_path": path, "old_string": "x", "new_string": "y"}, f"e{number}")
        result = RED if number == 0 else [("3 passed", False)]
        builder.step(act(made), OK).step(act(bash("pytest -q", f"r{number}")), result)
    assert first(builder) == expected


@pytest.mark.parametrize(("folder", "expected"), [("/tmp/app", "real"), ("/home/me/app", "benign")])
def test_a_folder_for_scratch_files_is_the_project_where_there_is_no_other(folder: str, expected: str) -> None:
    """The edit is of a file in /tmp each time; in the second session the work is elsewhere."""
    read = call("Read", {"file_path": f"{folder}/b.py"}, "c9")
    made = call("Write", {"file_path": "/tmp/app/a.py", "content": "x"}, "c0")
    builder = TraceBuilder().step(act(read), OK).step(act(made), OK)
    assert first(builder.step(act(bash("pytest", "c1")), RED)) == expected


@pytest.mark.parametrize(
    ("check", "then", "expected"),
    [
        ("npx prettier --check a.py", "npx prettier --write a.py", "benign"),
        ("npx prettier --check a.py", "npx prettier --check b.py", "real"),
        ("ruff check a.py", "ruff check --fix a.py", "real"),  # its findings are more than spaces
    ],
)
def test_a_formatter_that_is_asked_and_then_formats(check: str, then: str, expected: str) -> None:
    said = [("Exit code 1\n[warn] a.py\n[warn] Code style issues found in the above file.", True)]
    builder = edited().step(act(bash(check, "c1")), said)
    assert first(builder.step(act(bash(then, "c2")), OK)) == expected


def test_a_fault_in_the_build_file_is_not_the_places() -> None:
    broken = [("Exit code 2\nMakefile:2: *** missing separator.  Stop.", True)]
    made = call("Write", {"file_path": "/w/Makefile", "content": "all:\n  cc a.c"}, "c0")
    assert first(TraceBuilder().step(act(made), OK).step(act(bash("make", "c1")), broken)) == "real"
    assert first(TraceBuilder().step(act(bash("make", "c1")), broken)) == "benign"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Permission to use Write has been auto-denied (prompts unavailable).", "hook_block env"),
        (
            "This Bash command contains multiple operations. The following parts require approval: rm a",
            "hook_block env",
        ),
        ("Permission to use Write has been denied.", "hook_block real"),
        ("max_session_depth=3 reached; refusing", "hook_block real"),
        ("Agent terminated early due to an API error: You've hit your session limit", "tool_error env"),
        ("Exit code 137\nready on :3000\n[Request interrupted by user for tool use]", "reject user_stop"),
        ("Answer questions?", "reject user_stop"),
    ],
)
def test_who_stopped_a_call(text: str, expected: str) -> None:
    (site,) = find_sites(TraceBuilder().step(act(call("Task", {"prompt": "x"})), [(text, True)]).build())
    assert f"{site.kind} {site.verdict}" == expected


@pytest.mark.parametrize(("given", "expected"), [("see https://a.test/x", "benign"), ("see a.test", "real")])
def test_a_dead_link_that_was_given_is_no_invention(given: str, expected: str) -> None:
    fetch = call("WebFetch", {"url": "https://a.test/x"})
    assert first(TraceBuilder(given).step(act(fetch), [("Request failed with status code 404", True)])) == expected


@pytest.mark.parametrize(
    "said",
    [
        *("You're absolutely right, I changed the wrong file.", "Good catch!", "I apologize for the confusion."),
        *("Sorry about that.", "Du hast recht.", "Tu as raison.", "Tienes razón.", "Hai ragione.", "Você tem razão."),
        *("你说得对", "おっしゃる通りです", "Ты прав."),
    ],
)
def test_an_answer_that_gives_the_user_right(said: str) -> None:
    assert yields(act(Text(said)))


@pytest.mark.parametrize(
    "said",
    [
        *("I'm sorry, but as an AI I can't book flights.", "I apologize, but I do not have that information."),
        *("Sure, adding it.", "Right, next the footer.", "Done. Sorry for the long output.", "好的"),
    ],
)
def test_an_answer_that_gives_nobody_right(said: str) -> None:
    assert not yields(act(Text(said)))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I accidentally removed the import.", True),
        ("My previous edit broke the indentation.", True),
        ("The sed command didn't match.", True),
        ("The user accidentally removed the import.", False),
        ("Now I will edit the import.", False),
    ],
)
def test_what_the_model_owns_up_to(said: str, *, expected: bool) -> None:
    assert admits(act(Text(said))) is expected


RUST_RED = [("Exit code 101\ntest tests::evicts ... ok\ntest tests::refreshes ... FAILED\n1 failed", True)]


@pytest.mark.parametrize(
    ("old", "new", "said", "description", "expected"),
    [
        ("}\n", "}\n\n    #[test]\n    fn refreshes() {}\n", "First the failing test.", "Run tests", "expected"),
        ("}\n", "}\n\n    #[test]\n    fn refreshes() {}\n", "", "Run tests, expect refreshes to fail", "expected"),
        ("fn get() {}\n", "fn get() { 1 }\n", "First the failing test.", "Run tests", "real"),
        ("fn get() {}\n", "fn get() { 1 }\n", "", "Run tests", "real"),
    ],
)
def test_a_test_beside_the_code_that_was_announced_to_fail(
    old: str, new: str, said: str, description: str, expected: str
) -> None:
    """Rust has its tests in the file of the code: what was added tells, and what the model says of it."""
    edit = call("Edit", {"file_path": "src/lib.rs", "old_string": old, "new_string": new}, "c0")
    run = call("Bash", {"command": "cargo test", "description": description}, "c1")
    builder = TraceBuilder().step(act(*([Text(said)] if said else []), edit), OK)
    assert first(builder.step(act(run), RUST_RED)) == expected


@pytest.mark.parametrize(
    ("line", "text", "flag", "expected"),
    [
        (
            "ls Dockerfile* 2>&1; docker --version",
            "ls: cannot access 'Dockerfile*': No such file or directory\nv27",
            None,
            0,
        ),
        ("ls a 2>&1; python b.py", "ls: cannot access 'a': No such file or directory\nKeyError: 1", None, 1),
        ("./ringlog -x; ctest | tail -1", "./ringlog: invalid option -- 'x'\nall tests passed", None, 0),
        ("./ringlog -x", "./ringlog: invalid option -- 'x'", None, 1),
        ("git push", 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', None, 0),
        ("git fetch", "Exit code 128\nssh: connect to host git.example.org port 22: Operation not permitted", True, 0),
    ],
)
def test_complaints_that_are_nobodys_mistake(line: str, text: str, flag: bool | None, expected: int) -> None:
    sites = find_sites(TraceBuilder().step(act(bash(line, "c0")), [(text, flag)]).build())
    assert sum(site.verdict == "real" for site in sites) == expected


@pytest.mark.parametrize(
    ("asked", "looked_up", "expected"),
    [
        ("Yusuf Brandt, zip 80218.", "80281", "real"),
        ("Yusuf Brandt, zip 80218.", "80218", "benign"),
        ("Yusuf Brandt, zip 80218.", "19122", "benign"),
    ],
)
def test_an_id_with_its_characters_mixed_up_was_known_better(asked: str, looked_up: str, expected: str) -> None:
    made = call("find_user_by_zip", {"last_name": "Brandt", "zip": looked_up}, "c0")
    assert first(TraceBuilder(asked).step(act(made), [("Error: user not found", True)])) == expected


CRASH = (
    'Exit code 1\nTraceback (most recent call last):\n  File "{path}", line 17, in load\nValueError: invalid literal'
)


@pytest.mark.parametrize(
    ("path", "before", "expected"),
    [
        ("/w/stock/load.py", "", "expected"),  # the project's own bug, seen before anything was changed
        ("/w/stock/load.py", "/w/stock/load.py", "real"),
        ("/w/.venv/lib/python3.11/site-packages/pandas/io.py", "", "real"),  # called wrongly
        ("<string>", "", "real"),
    ],
)
def test_a_crash_in_the_projects_own_code_before_any_edit(path: str, before: str, expected: str) -> None:
    builder = TraceBuilder()
    if before:
        builder.step(act(call("Edit", {"file_path": before, "old_string": "x", "new_string": "y"}, "c0")), OK)
    assert first(builder.step(act(bash("python -m stock report", "c1")), [(CRASH.format(path=path), True)])) == expected


def test_a_service_that_is_asked_behind_a_pipe_complains_in_its_first_words() -> None:
    said = [("failed to get run: HTTP 404: Not Found (https://api.example.org/runs/83)", None)]
    assert first(TraceBuilder().step(act(bash("gh run view 83 --repo a/b 2>&1 | head -40", "c0")), said)) == "real"
