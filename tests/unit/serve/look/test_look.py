"""What is shown: the tree, what is new in a context, the row, the terminal, the packed page, the local server."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import time
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from rich.console import Console

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Text, ToolResult
from postgrad.serve.look import terminal
from postgrad.serve.look.detail import detail
from postgrad.serve.look.listing import listed, title, tokens
from postgrad.serve.look.outline import outline
from postgrad.serve.look.page import write_page
from postgrad.serve.look.server import looking
from postgrad.serve.look.shelf import Shelf
from postgrad.signals.error_sites.sites import find_sites
from unit.serve.look.traces_by_hand import HOSTILE, branched, long, many, step, subagent

ALL = [branched(), subagent(), *many(3)]


def whole(trace: Any) -> dict[str, Any]:
    return detail(trace, find_sites(trace))


def test_a_branch_stands_to_the_right_and_the_line_goes_on() -> None:
    """0-1-4 is the line: 4 goes on from 1, so of 1's two children the abandoned 2 begins a branch, and 3 follows it."""
    places = outline(branched())
    assert [(p.step, p.parent, p.depth) for p in places] == [(0, None, 0), (1, 0, 0), (2, 1, 1), (3, 2, 1), (4, 1, 0)]
    assert [p.step for p in places if p.branches] == [1]


def test_parents_that_are_not_there_or_come_later_are_roots() -> None:
    odd = msgspec.structs.replace(branched(), steps=(step(0, Text("a"), parent=5), step(1, Text("b"), parent=1)))
    assert [(p.parent, p.depth) for p in outline(odd)] == [(None, 0), (None, 0)]


def test_a_subagent_inside_a_trace_stands_to_the_right() -> None:
    mixed = (step(0, Text("a")), step(1, Text("b"), kind="subagent"), step(2, Text("c")))
    assert [p.depth for p in outline(msgspec.structs.replace(branched(), steps=mixed))] == [0, 1, 0]


def test_the_row() -> None:
    """5 steps with 100..104 + 10 tokens and 60 cached each; step 1 is the mistake."""
    row = listed(branched(), find_sites(branched()), key=3)
    assert (row["key"], row["title"], row["steps"], row["calls"], row["abandoned"]) == (
        3,
        "Count the <files>.",
        5,
        3,
        2,
    )
    assert row["tokens"] == {"input": 510, "output": 50, "cached": 300}
    assert row["verdicts"] == {"real": 1}
    assert row["models"] == ["model-a", "model-b"]
    assert (row["first"], row["last"]) == ("2026-01-01T10:00:00Z", "2026-01-01T10:00:04Z")


def test_a_trace_that_goes_on_is_named_by_what_the_user_said_last() -> None:
    """A turn of a longer conversation: its context begins with the turns before it."""
    talk = [Message.of("user", "Count."), Message.of("assistant", "3."), Message.of("user", "And the rest?")]
    first = step(0, Text("5."))
    request = msgspec.structs.replace(first.request, messages=tuple(message.id for message in talk))
    steps = (msgspec.structs.replace(first, request=request),)
    trace = msgspec.structs.replace(branched(), messages={m.id: m for m in talk}, steps=steps)
    assert title(trace) == "And the rest?"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}, (3, 4, 5)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}, (3, 4, 2)),
        ({"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 1}}, (3, 4, 1)),
        ({"input_tokens": True, "output_tokens": None, "prompt_tokens_details": 7}, (0, 0, 0)),
        ({}, (0, 0, 0)),
    ],
)
def test_tokens_under_their_many_names(usage: dict[str, Any], counts: tuple[int, int, int]) -> None:
    candidate = msgspec.structs.replace(branched().steps[0].candidates[0], usage=usage)
    assert tuple(tokens(candidate).values()) == counts


def test_only_news_is_shown_at_a_step() -> None:
    """Step 1 sees what step 0 saw, its action and its result, and one more thing that the user said."""
    user, more = Message.of("user", "one"), Message.of("user", "two")
    action = Message("assistant", branched().steps[0].action.blocks)
    result = Message("tool", (ToolResult("c0", "a\nb"),))
    pool = {m.id: m for m in (user, action, result, more)}
    first = step(0, *action.blocks, seen=(user.id,), results=(ToolResult("c0", "a\nb"),))
    second = step(1, Text("done"), seen=(user.id, action.id, result.id, more.id))
    shown = whole(msgspec.structs.replace(branched(), messages=pool, steps=(first, second)))
    assert [one["new"] for one in shown["steps"]] == [[user.id], [more.id]]
    assert shown["messages"].keys() == {user.id, more.id}


def test_sites_stand_at_their_step_with_rule_and_evidence() -> None:
    shown = whole(branched())
    [site] = shown["steps"][1]["sites"]
    assert (site["verdict"], site["call"], site["record"]) == ("real", "c1", 7)
    assert site["rule"]
    assert shown["steps"][1]["results"]["c1"]["record"] == 7
    assert [len(one["others"]) for one in shown["steps"]] == [0, 1, 0, 0, 0]


def test_long_texts_are_cut_with_a_word_on_the_page_only() -> None:
    shown = detail(long(1), [], longest=100)
    assert "more characters are not shown" in shown["steps"][0]["results"]["c0"]["text"]
    assert "more characters" not in str(whole(long(1)))


def test_a_page_holds_everything_packed_and_names_no_host(tmp_path: Path) -> None:
    told = write_page(ALL, tmp_path / "page.html", name=HOSTILE)
    page = (tmp_path / "page.html").read_text()
    assert (told["traces"], told["whole"], told["bytes"]) == (5, 5, len(page.encode()))
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "<img" not in page
    packed = re.findall(r'<script type="text/plain" id="d(\d+)">(\S+)</script>', page)
    details = [json.loads(zlib.decompress(base64.b64decode(text))) for _, text in packed]
    assert [one["id"] for one in details] == [trace.id for trace in ALL]
    assert details[1]["steps"][0]["blocks"][0]["text"] == HOSTILE
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page, "the policy lets this script run and no other"


def test_the_script_never_sets_html() -> None:
    folder = Path(terminal.__file__).parent / "templates"
    for file in folder.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", file.read_text()
        )


def test_a_full_page_lists_the_rest(tmp_path: Path) -> None:
    told = write_page(ALL, tmp_path / "page.html", name="x", largest=2500)
    assert (told["traces"], 0 < told["whole"] < 5) == (5, True)


def get(address: str, path: str, host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read(), dict(answer.getheaders())


def test_the_local_server() -> None:
    with looking(iter(ALL), name="store") as address:
        assert address.startswith("http://127.0.0.1:")
        status, page, _ = get(address, "/")
        assert (status, b"connect-src 'self'" in page) == (200, True)
        end = time.monotonic() + 10
        while not (told := json.loads(get(address, "/api/rows?from=0")[1]))["done"]:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert [row["id"] for row in told["rows"]] == [trace.id for trace in ALL]
        assert json.loads(get(address, "/api/rows?from=4")[1])["rows"][0]["id"] == "many-2"
        status, packed, headers = get(address, "/api/trace/1")
        assert headers["Content-Encoding"] == "deflate"
        assert json.loads(zlib.decompress(packed))["id"] == "sub-2"
        assert [json.loads(get(address, f"/api/search?words={w}")[1]) for w in ("QUESTION%202", "nowhere")] == [[4], []]
        for path in ("/api/trace/99", "/api/trace/-1", "/api/trace/x", "/etc/passwd", "/../x"):
            assert get(address, path)[0] == 404, path
        assert get(address, "/", host="evil.example:80")[0] == 403
        with pytest.raises(ConfigError, match="--port 0"), looking([], name="x", port=urlsplit(address).port or 0):
            pass


def test_many_traces_are_on_the_shelf_soon() -> None:
    shelf = Shelf()
    begun = time.process_time()
    shelf.fill(many(300))
    assert time.process_time() - begun < 6  # 2 ms each on a quiet machine
    assert list(shelf.found("Question 299:")) == [299]
    with pytest.raises(IndexError):
        shelf.packed(300)


def printed(renderable: Any) -> str:
    console = Console(width=120, no_color=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(renderable, markup=False, highlight=False)
    return console.export_text()


def test_the_tree_in_a_terminal() -> None:
    text = printed(terminal.trace(whole(branched())))
    assert "run count --cuont" in text
    assert "│   ├──   2 A branch.  [abandoned]" in text
    assert "└──   3 Its end.  [helper, abandoned]" in text
    assert "[goes on from 1]" in text
    assert "compaction: summary of what was" in text
    assert re.search(r"real .*rule .*record 7.*no such option", text)


def test_a_step_in_a_terminal_is_whole() -> None:
    text = printed(terminal.step(whole(branched()), 1))
    assert text.count("\n  line") == 40
    assert '"command": "count --cuont"' in text
    assert "another answer" in text


def test_a_terminal_obeys_no_foreign_text() -> None:
    shown = whole(subagent())
    for text in (printed(terminal.trace(shown)), printed(terminal.step(shown, 0)), printed(terminal.step(shown, 1))):
        assert "\x1b" not in text
    assert "\\x1b[31mred" in printed(terminal.step(shown, 0))
    assert '{"broken' in printed(terminal.step(shown, 1))


def test_short_names_tell_apart() -> None:
    assert terminal.short_names(["abcdefgh12", "abcdefgh34", "x"]) == ["abcdefgh1", "abcdefgh3", "x"]
    assert terminal.short_names(["a", "a"]) == ["a", "a"]
    assert terminal.short_names([]) == []
