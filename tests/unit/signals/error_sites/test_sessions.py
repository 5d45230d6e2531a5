"""Rules that need more than one result: whole small sessions written by hand."""

from __future__ import annotations

import msgspec
import pytest

from postgrad.core.message import Message, Text
from postgrad.core.trace import Event, Feedback, Trace
from postgrad.signals.error_sites.sites import Site, find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
SAID = f"{REFUSED} To tell you how to proceed, the user said:\nuse the other port\n\nNote: The user's next message may"


def edit(path: str, id: str) -> Message:
    return act(call("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, id))


def write(path: str, id: str) -> Message:
    return act(call("Write", {"file_path": path, "content": "x"}, id))


def only(builder: TraceBuilder | Trace) -> Site:
    (site,) = find_sites(builder.build() if isinstance(builder, TraceBuilder) else builder)
    return site


OK = [("done", False)]
FAILS = [("Exit code 1\nAssertionError\n1 failed", True)]


# Rule 3: the user's decision


def test_words_inside_the_refusal_are_the_correction() -> None:
    builder = TraceBuilder().step(act(bash("serve --port 80")), [(SAID, True)])
    site = only(builder.event("user_text", "and be quick"))
    assert (site.verdict, site.text) == ("user_correction", "use the other port")


@pytest.mark.parametrize("words", ["continue", "Go on.", "weiter", "继续", "続けて", "продолжай", "ok, proceed"])
def test_go_on_says_nothing_against_the_work(words: str) -> None:
    builder = TraceBuilder().step(act(bash("make")), [(REFUSED, True)]).event("user_text", words)
    assert (only(builder).kind, only(builder).verdict) == ("reject", "user_stop")


def test_a_mode_change_between_refusal_and_next_step_is_no_correction() -> None:
    builder = TraceBuilder().step(act(bash("make")), [(REFUSED, True)]).event("mode_change", "approval never")
    assert only(builder.step(act(bash("make", "c1")), OK)).verdict == "user_stop"


def test_refusal_and_stop_marker_are_one_event_in_two_records() -> None:
    builder = TraceBuilder().step(act(bash("make")), [(REFUSED, True)])
    builder.event("interrupt", "[Request interrupted by user for tool use]").event("turn_aborted")
    assert only(builder.event("user_text", "不對 用 ninja")).text == "不對 用 ninja"


def test_the_users_words_follow_the_branch_and_not_the_file() -> None:
    """Step 1 goes on from step 0 on a branch that the user left; step 2 goes on from step 0 with new words."""
    builder = TraceBuilder().step(act(bash("make")), [(REFUSED, True)])
    builder.step(act(bash("make all", "c1")), OK).step(act(bash("ninja", "c2")), OK)
    trace = builder.build()
    said = Message.of("user", "use ninja")
    first, left, right = trace.steps
    request = msgspec.structs.replace(right.request, messages=(*first.request.messages, said.id))
    steps = (
        first,
        msgspec.structs.replace(left, parent=7, abandoned=True),
        msgspec.structs.replace(right, parent=0, request=request),
    )
    trace = msgspec.structs.replace(trace, steps=steps, messages={**trace.messages, said.id: said})
    assert only(trace).text == "use ninja"


# Rule 4: hooks beside the results


def test_a_hook_that_only_an_event_tells_is_a_site_and_told_twice_is_one() -> None:
    stopped = TraceBuilder().step(act(bash("make")), OK).event("hook", '["tests must pass before you stop"]')
    assert (only(stopped).kind, only(stopped).rule) == ("hook_block", "hook/2")
    told = [("PreToolUse:Bash hook error: no", True)]
    assert only(TraceBuilder().step(act(bash("make")), told).event("hook", '["no"]')).call == "c0"
    assert find_sites(TraceBuilder().step(act(bash("make")), OK).event("hook", "").build()) == []


# Rules 5 and 7: faults that only an event tells


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("agent_error", "Parameter 'command' is expected to be one of ['view', 'create']", ("invalid_call", "real")),
        ("format_error", "Your output was not in the right format", ("invalid_call", "real")),
        ("tool_failure", "Failed to apply patch: context mismatch", ("invalid_call", "real")),
        ("agent_error", "litellm.RateLimitError: 429", ("tool_error", "env")),
        ("agent_error", "Agent reached maximum iteration", ("tool_error", "env")),
    ],
)
def test_faults_that_only_an_event_tells(kind: str, text: str, expected: tuple[str, str]) -> None:
    site = only(TraceBuilder().step(act(bash("make")), OK).event(kind, text))
    assert ((site.kind, site.verdict), site.step, site.text) == (expected, 0, text)


def test_a_fault_of_a_call_whose_result_tells_it_is_told_once() -> None:
    builder = TraceBuilder().step(act(call("apply_patch", {"input": "x"})), [("patch rejected: empty patch", True)])
    trace = builder.build()
    twice = Event("tool_failure", 1, 99, "patch rejected: empty patch", {"call": "c0"})
    assert only(msgspec.structs.replace(trace, events=(twice,))).record == 10
    api = Event("api_error", 1, 99, "529 overloaded")
    assert only(msgspec.structs.replace(trace, events=(api,))).record == 10
    nowhere = Event("tool_failure", 1, 99, "patch rejected: empty patch", {"call": ["c0"]})  # a file can say anything
    assert len(find_sites(msgspec.structs.replace(trace, events=(nowhere,)))) == 2


# Rule 6: whose fault is a failed run?


def test_edits_made_by_the_shell_count_and_are_blamed() -> None:
    """mini-swe-agent and Codex write files with here-documents, `sed -i` and patches; the failure names lib.py."""
    builder = TraceBuilder().step(act(bash("cat > lib.py <<'EOF'\npytest\nEOF", "c0")), [("", None)])
    builder.step(act(bash("sed -i 's/a/b/' other.py", "c1")), [("", None)])
    site = only(builder.step(act(bash("pytest -q", "c2")), [("lib.py:3: AssertionError\n1 failed", None)]))
    assert (site.kind, site.verdict, site.step) == ("test_failed", "real", 0)


def test_a_patch_names_the_files_that_it_changes() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"
    builder = TraceBuilder().step(act(call("apply_patch", {"input": patch}, "c0")), [("Success", None)])
    assert only(builder.step(act(bash("pytest", "c1")), FAILS)).verdict == "real"


def test_a_script_that_shows_the_bug_may_fail_until_something_was_fixed() -> None:
    """Written and run: expected. After an edit of the source: the fix does not work, and the edit is to blame."""
    shows = [("Traceback (most recent call last):\nValueError: the bug", None)]
    builder = TraceBuilder().step(write("reproduce_issue.py", "c0"), OK)
    builder.step(act(bash("python reproduce_issue.py", "c1")), shows)
    assert only(builder).verdict == "expected"
    builder.step(edit("src/a.py", "c2"), OK).step(act(bash("python reproduce_issue.py", "c3")), shows)
    first, second = find_sites(builder.build())
    assert (first.kind, first.verdict) == ("repro_failed", "expected")
    assert (second.verdict, second.step, second.repeat_of) == ("real", 2, 1)


def test_a_script_that_does_not_come_to_the_bug_is_a_mistake() -> None:
    text = 'Traceback (most recent call last):\n  File "/w/repro.py", line 3, in <module>\nImportError: no name x'
    builder = TraceBuilder().step(write("repro.py", "c0"), OK)
    assert only(builder.step(act(bash("python repro.py", "c1")), [(text, None)])).verdict == "real"


def test_a_test_written_before_its_fix_is_meant_to_fail_whichever_way_it_is_run() -> None:
    for line in ("pytest tests/test_new.py", "pytest"):
        builder = TraceBuilder().step(write("tests/test_new.py", "c0"), OK)
        assert only(builder.step(act(bash(line, "c1")), FAILS)).verdict == "expected", line


def test_notes_are_no_edits() -> None:
    builder = TraceBuilder().step(write("NOTES.md", "c0"), OK)
    assert only(builder.step(act(bash("pytest", "c1")), FAILS)).verdict == "benign"


# Rule 8: silence where words were expected


def test_an_edit_without_a_word_stands_out_among_edits_that_speak() -> None:
    builder = (
        TraceBuilder().step(edit("a.py", "c0"), OK).step(edit("b.py", "c1"), OK).step(edit("c.py", "c2"), [("", None)])
    )
    assert (only(builder).kind, only(builder).rule, only(builder).step) == ("no_effect", "silent_failure/3", 2)
    quiet = TraceBuilder().step(edit("a.py", "c0"), [("", None)]).step(edit("b.py", "c1"), [("", None)])
    assert find_sites(quiet.build()) == []


# Background runs


@pytest.mark.parametrize(
    ("started", "poll", "end"),
    [
        (
            "Chunk ID: a\nProcess running with session ID 27712\nOutput:\n",
            call("write_stdin", {"session_id": 27712, "chars": ""}, "c1"),
            "Chunk ID: b\nProcess exited with code 1\nOutput:\nValueError: x",
        ),
        (
            "Command running in background with ID: b0be39e",
            call("TaskOutput", {"task_id": "b0be39e", "block": True}, "c1"),
            "<retrieval_status>success</retrieval_status>\n<status>failed</status>\n<exit_code>1</exit_code>\n"
            "<output>\nValueError: x\n</output>",
        ),
    ],
)
def test_a_run_in_the_background_is_blamed_on_the_call_that_started_it(started: str, poll: object, end: str) -> None:
    """The evidence is the poll's result, record 12; the wrong command is step 0's."""
    builder = TraceBuilder().step(act(bash("python a.py", "c0")), [(started, None)])
    site = only(builder.step(act(poll), [(end, None)]))
    assert (site.kind, site.verdict, site.step, site.call, site.record) == ("tool_error", "real", 0, "c0", 12)


# Rule 9: repeats


def test_an_excuse_holds_once_and_only_for_the_same_words() -> None:
    """`make` fails in its set-up, then in another way (still the environment's), then in that way again."""
    texts = [
        "make: *** no target\ncould not load cache",
        "make: *** cd: can't cd to build",
        "make: *** cd: can't cd to build",
    ]
    builder = TraceBuilder()
    for number, text in enumerate(texts):
        builder.step(act(bash("make", f"c{number}")), [(f"Exit code 2\n{text}", True)])
    sites = find_sites(builder.build())
    assert [(site.verdict, site.repeat_of) for site in sites] == [("env", None), ("env", 0), ("real", 0)]
    assert sites[2].rule == "repeat/2"


def test_a_repeat_is_the_same_call_and_the_same_kind_of_failure() -> None:
    missing = [("<tool_use_error>String to replace not found", True)]
    builder = TraceBuilder().step(edit("a.py", "c0"), missing).step(edit("a.py", "c1"), missing)
    builder.step(edit("b.py", "c2"), missing)
    assert [site.repeat_of for site in find_sites(builder.build())] == [None, 0, None]


# Rule 10: corrections without a stop


@pytest.mark.parametrize(
    "words",
    [
        "no, that's the wrong file",
        "It still doesn't work",
        "Not what I asked for",
        "You forgot the tests",
        "Bitte rückgängig machen, das ist falsch",
        "不对，应该改另一个文件",
        "違います、そのファイルではありません",
        "это не то, всё ещё не работает",
        "ça ne marche toujours pas",
        "sigue sin funcionar",
    ],
)
def test_words_that_take_back_a_finished_answer_are_a_follow_up(words: str) -> None:
    builder = TraceBuilder().step(act(bash("make", "c0")), OK).event("user_text", words)
    site = only(builder)
    assert (site.kind, site.verdict, site.rule, site.text) == ("correction", "user_correction", "correction/3", words)


@pytest.mark.parametrize(
    "words",
    [
        "thanks, now add tests",
        "let's give the button a background",
        "did you push?",
        "<task-notification>\nstill failing",
        "/undoable",
        "note the north side",
        "Now rename it",
    ],
)
def test_other_words_are_no_correction(words: str) -> None:
    assert find_sites(TraceBuilder().step(act(bash("make")), OK).event("user_text", words).build()) == []


def test_an_undo_is_a_strong_no_even_without_words() -> None:
    builder = TraceBuilder().step(act(bash("make", "c0")), OK).event("command", "/undo").event("command", "/undo")
    assert (only(builder).kind, only(builder).verdict) == ("undo", "user_stop")
    builder.event("user_text", "keep the old names")
    assert (only(builder).verdict, only(builder).text) == ("user_correction", "keep the old names")


# Rule 11: the outcome


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0.0), (1.0, 1.0), (7.0, 1.0)])
def test_the_outcome_of_the_run_is_no_site_but_a_number_on_every_site(value: float, expected: float) -> None:
    reward = [Feedback("reward", value)]
    builder = TraceBuilder().step(act(bash("git push", "c0")), [("Exit code 1\nfatal: x", True)])
    site = only(builder.step(act(bash("ls", "c1")), OK, feedback=reward))
    assert (site.step, site.outcome) == (0, expected)


def test_every_rule_names_itself_with_a_version() -> None:
    builder = TraceBuilder().step(
        act(bash("a", "c0"), bash("b", "c1")), [("Exit code 1\nx: bad", True), (REFUSED, True)]
    )
    builder.step(edit("a.py", "c2"), OK).step(act(bash("pytest", "c3")), FAILS)
    assert [site.rule for site in find_sites(builder.build())] == ["command/4", "user_decision/2", "test_failed/3"]


def test_texts_of_a_megabyte_are_judged_by_their_ends() -> None:
    """Patterns see the first and the last words only; what takes milliseconds here took minutes with whole texts."""
    for text in ("\n" * 300_000, "error: " * 50_000, "{" * 100_000, "<feedback>" * 30_000, "1 failed\n" * 30_000):
        for made in (
            bash("pytest | tail"),
            call("Edit", {"file_path": "a", "old_string": "x"}),
            call("book", {"id": 1}),
        ):
            find_sites(TraceBuilder().step(act(made), [(text, None)]).event("user_text", text).build())


def test_a_refusal_in_so_many_words_is_one_whatever_the_flag() -> None:
    said = "The user has declined to run this tool. DO NOT attempt to call this tool again."
    site = only(
        TraceBuilder().step(act(call("chart", {"data": "x"}, "c0")), [(said, False)]).event("user_text", "no charts")
    )
    assert (site.kind, site.verdict) == ("reject", "user_correction")


SCREEN = """root@7c1e:/app# make test
gcc -Werror -c ring.c
ring.c:18:11: error: comparison of integer expressions of different signedness
make: *** [Makefile:11: test] Error 1
root@7c1e:/app# """


def test_keys_typed_into_a_terminal_are_a_shell_line_and_the_screen_is_its_output() -> None:
    """Terminal-Bench's agents type, and are shown the screen: prompt and line come back before the output."""
    written = act(call("bash_command", {"keystrokes": "cat > ring.c <<'EOF'\nint a;\nEOF\n", "duration": 1.0}, "c0"))
    made = act(call("bash_command", {"keystrokes": "make test\n", "duration": 1.0}, "c1"))
    builder = TraceBuilder().step(written, [("root@7c1e:/app# ", None)]).step(made, [(SCREEN, None)])
    site = only(builder)
    assert (site.kind, site.verdict, site.step) == ("test_failed", "real", 0)


def test_a_line_that_edits_what_it_then_tests_is_no_test_first() -> None:
    written = act(call("Write", {"file_path": "ring.c", "content": "int a;"}, "c0"))
    made = act(call("Bash", {"command": "sed -i s/int/size_t/ ring.c && make test"}, "c1"))
    red = [("Exit code 2\nFAILED: wrap\n2 passed, 1 failed", True)]
    assert only(TraceBuilder().step(written, [("done", False)]).step(made, red)).verdict == "real"


def test_a_key_that_ends_a_program_is_no_command() -> None:
    pressed = act(call("bash_command", {"keystrokes": "C-c", "duration": 1.0}, "c0"))
    assert find_sites(TraceBuilder().step(pressed, [("^C\nerror: interrupted\nroot@7c1e:/app# ", None)]).build()) == []


@pytest.mark.parametrize(
    ("kind", "text", "data", "expected"),
    [
        ("check_failed", "a.py:17:11: F821 undefined name 'x'", {}, "check_failed"),
        ("command_output", "F...\n1 failed, 3 passed", {"command": "/test"}, "test_failed"),
        ("command_output", "....\n4 passed", {"command": "/test"}, ""),
        (
            "command_output",
            "Traceback (most recent call last)\nKeyError: 1",
            {"command": "/run python a.py"},
            "tool_error",
        ),
        ("command_output", "a.py:3: TODO raise ValueError: x", {"command": "/run grep -rn TODO"}, ""),
    ],
)
@pytest.mark.parametrize("edited", [True, False])
def test_runs_of_application_and_user_after_an_applied_edit(
    kind: str, text: str, data: dict[str, str], expected: str, *, edited: bool
) -> None:
    trace = TraceBuilder().step(act(Text("Here is the edit.")), []).build()
    applied = (Event("edit_applied", 1, 20, "a.py"),) if edited else ()
    sites = find_sites(msgspec.structs.replace(trace, events=(*applied, Event(kind, 1, 21, text, data))))
    assert [(site.kind, site.verdict, site.record) for site in sites] == (
        [(expected, "real", 21)] if expected and edited else []
    )
