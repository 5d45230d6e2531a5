"""A look for a file that a listing had shown not to be there is a mistake; any other look is none."""

from __future__ import annotations

import pytest

from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash, call

GONE = [("<tool_use_error>File does not exist.</tool_use_error>", True)]


def verdict(listing: str, output: str, path: str, *, read: str = "/home/t/infra/main.tf") -> str:
    """What is said of reading `path` after `listing` gave `output` and `read` was read."""
    builder = TraceBuilder().step(act(bash(listing, "c0")), [(output, False)])
    builder.step(act(call("Read", {"file_path": read}, "c1")), [("x", False)])
    builder.step(act(call("Read", {"file_path": path}, "c2")), GONE)
    (site,) = find_sites(builder.build())
    return site.verdict


@pytest.mark.parametrize(
    ("listing", "output", "path", "expected"),
    [
        ("git log -1; ls", "88dc882 initial\nMakefile\nmain.tf", "/home/t/infra/modules/main.tf", "real"),
        ("ls", "Makefile\nmain.tf\nmodules", "/home/t/infra/modules/queue/main.tf", "benign"),
        ("ls", "Makefile\nmain.tf", "/home/t/other/a.tf", "benign"),  # of another folder
        ("ls | head -2", "Makefile\nmain.tf", "/home/t/infra/modules/main.tf", "benign"),  # a part of it
        ("ls /home/t/infra/docs", "index.md", "/home/t/infra/docs/guide.md", "real"),
        ("ls /home/t/infra/docs", "index.md\nguide", "/home/t/infra/docs/guide/a.md", "benign"),
        ("git ls-files", "Makefile\nmain.tf\nsrc/a.tf", "/home/t/infra/src/b.tf", "real"),
        ("git ls-files", "Makefile\nmain.tf\n[... truncated]", "/home/t/infra/src/b.tf", "benign"),
        ("git status --short", "M main.tf", "/home/t/infra/src/b.tf", "benign"),
    ],
)
def test_a_listing_tells_what_is_not_there(listing: str, output: str, path: str, expected: str) -> None:
    assert verdict(listing, output, path) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"), [("test/**/*coupon*", "real"), ("test/**/*price*", "benign"), ("**/*", "benign")]
)
def test_a_search_that_found_none_tells_it_too(pattern: str, expected: str) -> None:
    found = [(f'No files found matching pattern "{pattern}"', False)]
    builder = TraceBuilder().step(act(call("glob", {"pattern": pattern}, "c0")), found)
    builder.step(act(call("Read", {"file_path": "/w/test/coupon.test.ts"}, "c1")), GONE)
    assert find_sites(builder.build())[-1].verdict == expected


@pytest.mark.parametrize(
    ("line", "output", "expected"),
    [
        (
            "git status --short; cat README.md",
            "Exit code 1\n M a.py\ncat: README.md: No such file or directory",
            "benign",
        ),
        ("make && cat out.txt", "Exit code 1\ncat: out.txt: No such file or directory", "real"),
    ],
)
def test_a_look_at_the_end_of_a_list_is_a_look(line: str, output: str, expected: str) -> None:
    (site,) = find_sites(TraceBuilder().step(act(bash(line, "c0")), [(output, True)]).build())
    assert site.verdict == expected
