"""What users find is an objection where it is a statement about something that nobody wants."""

from __future__ import annotations

import pytest

from postgrad.signals.words.objections import objects


@pytest.mark.parametrize(
    "words",
    [
        *("the link 404s", "hm it just says undefined for me", "now it prints nothing", "I get an error when I run it"),
        *("Page is blank now", "my list is empty now", "On mobile the menu is cut off", "half of the rows are missing"),
        *("The button doesn't do anything", "the header stopped being sticky", "it crashes on startup"),
        *("It returns an empty body. There is no handler!", "The export has no header row", "it opens the wrong page"),
        *("The total is off by one", "Getting a TypeError: x is undefined", "Nothing changed", "it still asks twice"),
        "The months are in alphabetical order, they should be chronological",
        "Hmm, the dashboard says 12",
        "staging is down now",
        "This is the July invoice. I need August.",
        "How so? I see no measurement for that.",
        "Ann isn't invited.",
        "The values are strings now, the old code converted numbers",
        "And the rows? That was half of the task.",
        "It sorts by name instead of by date",
    ],
)
def test_a_finding(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("Great, it returns None now. Next: docs", "Perfect. The list is empty as it should be"),
        *("When the cart is empty, hide the button", "if the name is missing, raise ValueError"),
        *("Add a check that the list is not empty", "show a 404 page when the user is gone", "Is the cache empty?"),
        *("Now make the page return a 404 for unknown users", "get the list of errors from the log"),
        *("it doesn't need to be fast", "there is no rush", "it still works, good", "what happens if it crashes?"),
        *("the deadline is Friday, it should be done by then", "The customer called, they want a PDF export"),
        "so prefetching isn't slowing down the first load?",
        "This is not urgent, take your time",
        "Oh no. Then the other one, please",
        "what is missing for the release?",
        "see the warning in the README and fix it",
    ],
)
def test_no_finding(words: str) -> None:
    assert not objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("I never asked you to push", "you were not asked to do that", "next time leave committing to me"),
        *("That can't be right", "Close, but the colour is off", "why are you transferring me?", "you only listed it"),
        *("No, not the mug. The headphones.", "do it properly", "Das fehlt noch", "te equivocaste de archivo"),
        *(
            "Nee, dat klopt niet",
            "To nie to, zmieniłeś podtytuł zamiast nagłówka",
            "아니요, 초록색이요",
            "Hayır, yanlış",
        ),
        *("il manque encore la page 3", "漏了一个文件", "ボタンが消えています", "ты пропал"),
    ],
)
def test_objections_to_what_was_done_or_left_out(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("you only need to change the port", "we never got around to the docs", "das sollte reichen, danke"),
        *(
            "You have not been told yet, but the key is in .env",
            "Now write the email. It should only mention the price",
        ),
        "you left off at step 3, go on from there",
    ],
)
def test_words_that_are_near(words: str) -> None:
    assert not objects(words)
