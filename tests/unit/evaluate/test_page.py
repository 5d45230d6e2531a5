"""The page: complete, self-contained, and safe against what models write."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import msgspec

from postgrad.core.report import Report, Unmeasured
from postgrad.evaluate.curves import HEIGHT, WIDTH, curves
from postgrad.evaluate.gates import GatePolicy, gate
from postgrad.evaluate.page import html, report_data
from unit.evaluate.reports_by_hand import first, report, score

POLICY = GatePolicy(targets=("t",), guards=("g",))
VOID = {"meta", "br", "line", "circle", "polyline"}


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that they close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def data(answer: str = "fine", **told: Any) -> dict[str, Any]:
    before = report(score("t", first(0, 60)), unmeasured=[Unmeasured("g", "no data here")], model="base")
    after = report(score("t", first(30, 60)), model=f"trained {answer}")
    items = tuple(msgspec.structs.replace(item, answer=answer, error=answer) for item in after.scores["t"].items)
    after = Report(after.model, {"t": msgspec.structs.replace(after.scores["t"], items=items)})
    return report_data(before, after, gate(before, after, POLICY), **told)


def test_the_page_says_the_decision_once_above_its_reasons_and_shows_intervals_not_standard_errors() -> None:
    """A standard error of 0.0 % for none of n would claim to be sure; the interval beside it is right."""
    page = html(data())
    assert page.count(">iterate<") == 1
    assert "<li>iterate" not in page
    assert "standard error" not in page


def test_page_tells_everything() -> None:
    page = html(
        data(
            title="A run",
            metrics={"05-train": [{"step": i, "loss/preference": 1.0 / (i + 1)} for i in range(5)]},
            stages=[{"stage": "train", "what": "three channels", "result": "60 steps", "seconds": 12.34}],
            teachers=[{"name": "gold", "kind": "gold answers", "what": "answered 40 of 40"}],
        )
    )
    text = re.sub(r"<[^>]+>", " ", page)
    for told in ("A run", "iterate g was not measured", "no data here", "+50.0", "30 / 0", "n = 60", "loss/preference",
                 "gold answers", "12.3", "grader: g 1"):  # fmt: skip
        assert told in " ".join(text.split()) or told in page, told
    tags = Tags()
    tags.feed(page)
    assert tags.open == []


def test_page_names_no_host_and_runs_nothing() -> None:
    tags = Tags()
    tags.feed(html(data()))
    assert not {"script", "iframe", "object", "embed", "link", "img", "form"} & {tag for tag, _ in tags.seen}
    attributes = [name for _, attrs in tags.seen for name in attrs]
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "srcset", "xlink:href")]


def test_model_output_is_text_and_nothing_else() -> None:
    """An answer that tries to close the page, run a script and break out of an attribute is shown as it is."""
    hostile = "</pre></body><script>alert(1)</script>\" onload='x' {{ 7 * 7 }} <img src=http://evil.example/>"
    page = html(data(hostile, title=hostile, teachers=[{"name": hostile, "kind": hostile, "what": hostile}]))
    tags = Tags()
    tags.feed(page)
    assert "script" not in {tag for tag, _ in tags.seen}
    assert "img" not in {tag for tag, _ in tags.seen}
    assert "{{ 7 * 7 }}" in page
    assert page.count("</body>") == 1


def test_data_is_plain_json() -> None:
    whole = data(metrics={"05-train": [{"step": 0, "loss": 1.0}]})
    assert json.loads(json.dumps(whole)) == whole
    assert [example["kind"] for example in whole["benchmarks"][0]["examples"]] == ["fixed"] * 5


def test_curve_spans_its_box_and_skips_what_is_no_number() -> None:
    """Losses 4, 2, 3 at steps 0, 1, 3: the highest value is drawn at y = 0, the lowest at HEIGHT, 3 half way."""
    rows = [{"step": 0, "loss": 4.0}, {"step": 1, "loss": 2}, {"step": 2, "loss": None}, {"step": 3, "loss": 3.0}]
    (curve,) = curves([*rows, {"step": 4, "lr": 1.0}])
    assert curve.points == f"0.0,0.0 {WIDTH / 3:.1f},{HEIGHT:.1f} {WIDTH:.1f},{HEIGHT / 2:.1f}"
    assert (curve.first, curve.last, curve.low, curve.high, curve.steps) == (4.0, 3.0, 2.0, 4.0, (0, 3))


def test_long_series_are_thinned_and_keep_both_ends() -> None:
    (curve,) = curves([{"step": i, "loss": float(i)} for i in range(10_001)])
    points = curve.points.split()
    assert len(points) <= 402
    assert (points[0], points[-1]) == (f"0.0,{HEIGHT:.1f}", f"{WIDTH:.1f},0.0")


def test_a_constant_series_is_a_line() -> None:
    (curve,) = curves([{"step": step, "loss": 1.0} for step in (0, 1, 2)])
    assert curve.points == f"0.0,{HEIGHT:.1f} {WIDTH / 2:.1f},{HEIGHT:.1f} {WIDTH:.1f},{HEIGHT:.1f}"


def test_two_values_are_numbers_and_no_trend() -> None:
    """A line needs three values, and up to twenty are marked one by one."""
    rows = [{"step": step, "loss": 1.0 / (step + 1)} for step in range(21)]
    page = {n: html(data(metrics={"train": rows[:n]})) for n in (1, 2, 3, 20, 21)}
    drawn = {n: (text.count("<polyline"), text.count('r="2.5"')) for n, text in page.items()}
    assert drawn == {1: (0, 0), 2: (0, 0), 3: (1, 3), 20: (1, 20), 21: (1, 0)}
    assert "two values: 1 at step 0, 0.5 at step 1" in page[2]
    assert "one value: 1 at step 0" in page[1]
    assert curves([{"step": 0, "loss": None}]) == []
