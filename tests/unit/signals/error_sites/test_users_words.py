"""What users say, in their languages: a correction, a stop, a word on a finished answer, or nothing of the kind."""

from __future__ import annotations

import pytest

from postgrad.core.message import Text
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, call

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


@pytest.mark.parametrize(
    "words",
    [
        "Nein, nimm lieber die andere Datei",
        "不要改这个文件，改 config.py",
        "그건 아니고 README를 고쳐",
        "Please use pnpm",
        "use the other file please",
        "sorry, go ahead but use pnpm",
        "do it in one query",
        "wait, use the other port",
    ],
)
def test_words_on_the_work_after_a_refusal_correct_it(words: str) -> None:
    assert after_refusal(words) == ("user_correction", words)


@pytest.mark.parametrize(
    "words",
    [
        *("weiter", "continúa", "продолжай", "続けて", "ok", "continue please", "go on, thanks", "weiter bitte"),
        *(
            "sorry, misclicked. go ahead",
            "ok, do it",
            "oops, wrong key, continue",
            "yes, go ahead with it",
            "mach weiter",
            "wait, let me check something",
            "back in 5, phone",
            "chwila, muszę coś sprawdzić",
        ),
        *("<command-name>/clear</command-name>", "/compact"),
    ],
)
def test_go_on_after_a_refusal_is_only_a_stop(words: str) -> None:
    assert after_refusal(words) == ("user_stop", "")


@pytest.mark.parametrize("words", ["what does this command do?", "how does the cache work?", "there is another bug"])
def test_words_after_a_refusal_that_ask_or_turn_to_another_matter_correct_nothing(words: str) -> None:
    assert after_refusal(words) == ("user_followup", words)


@pytest.mark.parametrize(
    "words",
    [
        *("non, ce n'est pas ce que je voulais", "ça ne marche toujours pas"),
        *("仍然报错，没有修好", "不是这样，应该用 POST", "それは違います。元に戻してください"),
        *("immer noch kaputt", "sigue sin funcionar", "todavía falla", "não funciona ainda"),
        *("still broken", "you forgot the header", "undo that", "Why did you delete the file?", "No, the other one"),
    ],
)
def test_words_that_take_a_finished_answer_back(words: str) -> None:
    assert after_answer(words) == ["user_correction"]


@pytest.mark.parametrize(
    "words",
    [
        *("Great, thanks! Now add docs", "danke, super", "please also add a test", "That worked", "nothing else"),
        *("No problem. Next: docs", "no worries", "now there is a new error", "Now the docs"),
    ],
)
def test_words_that_go_on_with_the_work(words: str) -> None:
    assert after_answer(words) == []


def after_refusal(words: str) -> tuple[str, str]:
    """Verdict and text of the one site of a refused edit."""
    builder = TraceBuilder().step(act(call("Edit", {"file_path": "a.py"})), [(REFUSED, True)])
    builder.event("interrupt", "[Request interrupted by user for tool use]").event("user_text", words)
    (site,) = find_sites(builder.build())
    return site.verdict, site.text


def after_answer(words: str) -> list[str]:
    """Verdicts after an answer that ended its turn."""
    trace = TraceBuilder().step(act(Text("Done."))).event("user_text", words).step(act(Text("Well."))).build()
    return [site.verdict for site in find_sites(trace)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("aborted by user after 12.3s", ""), ("Tool execution aborted", ""), ("The user chose not to run this", "")),
        *(
            ("Permission to run this was denied by the user", ""),
            ("用户拒绝了此操作", ""),
            ("User dismissed the prompt", ""),
        ),
        ("Command execution was rejected by the user. Reason: too dangerous", "too dangerous"),
        ("Rejected by user with reason: use ls instead", "use ls instead"),
        ("User has rejected your plan: make it simpler", "make it simpler"),
    ],
)
def test_how_applications_tell_a_refusal(text: str, expected: str) -> None:
    (site,) = find_sites(TraceBuilder().step(act(call("run", {"x": 1})), [(text, True)]).build())
    assert (site.kind, site.verdict) == ("reject", "user_correction" if expected else "user_stop")
    assert site.text == expected


def test_what_the_users_settings_deny_is_no_decision() -> None:
    denied = [("This was denied by the user's settings", True)]
    (site,) = find_sites(TraceBuilder().step(act(call("run", {"x": 1})), denied).build())
    assert site.kind != "reject"
