"""Commands that ask or take away, told that the thing is not there; beside each a near one that is a mistake."""

from __future__ import annotations

import pytest

from postgrad.core.message import Tool
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call


def verdict(command: str, code: int, text: str) -> str:
    """The verdict on one failed shell line."""
    (site,) = find_sites(TraceBuilder().step(act(bash(command)), [(f"Exit code {code}\n{text}", True)]).build())
    return site.verdict


@pytest.mark.parametrize(
    ("command", "code", "text", "expected"),
    [
        # the verb asks
        ("gh pr view", 1, 'no pull requests found for branch "x"', "benign"),
        ("gh pr view 12", 1, "GraphQL: Could not resolve to a pull request with the number of 12.", "real"),
        ("gh pr merge", 1, 'no pull requests found for branch "x"', "real"),
        ("docker exec web ps", 1, "Error response from daemon: No such container: web", "real"),
        ("heroku apps:info x", 2, "Couldn't find that app.", "benign"),
        ("npm view foo version", 1, "npm ERR! code E404\nnpm ERR! 404 Not Found", "benign"),
        ("npm install foo", 1, "npm ERR! code E404\nnpm ERR! 404 Not Found", "real"),
        ("npm audit", 1, "# npm audit report\n2 vulnerabilities", "benign"),
        ("npm audit --oops", 1, "npm ERR! unknown option: --oops", "real"),
        ("npm run jobs:list", 1, "Error: no such table: jobs", "real"),
        ("service web status", 3, "web is stopped", "benign"),
        ("service web start", 3, "web has no such unit", "real"),
        ("git status", 128, "fatal: not a git repository (or any of the parent directories): .git", "benign"),
        ("git log --oneline | head -3", 128, "fatal: not a git repository", "benign"),
        ("git add -A", 128, "fatal: not a git repository (or any of the parent directories): .git", "real"),
        ("git diff --stat", 129, "warning: Not a git repository. Use --no-index\nusage: git diff", "benign"),
        ("git merge --ff-only x && git branch -d x", 1, "Already up to date.\nerror: Cannot delete branch 'x'", "real"),
        ("git merge --ff-only x", 1, "Already up to date.", "benign"),
        ("git show HEAD:a.py", 128, "fatal: path 'a.py' does not exist in 'HEAD'", "benign"),
        ("git remote get-url up", 2, "error: No such remote 'up'", "benign"),
        ("git remote remove-all up", 2, "error: unknown subcommand: `remove-all'", "real"),
        # the option asks
        ("crontab -l", 1, "crontab: no crontab for me", "benign"),
        ("crontab jobs.txt", 1, "jobs.txt: no such file", "real"),
        ("dpkg -l foo", 1, "dpkg-query: no packages found matching foo", "benign"),
        # the program asks
        ("id deploy", 1, "id: 'deploy': no such user", "benign"),
        ("nslookup foo", 1, "** server can't find foo: NXDOMAIN", "benign"),
        ("readlink foo", 1, "", "benign"),
        ("ls src/foo 2>/dev/null", 2, "", "benign"),
        ("ls src foo 2>/dev/null", 2, "src", "benign"),
        ("psql -c 'select 1 from x' 2>&1 | cat", 1, 'ERROR:  relation "x" does not exist', "real"),
        ("head -5 README.rst", 1, "head: cannot open 'README.rst' for reading: No such file or directory", "benign"),
        ("git rev-parse nosuch", 128, "fatal: ambiguous argument 'nosuch': unknown revision", "benign"),
        ("git show nosuch", 128, "fatal: ambiguous argument 'nosuch': unknown revision", "real"),
        ("gti status", 127, "bash: line 1: gti: command not found", "real"),
        # what was to be taken away is gone
        ("docker stop web && docker rm web", 1, "Error response from daemon: No such container: web", "benign"),
        ("docker rm web", 1, "Error: cannot remove a running container, stop it first", "real"),
        ("kubectl delete svc web", 1, 'Error from server (NotFound): services "web" not found', "benign"),
        ("tmux kill-session -t x", 1, "can't find session: x", "benign"),
        ("rm -r olds.txt", 1, "rm: olds.txt: No such file or directory", "real"),
        # something before it failed
        ("make gen && docker stop web", 1, "make: gen: No such file or directory", "real"),
        ("python a.py; git status", 1, "Traceback (most recent call last)\nKeyError: not found", "real"),
    ],
)
def test_a_thing_that_is_not_there(command: str, code: int, text: str, expected: str) -> None:
    assert verdict(command, code, text) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("yarn build", 'error Couldn\'t find a package.json file in "/w"', "real"),
        ("cargo build", "error: could not find `Cargo.toml` in `/w` or any parent directory", "real"),
        ("gcc nowhere.c", "cc1: fatal error: nowhere.c: No such file or directory", "real"),
        ("gcc a.c", "a.c:1:10: fatal error: zlib.h: No such file or directory", "env"),
        ("cmake .", 'CMake Error: "/w" does not appear to contain CMakeLists.txt.', "real"),
        ("mvn test", "[ERROR] there is no POM in this directory", "real"),
        ("flutter test", 'Test directory "test" not found.', "real"),
        ("cargo build", "error[E0425]: cannot find value `x` in this scope\n --> src/a.rs:1:1", "benign"),
        ("npx tsc", "src/a.ts(1,1): error TS2307: Cannot find module './b'", "benign"),
    ],
)
def test_a_check_without_anything_to_check_is_a_mistake_in_any_case(command: str, text: str, expected: str) -> None:
    """Findings in code that nobody edited are none of the model's."""
    assert verdict(command, 1, text) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("touch /etc/app.conf", "touch: cannot touch '/etc/app.conf': Permission denied", "env"),
        ("./run.sh", "bash: ./run.sh: Permission denied", "real"),
        ("xdg-open a.html", "/usr/bin/xdg-open: 882: www-browser: not found", "env"),
        ("pytest --cov=a", "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --cov=a", "env"),
        ("pytest --oops=a", "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --oops=a", "real"),
        ("tmux attach", "open terminal failed: not a terminal", "env"),
        ("gcloud run deploy", "ERROR: You do not currently have an active account selected.", "env"),
        ("systemctl start web", "System has not been booted with systemd as init system (PID 1).", "env"),
        ("aws s3 cp a b", "An error occurred (AccessDenied) when calling the PutObject operation", "env"),
        ("aws s3 cp a b", "An error occurred (InvalidArgument) when calling the PutObject operation", "real"),
    ],
)
def test_what_belongs_to_the_place(command: str, text: str, expected: str) -> None:
    assert verdict(command, 1, text) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("describe deploy chekout", 'Error from server (NotFound): deployments.apps "chekout" not found', ["real"]),
        ("describe deploy basket", 'Error from server (NotFound): deployments.apps "basket" not found', ["benign"]),
        ("set env deploy/checkout X", "error: at least one environment variable must be provided", ["real"]),
        ("get secret", "Error from server (Forbidden): secrets is forbidden: User x cannot list", ["env"]),
        ("get deploy checkout", "NAME READY\ncheckout 1/1", []),
    ],
)
def test_a_program_that_is_offered_as_a_tool(command: str, text: str, expected: list[str]) -> None:
    """`checkout` was named before, so `chekout` is a slip."""
    builder = TraceBuilder().step(act(call("kubectl", {"command": "get deploy checkout"}, "c0")), [("checkout", None)])
    builder.step(act(call("kubectl", {"command": command}, "c1")), [(text, None)])
    assert [site.verdict for site in find_sites(builder.build())] == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("python3 -m unittest tests/a.py", "ImportError: Failed to import test module: tests/a\nRan 1 test", "real"),
        ("cargo test --test nosuch", "error: no test target named `nosuch`", "real"),
        ("ninja lint", "ninja: error: unknown target 'lint'", "real"),
        ("python3 -m unittest", "ImportError: Failed to import test module: a\nRan 1 test", "benign"),
    ],
)
def test_a_target_that_is_not_there(command: str, text: str, expected: str) -> None:
    assert verdict(command, 1, text) == expected


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("./sync.sh -x a", "find: unknown predicate `-x'", ["real"]),
        ("./sync.sh", "usage: sync.sh SRC DST", ["real"]),
        ("./sync.sh --help", "usage: sync.sh SRC DST", []),
        ("./sync.sh a", "copied\nusage: 3 %", []),
        ("jq . a.json > a.json && cat a.json", "", ["real"]),
        ("jq . a.json > b.json && cat b.json", "", []),
        ("jq . a.json >> a.json", "", []),
    ],
)
def test_mistakes_behind_exit_code_0(command: str, text: str, expected: list[str]) -> None:
    sites = find_sites(TraceBuilder().step(act(bash(command)), [(text, False)]).build())
    assert [site.verdict for site in sites] == expected


def test_a_script_that_needs_a_missing_program_and_a_folder_that_is_there() -> None:
    shell = Tool("Bash", "", {"type": "object", "properties": {"command": {"type": "string"}}})
    missing = [("Exit code 127\nsync.sh: line 8: rsync: command not found", True)]
    (site,) = find_sites(TraceBuilder(tools=[shell]).step(act(bash("bash sync.sh a b")), missing).build())
    assert (site.kind, site.verdict) == ("tool_error", "env")
    made = act(call("create_directory", {"path": "/w/a"}))
    there = [("Error: EEXIST: file already exists, mkdir '/w/a'", None)]
    assert [site.verdict for site in find_sites(TraceBuilder().step(made, there).build())] == ["benign"]
