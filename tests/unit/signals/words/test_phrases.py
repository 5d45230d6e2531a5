"""A list of alternatives finds what the one expression finds, and only skips what cannot match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postgrad.signals.error_sites import asking, environment, rules
from postgrad.signals.words import failed_runs, fault_texts, wordings
from postgrad.signals.words.phrases import _FOLDED, Phrases, alternatives, needles

TABLES = {name: value for name, value in vars(wordings).items() if isinstance(value, Phrases)}
TABLES |= {f"fault {kind}": value for kind, value in fault_texts._PATTERNS}
TABLES |= {"summary": failed_runs.SUMMARY, "crash": failed_runs.CRASH, "server": environment._LOCAL_SERVER}
TABLES |= {"hook": rules._COMMIT_HOOK, "suggests": asking.SUGGESTS, "usage": failed_runs.MISUSED}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("not found", {"not found"}),
        (r"\bENOENT\b", {"enoent"}),
        (r"files? (?:was )?not found", {"not found"}),
        (r"(?:file|path) \d", {"file", "path"}),
        (r"a+b{2,3}c{0,1}de", {"de"}),
        (r"[ab]\d.$", None),
        (r"(?:long|)x", {"x"}),
        (r"(?=long)x|y\.z", {"x", "y.z"}),
        (r"(?i:Error|Fatal)\s?TS", {"error", "fatal"}),
        (r".{0,80}?late(?:xy)*", {"late"}),
    ],
)
def test_needles_by_hand(pattern: str, expected: set[str] | None) -> None:
    """The plain part with the longest shortest string; what may be left out is none.

    "files? (?:was )?not found" is "file", " " and "not found": a repeated or optional part ends a run of characters.
    """
    found = needles(pattern)
    assert found == (None if expected is None else frozenset(expected))


def test_bars_in_brackets_and_sets_do_not_part() -> None:
    assert alternatives(r"a(b|c)|[|]d|e\|f") == [r"a(b|c)", "[|]d", r"e\|f"]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_mostly_skipped(name: str) -> None:
    """At most one alternative in four has nothing to be skipped by."""
    parts = TABLES[name]._parts
    assert sum(min(map(len, held)) < 3 for held, _ in parts) <= max(1, len(parts) // 4)


def _whole(phrases: Phrases) -> re.Pattern[str]:
    return re.compile(phrases._pattern, phrases._flags)


_WORDS = sorted({word for table in TABLES.values() for held, _ in table._parts for word in held})
_TEXT = st.lists(
    st.sampled_from(_WORDS)
    | st.sampled_from([w.upper() for w in _WORDS])
    | st.text(max_size=6)
    | st.sampled_from([": ", " ", "\n", "1", " file ", "error", " not found", "'x'", "\u0130", "\u017f", "\u212a"]),
    max_size=12,
).map("".join)


@settings(deadline=None)  # the first text compiles what it needs
@given(_TEXT)
def test_the_same_match_as_one_expression(text: str) -> None:
    """The whole expression is the alternatives with bars between them."""
    for phrases in TABLES.values():
        one, other = phrases.search(text), _whole(phrases).search(text)
        assert (one and one.span()) == (other and other.span())
        assert phrases.possible(text) or other is None


def test_no_other_letter_folds_to_one_of_ours() -> None:
    """Every character that an expression without case takes for ours becomes it in small letters, or is known."""
    letters = {letter for word in _WORDS for letter in word}
    ours = re.compile("[" + re.escape("".join(sorted(letters))) + "]", re.IGNORECASE)
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    other = {found for found in ours.findall(everything) if found.lower() not in letters}
    assert all(map(_FOLDED.match, other))


def test_the_leftmost_then_the_first() -> None:
    """At place 0 both "ab" and "abc" match: the first alternative counts, as in one expression."""
    assert Phrases("abc|ab").search("xxabc")[0] == "abc"  # type: ignore[index]
    assert Phrases("ab|abc").search("xxabc")[0] == "ab"  # type: ignore[index]
    assert Phrases("late|early").search("early late")[0] == "early"  # type: ignore[index]
