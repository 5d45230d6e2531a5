"""Personal data: what is found, and the many things in traces that look like it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from postgrad.core.errors import ConfigError, MissingDependency
from postgrad.traces.redaction import pii
from postgrad.traces.redaction.redactor import Redactor

FOUND = [
    ("email", "write to <alice.smith+x@mail.example.com>, please", "alice.smith+x@mail.example.com"),
    ("email", '{"to": "bob@firma.de"}', "bob@firma.de"),
    ("email", "carol@uni.ac.uk.", "carol@uni.ac.uk"),
    ("phone", "call +1 415-555-2671 now", "+1 415-555-2671"),
    ("phone", "(415) 555-2671", "(415) 555-2671"),
    ("phone", "415.555.2671", "415.555.2671"),
    ("phone", "+14155552671", "+14155552671"),
    ("phone", "Tel. +49 30 1234567", "+49 30 1234567"),
    ("phone", "030 1234567,", "030 1234567"),
    ("phone", "0171/1234567", "0171/1234567"),
    ("phone", "06 12 34 56 78", "06 12 34 56 78"),
    ("phone", "+86 138 0013 8000", "+86 138 0013 8000"),
    ("ip", "from 203.0.113.7 port 22", "203.0.113.7"),
    ("ip", "http://192.168.1.42:8080/", "192.168.1.42"),
    ("ip", "[2001:db8::8a2e:370:7334]", "2001:db8::8a2e:370:7334"),
    ("card", "4111 1111 1111 1111", "4111 1111 1111 1111"),
    ("card", "5500-0055-5555-5559", "5500-0055-5555-5559"),
    ("card", "amex 378282246310005", "378282246310005"),
    ("iban", "IBAN DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432", "GB82WEST12345698765432"),
]
LOOK_ALIKES = [
    "550e8400-e29b-41d4-a716-446655440000",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "task-output-waiting-1770123456789",
    "toolu_01A09q90qw90lq917835lq9",
    "git@github.com:me/repo.git",
    "noreply@anthropic.com, 123+me@users.noreply.github.com",
    "2026-01-01T00:00:00.000Z 12:34:56 04-11-2024 2024-11-30",
    "1770123456789 1770123456 1234567890123456",
    "+1770123456789",
    "version 1.2.3.4, v10.0.19041.1, pkg==1.2.3.4, Chrome/120.0.6099.109",
    "127.0.0.1:8080 0.0.0.0 255.255.255.0",
    "x@self.weight y@b.T @app.route lodash@4.17.21 @types/node@20.1.2",
    "std::vector<a::b> dead::beef::cafe ::1 a::b::c 00:1a:2b:3c:4d:5e",
    "0x7fff5fbff8c0 0000:00:1f.0",
    "-rw-r--r-- 1 root root 12345 Nov 30 13:06",
    "00 11 22 33 44 55 66 77",
    "0.25 0.50 0.75 1.00 [0.123456, 0.345678]",
    "4111111111111112",
    "DE89 3704 0044 0532 0130 01",
    "line 100-200, 300-400, 1700000000 1700000001",
    "0000000000000000 1111111111111111",
]


@pytest.mark.parametrize(("kind", "text", "found"), FOUND)
def test_personal_data_becomes_marks_that_name_their_kind(kind: str, text: str, found: str) -> None:
    redactor = Redactor(also=["pii"])
    assert redactor.redact(text) == text.replace(found, f"<pii:{kind}:1>")
    assert redactor.counts == {kind: 1}
    assert Redactor().redact(text) == text, "only on request"


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alikes_are_untouched(text: str) -> None:
    assert Redactor(also=["pii"]).redact(text) == text


def test_one_address_has_one_mark_everywhere_and_marks_stay() -> None:
    texts = ["alice@example.com and bob@example.com", {"from": "alice@example.com"}]
    once = Redactor(also=["pii"]).redact(texts)
    assert once == ["<pii:email:1> and <pii:email:2>", {"from": "<pii:email:1>"}]
    assert Redactor(also=["pii"]).redact(once) == once


def test_keyed_marks_do_not_depend_on_order_and_tell_nothing_without_the_key() -> None:
    texts = ["alice@example.com", "bob@example.com"]
    one, other = Redactor(key=b"k", also=["pii"]), Redactor(key=b"k", also=["pii"])
    assert one.redact(texts) == other.redact(texts[::-1])[::-1]
    assert Redactor(key=b"other", also=["pii"]).redact(texts) != one.redact(texts)


class ByCapitals:
    """Stands in for the language model: a name is two words with capitals."""

    def analyze(self, *, text: str, entities: list[str], language: str, score_threshold: float) -> list[Any]:
        assert entities == ["PERSON"]
        start = text.find("Ada Lovelace")
        return [SimpleNamespace(start=start, end=start + 12)] if start >= 0 else []


def test_names_are_asked_for_in_running_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModuleType("presidio_analyzer")
    model.AnalyzerEngine = ByCapitals  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "presidio_analyzer", model)
    pii._analyzer.cache_clear()
    redactor = Redactor(also=["names"])
    assert redactor.redact("The note is by Ada Lovelace.") == "The note is by <pii:name:1>."
    assert Redactor(also=["names"]).redact("x = f(Ada Lovelace={1});") == "x = f(Ada Lovelace={1});"
    pii._analyzer.cache_clear()


def test_names_without_the_library_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    pii._analyzer.cache_clear()
    with pytest.raises(MissingDependency, match=r"pip install 'postgrad\[names\]'"):
        Redactor(also=["names"])
    with pytest.raises(ConfigError, match="pii or names"):
        Redactor(also=["everything"])
