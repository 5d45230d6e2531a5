"""The page in a real headless browser: lists, filters, search, keys, the tree, mistakes, hostile text, narrow and dark.

It drives the Chromium of the machine (Debian: apt-get install chromium), or the one that CHROMIUM names.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from postgrad.core.message import Message, Reasoning, Text, ToolCall, ToolResult
from postgrad.core.trace import Source, Trace
from postgrad.serve.look.page import write_page
from postgrad.serve.look.server import looking
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.readers import read
from unit.serve.look.traces_by_hand import branched, long, many, subagent

SHARED = Path(os.environ.get("POSTGRAD_SHARED", Path(__file__).parents[3] / "shared")) / "traces"
LARGEST = sorted((SHARED / "claude_code").glob("*.jsonl"), key=lambda path: path.stat().st_size)[-2:]
ATTACK = "</script><!--<script>window.attacked = 1</script><img src=x onerror='attacked = 1'>]]>\u2028{{ 7 }}"
ALL = [branched(), subagent(), long(), *many(5)]


def hostile(steps: int, longest: int) -> Trace:
    """A trace whose every word is an attack; the first result is `longest` characters in one line."""
    talk = Conversation(agent=ATTACK, params={ATTACK: ATTACK})
    talk.tell(Message.of("user", ATTACK))
    for number in range(steps):
        called = ToolCall.from_raw(id=f"{ATTACK}{number}", name=ATTACK, raw=json.dumps({ATTACK: ATTACK}))
        talk.act(Action((Reasoning(ATTACK), Text(ATTACK), called), (2 * number,), model=ATTACK, stop_reason=ATTACK))
        said = ATTACK + "x" * (longest if number == 0 else 0) + "\ud83d"
        talk.answer(ToolResult(called.id, said, number % 2 == 0), record=2 * number + 1)
        talk.event(ATTACK, 2 * number, ATTACK)
    trace = talk.trace(Source(ATTACK, ATTACK, app=ATTACK, app_version=ATTACK), ATTACK)
    assert trace is not None
    return trace


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found, "these tests need a Chromium: apt-get install chromium, or name one in CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which an error of the script, a blocked load or a dialog is a failed test."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(30_000)
    expect.set_options(timeout=30_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("dialog", lambda dialog: faults.append("a dialog") or dialog.dismiss())
    page.on(
        "request",
        lambda asked: (
            faults.append(asked.url)
            if "127.0.0.1" not in asked.url and not asked.url.startswith(("file:", "data:", "blob:"))
            else None
        ),
    )
    yield page
    page.close()
    assert faults == []


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("look") / "page.html"
    write_page(ALL, path, name="my store")
    return path.as_uri()


def keys(page: Page) -> list[str]:
    return [str(one.get_attribute("data-key")) for one in page.locator("#rows a").all()]


def test_list_and_filters(page: Page, file: str) -> None:
    page.goto(file)
    expect(page.locator("#status")).to_have_text("8 traces")
    expect(page.locator("#rows li.child")).to_have_count(1)
    assert keys(page)[:2] == ["0", "1"], "the subagent stands below its parent"
    page.select_option("#format", "codex_cli")
    assert keys(page) == ["1"]
    page.select_option("#format", "")
    page.select_option("#model", "model-b")
    assert keys(page) == ["0"]
    page.select_option("#model", "")
    page.select_option("#errors", "learnable")
    assert keys(page) == ["0", "1"]
    expect(page.locator("#status")).to_have_text("2 of 8 traces")
    page.select_option("#errors", "")
    page.select_option("#order", "longest")
    assert keys(page)[0] == "2"
    page.fill("#words", "what is 3 PLUS 3")
    expect(page.locator("#status")).to_have_text("1 of 8 traces")
    assert keys(page) == ["6"]


def test_tree_mistakes_and_links(page: Page, file: str) -> None:
    """The mistake at step 1 shows verdict, kind, rule and record, and leads to the step that did it right."""
    page.goto(file + "#/0")
    expect(page.locator(".step")).to_have_count(5)
    expect(page.locator(".outline a.aside")).to_have_count(2)
    expect(page.locator(".step.left")).to_have_count(2)
    site = page.locator("#s1 .site")
    expect(site).to_contain_text("real")
    expect(site).to_contain_text("rule ")
    expect(site).to_contain_text("evidence in record 7")
    site.get_by_role("link", name="step 4").click()
    expect(page.locator("#s4")).to_have_attribute("aria-current", "true")
    assert page.url.endswith("#/0/4")
    expect(page.locator("#s4")).to_contain_text("goes on from step 1")
    expect(page.locator(".event")).to_have_count(1)
    expect(page.locator(".event")).to_contain_text("summary of what was")
    expect(page.locator(".facts")).to_contain_text("510 / 50 · 300 cached")
    page.locator(".facts a").click()
    expect(page.locator("main h1")).to_contain_text("</script>")


def test_foreign_text_is_text(page: Page, file: str) -> None:
    page.goto(file + "#/1")
    expect(page.locator(".step")).to_have_count(2)
    assert page.locator("main img, main b:text('bold')").count() == 0
    expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)> {{ 7 * 7 }}")
    expect(page.locator("#s0")).to_contain_text("media: image/png")
    expect(page.locator("#s0 summary", has_text="new_kind")).to_have_count(1)
    expect(page.locator("#s1")).to_contain_text("Arguments do not parse")


def test_two_hundred_steps_fold_and_move_by_keys(page: Page, file: str) -> None:
    page.goto(file + "#/2")
    expect(page.locator(".step")).to_have_count(220)
    fold = page.locator("#s0 .result .fold")
    assert fold.locator("pre").inner_text().count("\n") < 20
    fold.get_by_role("button").click()
    assert fold.locator("pre").inner_text().count("\n") == 299
    for place in range(3):
        page.keyboard.press("j")
        expect(page.locator(f"#s{place}")).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    expect(page.locator("#s1")).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#s1 .fold button")).to_have_text("Show less")
    page.goto(file + "#/2/219")
    expect(page.locator("#s219")).to_be_in_viewport()
    page.keyboard.press("]")
    expect(page.locator("main h1")).to_contain_text("Question 0")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#words")).to_be_focused()


def test_the_next_mistake(page: Page, file: str) -> None:
    page.goto(file + "#/0")
    page.wait_for_selector(".step")
    page.keyboard.press("n")
    expect(page.locator("#s1")).to_have_attribute("aria-current", "true")


def test_a_hostile_trace_of_two_hundred_steps_stays_text(page: Page, tmp_path: Path) -> None:
    """Script in every place that a stranger can write, a lone surrogate, and five million characters in one result."""
    path = tmp_path / "page.html"
    write_page([hostile(200, 5_000_000)], path, name=ATTACK)
    page.goto(path.as_uri() + "#/0")
    expect(page.locator(".step")).to_have_count(200)
    assert page.evaluate("window.attacked === undefined")
    assert page.locator("main script, main img, main iframe").count() == 0
    expect(page.locator("#s0")).to_contain_text(ATTACK)
    page.goto(path.as_uri() + "#/0/199")
    expect(page.locator("#s199")).to_have_attribute("aria-current", "true")
    page.fill("#words", "attacked = 1")
    expect(page.locator("#status")).to_have_text("1 trace")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow(page: Page, file: str, scheme: Any) -> None:
    """On a telephone the list and the trace take turns; nothing is wider than the screen; ink and paper differ."""
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto(file)
    expect(page.locator("main")).to_be_hidden()
    page.locator("#rows a").first.click()
    expect(page.locator(".list")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelector('main').scrollWidth") <= 390
    ink, paper = page.evaluate("(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))")
    assert (brightness(ink) > brightness(paper)) == (scheme == "dark")
    page.locator(".back").click()
    expect(page.locator(".list")).to_be_visible()


def brightness(colour: str) -> int:
    return sum(int(part) for part in colour[4:-1].split(",")[:3])


def test_a_page_that_is_full_says_so(page: Page, tmp_path: Path) -> None:
    write_page(ALL, tmp_path / "page.html", name="x", largest=3000)
    page.goto((tmp_path / "page.html").as_uri() + "#/7")
    expect(page.locator("#status")).to_contain_text("are listed only")
    expect(page.locator("main")).to_contain_text("postgrad show STORE --serve")


def test_the_live_page(page: Page) -> None:
    with looking(iter(ALL), name="store") as address:
        page.goto(address)
        expect(page.locator("#status")).to_have_text("8 traces")
        page.locator("#rows a").first.click()
        expect(page.locator(".step")).to_have_count(5)
        page.fill("#words", "question 4")
        expect(page.locator("#status")).to_have_text("1 of 8 traces")


@pytest.mark.slow
def test_a_thousand_traces(page: Page) -> None:
    """The page can be used while the store is read, and filters work on all rows when it is."""
    with looking(iter(many(1000)), name="store") as address:
        page.goto(address)
        page.locator("#rows a").first.click()
        expect(page.locator(".step")).to_have_count(2)
        expect(page.locator("#status")).to_have_text("1000 traces", timeout=120_000)
        page.fill("#words", "Question 77")
        expect(page.locator("#status")).to_have_text("11 of 1000 traces", timeout=60_000)
        assert keys(page) == ["77", *map(str, range(770, 780))]


@pytest.mark.parametrize("path", LARGEST, ids=lambda path: path.name)
def test_real_sessions(page: Page, tmp_path: Path, path: Path) -> None:
    traces: list[Trace] = list(read(path).traces)
    write_page(traces, tmp_path / "page.html", name=path.name)
    longest = max(range(len(traces)), key=lambda key: len(traces[key].steps))
    page.goto(f"{(tmp_path / 'page.html').as_uri()}#/{longest}")
    expect(page.locator(".step")).to_have_count(len(traces[longest].steps))
    expect(page.locator(".outline a")).to_have_count(len(traces[longest].steps))
    calls = sum(len(step.action.tool_calls) for step in traces[longest].steps)
    assert page.locator(".step > .call").count() == calls
