"""Calls that only ask: their "no" is an answer. Beside each stands a near one that is a mistake."""

from __future__ import annotations

from typing import Any

import pytest

from postgrad.core.message import ToolCall
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call


def judged(made: ToolCall, text: str, flag: bool | None) -> str:
    """Kind and verdict of the one site, "none" without one."""
    sites = find_sites(TraceBuilder().step(act(made), [(text, flag)]).build())
    return " ".join(f"{site.kind} {site.verdict}" for site in sites) or "none"


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("git apply --check a.patch", "Exit code 1\nerror: a.py: patch does not apply", "no_match benign"),
        ("git apply a.patch", "Exit code 1\nerror: a.py: patch does not apply", "tool_error real"),
        ("kubectl diff -f a.yaml", "Exit code 1\n-  image: a:1\n+  image: a:2", "no_match benign"),
        ("kubectl diff -f a.yaml", "Exit code 2\nerror: the path does not exist", "tool_error real"),
        ("kubectl -n a get deploy b", 'Exit code 1\nError from server (NotFound): "b" not found', "no_match benign"),
        ("kubectl -n a get pod b", 'Exit code 1\nError from server (NotFound): "b" not found', "tool_error real"),
        ("kubectl -n a logs b", 'Exit code 1\nError from server (NotFound): "b" not found', "tool_error real"),
        ("terraform plan -detailed-exitcode", "Exit code 2\nPlan: 1 to add", "no_match benign"),
        ("terraform plan -detailed-exitcode -oops", "Exit code 1\nflag provided but not defined", "tool_error real"),
        ("aws s3 ls s3://a", "Exit code 254\nAn error occurred (NoSuchBucket)", "no_match benign"),
        ("aws s3 cp a s3://a", "Exit code 1\nAn error occurred (NoSuchBucket)", "tool_error real"),
        ("aws s3 ls s3://a --oops", "Exit code 252\nUnknown options: --oops", "tool_error real"),
        ("gh run list --workflow a.yml", "Exit code 1\ncould not find any workflows named a.yml", "no_match benign"),
        ("gh run view 12", "Exit code 1\nfailed to get run: HTTP 404: Not Found", "tool_error real"),
        ("kubectl auth can-i delete pods", "Exit code 1\nno", "no_match benign"),
        ("coredumpctl list", "Exit code 1\nNo coredumps found.", "no_match benign"),
        ("coredumpctl list --oops", "Exit code 1\nunrecognized option '--oops'", "tool_error real"),
        ("pnpm why react --filter wbe", "Exit code 1\nNo projects matched the filters", "tool_error real"),
        ("du -s a b", "Exit code 1\ndu: cannot access 'b': No such file or directory\n9\ta", "tool_error benign"),
        ("pg_isready -h db", "Exit code 2\ndb:5432 - no response", "no_match benign"),
        ("pg_isready --oops", "Exit code 3\npg_isready: unrecognized option", "tool_error real"),
        (r'psql -c "\d users"', 'Exit code 1\nDid not find any relation named "users".', "no_match benign"),
        (r'psql -c "select * from users"', 'Exit code 1\nERROR:  relation "users" does not exist', "tool_error real"),
        ("curl -sf localhost:80/healthz", "Exit code 22\n", "no_match benign"),
        ("curl -fsS a.test/b", "Exit code 22\ncurl: (22) The requested URL returned error: 404", "tool_error real"),
        ("curl -sf -d '{}' localhost:80/users", "Exit code 22\n", "tool_error real"),
        ("mkdir a && diff -rq a b", "Exit code 1\nFiles a/x and b/x differ\nOnly in b: y", "no_match benign"),
        ("mkdir a && diff -rq a b", "Exit code 1\nmkdir: cannot create directory", "tool_error real"),
    ],
)
def test_questions_to_the_shell(command: str, text: str, expected: str) -> None:
    assert judged(bash(command), text, True) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("git merge main", "CONFLICT (content): Merge conflict in a.py\nAutomatic merge failed", "tool_error benign"),
        ("git stash pop", "CONFLICT (content): Merge conflict in a.py", "tool_error benign"),
        ("git fetch && git rebase main", "error: could not apply 1234abc... x", "tool_error benign"),
        ("git merge mian", "merge: mian - not something we can merge", "tool_error real"),
        ("./deploy.sh", "CONFLICT (name): a deployment of that name is there", "tool_error real"),
    ],
)
def test_a_merge_that_leaves_conflicts_is_no_mistake(command: str, text: str, expected: str) -> None:
    assert judged(bash(command), f"Exit code 1\n{text}", True) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("npm run dev", "Command timed out after 2m 0.0s\n> vite\n  Local:   http://localhost:5173/", "env"),
        ("flask run", "Exit code 143\n * Running on http://127.0.0.1:5000", "benign"),
        ("flask rnu", "Exit code 2\nError: No such command 'rnu'.", "real"),
        ("timeout 60 flask run", "Command timed out after 60s\n * Running on http://127.0.0.1:5000", "env"),
        ("./crunch", "Command timed out after 2m 0.0s\ncompiling a.c", "env"),
    ],
)
def test_a_harness_that_loses_its_patience_blames_nobody(command: str, text: str, expected: str) -> None:
    assert judged(bash(command), text, True) == f"tool_error {expected}"


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "flag", "expected"),
    [
        ("fetch", {"url": "https://a.test/x"}, "Error 404: Page not found", None, "no_match benign"),
        (
            "browser_navigate",
            {"url": "https://a.test/x"},
            "Failed to fetch: HTTP 404 Not Found",
            None,
            "no_match benign",
        ),
        ("fetch", {"url": "https://a.test/x"}, "Request failed with status code 404", True, "tool_error real"),
        ("fetch", {"url": "https://a.test/x"}, "Error: invalid protocol", None, "tool_error real"),
        ("http_get", {"url": "https://a.test/x"}, '{"status": 404, "message": "not found"}', None, "tool_error real"),
        ("fetch", {"url": "https://a.test", "method": "POST"}, "Error 404: not found", None, "tool_error real"),
        (
            "find_user",
            {"email": "a@b.test"},
            '{"status": 404, "error": "No user with this e-mail"}',
            None,
            "no_match benign",
        ),
        ("find_user", {"user_id": "7"}, '{"status": 404, "error": "No user with this id"}', None, "tool_error real"),
        ("invite", {"channel": "c"}, '{"ok": false, "error": "already_in_channel"}', None, "tool_error benign"),
        ("invite", {"channel": "c"}, '{"ok": false, "error": "channel_is_archived"}', None, "tool_error real"),
    ],
)
def test_questions_to_other_tools(
    tool: str, arguments: dict[str, Any], text: str, flag: bool | None, expected: str
) -> None:
    assert judged(call(tool, arguments), text, flag) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        (
            "if (Test-Path a) { 1 } esle { 2 }",
            "esle : The term 'esle' is not recognized as the name of a cmdlet",
            "real",
        ),
        ("search_fil x a.py", "/bin/bash: line 1: search_fil: command not found", "real"),
        ("dir | head -3", "head : The term 'head' is not recognized as the name of a cmdlet", "real"),
        ("ls", "'ls' is not recognized as an internal or external command", "real"),
        ("choco install x", "choco : The term 'choco' is not recognized as the name of a cmdlet", "env"),
        ("head -3 a", "bash: head: command not found", "env"),
        ("search_web x", "/bin/bash: line 1: search_web: command not found", "env"),
    ],
)
def test_names_of_another_shell_and_slips_are_mistakes(command: str, text: str, expected: str) -> None:
    assert judged(bash(command), f"Exit code 1\n{text}", True) == f"tool_error {expected}"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git commit -m x", "Author identity unknown\n\n*** Please tell me who you are."),
        ("git add .", "fatal: Unable to create '/w/.git/index.lock': Operation not permitted"),
        ("go get x", "go: x@latest: module lookup disabled by GOPROXY=off"),
        ("mvn flyway:migrate", "Connection to localhost:5432 refused."),
        ("Invoke-WebRequest https://a.test", "The remote name could not be resolved: 'a.test'"),
        ("Restart-Service Spooler", "Restart-Service : Cannot open Spooler service on computer '.'."),
        ("./gradlew connectedTest", "DeviceException: No connected devices!"),
        ("npm view a", "npm error code E403\nnpm error 403 Forbidden - GET https://packages.example.org/a"),
        ("xcrun simctl boot x", 'xcrun: error: unable to find utility "simctl", not a developer tool or in PATH'),
        ("kubectl exec a -- psql", 'exec: "psql": executable file not found in $PATH'),
        ("kubectl top pods", "error: Metrics API not available"),
        ("corepack prepare pnpm", "Internal Error: Error when performing the request to https://a.test"),
        ("deploy", "Error: unable to verify the first certificate"),
        ("deploy", "upstream connect error or disconnect/reset before headers"),
    ],
)
def test_what_the_place_lacks(command: str, text: str) -> None:
    assert judged(bash(command), f"Exit code 1\n{text}", True).endswith(" env")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"message": "unexpected token", "errorCode": "INVALID_FIELD"}]', "tool_error real"),
        ('[{"message": "Session expired or invalid", "errorCode": "INVALID_SESSION_ID"}]', "tool_error env"),
        ('{"ok": false, "error": "ratelimited"}', "tool_error env"),
        ('{"error": "TooManyRequests", "description": "Retry-After: 20"}', "tool_error env"),
        ('{"error": {"type": "ServiceUnavailable", "message": "x"}}', "tool_error env"),
        ('{"error": "token_expired"}', "tool_error env"),
        ('{"code": "internal", "message": "x"}', "tool_error env"),
        ('{"error": {"status": "UNAUTHENTICATED", "message": "x"}}', "tool_error env"),
        ('{"error": {"code": "connection_name_missing", "message": "x"}}', "tool_error real"),
        ('{"error": {"type": "expired_card", "message": "x"}}', "tool_error real"),
        ('{"status": 409, "code": "conflict_error", "message": "Please try again."}', "tool_error env"),
        ('{"status": 400, "code": "bad_value", "message": "Please try again."}', "tool_error real"),
        ('[{"message": "hello", "author": "bob"}]', "none"),
        ("[]", "none"),
    ],
)
def test_answers_that_are_a_list_of_errors(text: str, expected: str) -> None:
    assert judged(call("create_record", {"object": "Task"}), text, None) == expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [("get_logs", "none"), ("getDiagnostics", "none"), ("browser_console", "none"), ("login", "tool_error real")],
)
def test_errors_that_were_asked_for(tool: str, expected: str) -> None:
    assert judged(call(tool, {"service": "web"}), "Error: cannot read x of undefined", None) == expected


@pytest.mark.parametrize(("text", "expected"), [("", "invalid_call real"), ("3 rows", "none")])
def test_broken_arguments_that_came_to_nothing(text: str, expected: str) -> None:
    """What repaired the arguments and went on gives an answer; no word at all is none."""
    assert judged(call("get_invoice", '{"user": 9'), text, None) == expected
