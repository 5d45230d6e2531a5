"""Error sites on traces written by hand: one small trace per rule and per exception to it."""

from __future__ import annotations

import pytest

from postgrad.core.trace import Feedback
from postgrad.signals.error_sites.sites import Site, find_sites
from unit.signals.traces_by_hand import ALARM, WEATHER, TraceBuilder, act, bash, call

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def only(builder: TraceBuilder) -> Site:
    (site,) = find_sites(builder.build())
    return site


def test_no_result_is_no_site() -> None:
    assert find_sites(TraceBuilder().step(act(bash("sleep 100"))).build()) == []


def test_a_result_that_quotes_an_error_is_no_site() -> None:
    """The flag says that the read went well; what the file says about errors is the file's."""
    read = act(call("Read", {"file_path": "a.md"}))
    assert find_sites(TraceBuilder().step(read, [("<tool_use_error>String to replace not found", False)]).build()) == []


def test_sibling_errors_belong_to_the_call_that_failed() -> None:
    action = act(bash("git push", "a"), bash("git tag v1", "b"))
    trace = TraceBuilder().step(
        action, [("Exit code 128\nfatal: no upstream", True), ("<tool_use_error>Sibling tool call errored", True)]
    )
    assert [(site.call, site.verdict) for site in find_sites(trace.build())] == [("a", "real"), ("b", "cascade")]


def test_refusal_with_words_is_a_correction_at_the_step_that_made_the_call() -> None:
    """Results are records; the builder numbers them from 10: result 10, step 11, stop 12, words 13."""
    builder = TraceBuilder().step(act(call("Edit", {"file_path": "a.py"})), [(REFUSED, True)])
    builder.event("interrupt", "[Request interrupted by user for tool use]").event("user_text", "the toolchain can go")
    site = only(builder)
    assert (site.kind, site.verdict, site.step, site.record) == ("reject", "user_correction", 0, 10)
    assert site.text == "the toolchain can go"


@pytest.mark.parametrize(
    "words", ["", "<command-name>/mcp</command-name>", "/model opus", "<task-notification>\n<task-id>7</task-id>"]
)
def test_a_stop_without_words_on_the_work_is_only_a_stop(words: str) -> None:
    builder = TraceBuilder().step(act(bash("make")), [("ok", False)])
    builder.event("interrupt", "[Request interrupted by user]")
    site = only(builder.event("user_text", words) if words else builder)
    assert (site.kind, site.verdict, site.text) == ("interrupt", "user_stop", "")


def test_words_after_the_next_step_are_another_matter() -> None:
    builder = TraceBuilder().step(act(bash("make")), [("ok", False)]).event("interrupt")
    builder.step(act(bash("ls")), [("a", False)]).event("user_text", "the other file")
    assert only(builder).verdict == "user_stop"


def test_application_notices_are_passed_over_on_the_way_to_the_users_words() -> None:
    builder = TraceBuilder().step(act(bash("make")), [("ok", False)]).event("interrupt")
    builder.event("user_text", "<system-reminder>plan mode</system-reminder>").event("user_text", "use ninja")
    assert only(builder).text == "use ninja"


def test_words_from_before_the_stop_are_no_correction() -> None:
    builder = TraceBuilder().step(act(bash("make")), [("ok", False)]).event("user_text", "and also lint")
    assert only(builder.event("interrupt")).verdict == "user_stop"


def test_several_refused_calls_are_one_decision() -> None:
    action = act(bash("rm a", "a"), bash("rm b", "b"))
    builder = TraceBuilder().step(action, [(REFUSED, True), (REFUSED, True)]).event("user_text", "keep both")
    assert only(builder).call == "a"


@pytest.mark.parametrize("waiting", [call("TaskOutput", {"task_id": "x", "block": True}), bash("sleep 60; cat log")])
def test_cutting_a_wait_short_is_benign(waiting: object) -> None:
    builder = TraceBuilder().step(act(waiting), [(REFUSED, True)]).event("user_text", "it is done, look")
    assert only(builder).verdict == "benign"


def test_hook_texts_are_hook_blocks() -> None:
    blocked = "PreToolUse:Bash hook error: [./guard.sh]: commits to main are not allowed"
    assert only(TraceBuilder().step(act(bash("git commit -m x")), [(blocked, True)])).kind == "hook_block"


@pytest.mark.parametrize(
    "action", [act(call("get_weather", '{"city": "Paris"')), act(call("get_wether", {"city": "Paris"}))]
)
def test_malformed_calls_are_sites_without_any_result(action: object) -> None:
    site = only(TraceBuilder(tools=[WEATHER]).step(action))  # type: ignore[arg-type]
    assert (site.kind, site.verdict, site.rule) == ("invalid_call", "real", "invalid_call/2")


def test_an_unknown_name_is_no_fault_where_tools_are_unknown_or_the_call_worked() -> None:
    assert find_sites(TraceBuilder().step(act(call("any", {}))).build()) == []
    assert find_sites(TraceBuilder(tools=[ALARM]).step(act(call("any", {})), [("fine", False)]).build()) == []


@pytest.mark.parametrize(
    ("command", "text", "kind", "verdict"),
    [
        ("git push", "Exit code 128\nfatal: no upstream branch", "tool_error", "real"),
        ("rg Foo src", "Exit code 1", "no_match", "benign"),
        ("cd app && grep -r Foo .", "Exit code 1\n", "no_match", "benign"),
        ("cat a | grep Foo", "Exit code 1", "no_match", "benign"),
        ("[ -f x ] && echo yes", "Exit code 1", "no_match", "benign"),
        ("cd app && echo yes", "Exit code 1", "tool_error", "real"),
        ("set -o pipefail; cat a | grep Foo | head -5", "Exit code 1", "no_match", "benign"),
        ("rg '\\n' src", "Exit code 2\nrg: the literal \\n is not allowed", "tool_error", "real"),
        ("grep Foo nothere", "Exit code 1\ngrep: nothere: cannot read", "tool_error", "real"),
        ("grep -q Foo a && ./deploy", "Exit code 1", "tool_error", "real"),
        ("ls src/lib", "Exit code 2\nls: cannot access 'src/lib': No such file or directory", "tool_error", "benign"),
        ("sed -n 1,9p lib.ts", "Exit code 1\nsed: lib.ts: No such file or directory", "tool_error", "real"),
        ("git commit -m x", "Exit code 1\nnothing to commit, working tree clean", "tool_error", "benign"),
        ("tree .", "Exit code 127\n(eval):1: command not found: tree", "tool_error", "env"),
        ("pytets -q", "Exit code 127\nbash: pytets: command not found", "tool_error", "real"),
        ("curl https://x.test", "Exit code 6\ncurl: (6) Could not resolve host: x.test", "tool_error", "env"),
        ("make gen && grep -q Foo out", "Exit code 1\nmake: no rule to make gen", "tool_error", "real"),
        ("serve", "Exit code 137\n", "tool_error", "benign"),
    ],
)
def test_what_a_failed_command_means(command: str, text: str, kind: str, verdict: str) -> None:
    site = only(TraceBuilder().step(act(bash(command)), [(text, True)]))
    assert (site.kind, site.verdict) == (kind, verdict)


def test_a_missing_file_is_a_probe_unless_the_tool_knew_better() -> None:
    read = act(call("Read", {"file_path": "/a/b.py"}))
    missing = "<tool_use_error>File does not exist.</tool_use_error>"
    assert only(TraceBuilder().step(read, [(missing, True)])).verdict == "benign"
    better = "<tool_use_error>File does not exist. Did you mean b.pyx?</tool_use_error>"
    assert only(TraceBuilder().step(read, [(better, True)])).verdict == "real"


def test_the_second_identical_failure_is_a_mistake_even_where_the_first_was_not() -> None:
    """Time limit and description differ; the command does not."""
    builder = TraceBuilder()
    for number, extra in enumerate([{"timeout": 1}, {"description": "again"}]):
        action = act(call("Bash", {"command": "tree  ." if number else "tree .", **extra}, f"c{number}"))
        builder.step(action, [("Exit code 127\ncommand not found: tree", True)])
    first, second = find_sites(builder.build())
    assert (first.verdict, first.repeat_of) == ("env", None)
    assert (second.verdict, second.repeat_of) == ("real", 0)


def test_recovery_is_the_first_later_success_on_the_same_target() -> None:
    edit = {"old_string": "x", "new_string": "y"}
    builder = TraceBuilder().step(
        act(call("Edit", {"file_path": "a.py", **edit}, "c0")), [("<tool_use_error>String to replace not found", True)]
    )
    builder.step(act(call("Edit", {"file_path": "b.py", **edit}, "c1")), [("done", False)])
    builder.step(act(call("Edit", {"file_path": "a.py", "old_string": " x"}, "c2")), [("done", False)])
    assert only(builder).recovery_step == 2


def test_a_call_that_is_tried_again_at_once_and_works_is_a_recovery_whatever_changed() -> None:
    """A wrong city, then the right one: nothing is the same but the tool. A step later it is another question."""
    wrong, right = act(call("get_weather", {"city": "Pariss"}, "c0")), act(call("get_weather", {"city": "Paris"}, "c1"))
    refused, fine = [("Error: unknown city 'Pariss'", True)], [("18 C", False)]
    assert only(TraceBuilder().step(wrong, refused).step(right, fine)).recovery_step == 1
    between = act(call("set_alarm", {"time": "7"}, "c2"))
    assert only(TraceBuilder().step(wrong, refused).step(between, fine).step(right, fine)).recovery_step is None


def test_failed_tests_blame_the_named_edit_and_need_one() -> None:
    """Edits at steps 0 (b.py) and 1 (c.py), the run fails at step 2 in b.py: step 0 is to blame."""
    failed = ("Exit code 1\nb.py:3: AssertionError\n1 failed", True)
    builder = TraceBuilder()
    builder.step(act(call("Edit", {"file_path": "src/b.py"}, "c0")), [("done", False)])
    builder.step(act(call("Edit", {"file_path": "src/c.py"}, "c1")), [("done", False)])
    builder.step(act(bash("pytest -q", "c2")), [failed])
    site = only(builder)
    assert (site.kind, site.verdict, site.step, site.call) == ("test_failed", "real", 0, "c2")
    assert only(TraceBuilder().step(act(bash("pytest -q")), [failed])).verdict == "benign"


def test_a_build_that_passes_does_not_vouch_for_the_tests_but_tests_that_pass_do() -> None:
    def verdict(between: str) -> str:
        builder = TraceBuilder().step(act(call("Edit", {"file_path": "b.py"}, "c0")), [("done", False)])
        builder.step(act(bash(between, "c1")), [("fine", False)])
        return only(builder.step(act(bash("pytest", "c2")), [("Exit code 1\n1 failed", True)])).verdict

    assert verdict("make build") == "real"
    assert verdict("pytest tests/a.py") == "benign"


def test_a_failure_behind_a_pipe_is_found_by_its_words_and_vouches_for_nothing() -> None:
    """The edit is step 0; the piped run at step 1 fails in words only; the next run fails openly for the same edit."""
    builder = TraceBuilder().step(act(call("Edit", {"file_path": "b.py"}, "c0")), [("done", False)])
    builder.step(act(bash("mix test 2>&1 | tail -2", "c1")), [("65 tests, 11 failures", False)])
    builder.step(act(bash("mix test", "c2")), [("Exit code 2\n65 tests, 11 failures", True)])
    hidden, open_ = find_sites(builder.build())
    assert (hidden.kind, hidden.verdict, hidden.rule, hidden.step) == ("test_failed", "real", "silent_failure/3", 0)
    assert (open_.verdict, open_.step) == ("real", 0)


@pytest.mark.parametrize(("command", "text"), [("mix test | tail", "65 tests, 0 failures"), ("cat log", "11 failures")])
def test_words_of_failure_count_in_test_runs_only(command: str, text: str) -> None:
    builder = TraceBuilder().step(act(call("Edit", {"file_path": "b.py"}, "c0")), [("done", False)])
    assert find_sites(builder.step(act(bash(command, "c1")), [(text, False)]).build()) == []


def test_wanted_failures_are_expected() -> None:
    fails = [("Exit code 1\n1 failed", True)]
    wrote = act(call("Write", {"file_path": "tests/test_new.py"}, "c0"))
    test_first = TraceBuilder().step(wrote, [("ok", False)]).step(act(bash("pytest tests/test_new.py", "c1")), fails)
    assert only(test_first).verdict == "expected"
    repro = TraceBuilder().step(wrote, [("ok", False)]).step(act(bash("pytest reproduce_issue.py", "c1")), fails)
    assert only(repro).verdict == "expected"


def test_a_verifiers_word_is_a_site_and_its_kind_stands_first() -> None:
    said = Feedback("verifier", 0.0, "wrong_value: unit is not what the request says", "function_calling")
    action = act(call("get_weather", {"city": "Rome"}))
    builder = TraceBuilder(tools=[WEATHER]).step(action, [("20", False)], feedback=[said])
    site = only(builder)
    assert (site.kind, site.verdict, site.rule) == ("wrong_value", "real", "verifier/1")
    right = Feedback("verifier", 1.0, "", "function_calling")
    assert find_sites(TraceBuilder().step(act(call("f", {})), [("20", False)], feedback=[right]).build()) == []


def test_a_malformed_call_that_the_verifier_also_saw_is_one_site() -> None:
    said = Feedback("verifier", 0.0, "malformed_call: broken", "function_calling")
    builder = TraceBuilder(tools=[WEATHER]).step(
        act(call("get_weather", "{")), [("Error: the arguments are not a JSON object", True)], feedback=[said]
    )
    assert only(builder).kind == "invalid_call"


@pytest.mark.parametrize(
    "said",
    [
        "Error: arguments are not valid JSON",
        "Failed to parse tool arguments as JSON",
        "Could not parse arguments",
        "Malformed call, please try again",
    ],
)
def test_arguments_that_are_no_json_are_a_mistake_where_a_short_answer_speaks_of_them(said: str) -> None:
    broken = act(call("read_file", '{"path": "a.py'))
    site = only(TraceBuilder().step(broken, [(said, None)]))
    assert (site.kind, site.verdict) == ("invalid_call", "real")
    assert find_sites(TraceBuilder().step(broken, [("import os\nprint(os.name)\n", None)]).build()) == []  # repaired
    whole = act(call("read_file", {"path": "notes.md"}))
    assert find_sites(TraceBuilder().step(whole, [("How arguments are parsed\n\nJSON first.\n", None)]).build()) == []
