"""Words that take a finished answer back, and words that only sound so: by what they do."""

from __future__ import annotations

import pytest

from postgrad.core.message import Text
from postgrad.signals.error_sites.sites import find_sites
from postgrad.signals.words.findings import shows_failure
from postgrad.signals.words.followups import is_praise
from postgrad.signals.words.objections import objects
from unit.signals.traces_by_hand import TraceBuilder, act, bash

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nKeyError: 1'


@pytest.mark.parametrize(
    "words",
    [
        *("No, I asked for the other file.", "not that one", "undo that, please", "you forgot the header"),
        *("that's wrong", "Nein, das ist falsch.", "还是不对", "не то", "get not post", "catch NoRepo, not `OSError`"),
    ],
)
def test_an_objection(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("You hardcoded the key", "you're overcomplicating this", "did you even read the file?"),
        *("I think you're confusing the two services", "the test you wrote doesn't test anything"),
        *("du hast den falschen Branch genommen", "tu as supprimé le mauvais fichier", "borraste la tabla"),
        *("hai cancellato il file sbagliato", "você apagou o arquivo errado", "ты удалил не тот файл", "你改错文件了"),
    ],
)
def test_it_blames(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("ugh, again the same error", "it's still showing the old data", "nothing changed", "no luck"),
        *("immer noch derselbe Fehler", "toujours la même erreur", "sigue dando el mismo error", "lo stesso errore"),
        *("ainda dá erro", "опять та же ошибка", "还是报错", "まだエラーが出ます"),
    ],
)
def test_things_are_as_before(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("tests fail", "build is red", "the output has duplicates", "the header overlaps the nav now"),
        "I see two headers now",
        *("That link is dead", "The summary leaves out the main point", "I'm getting this now: TypeError: x"),
        *("der Button ist jetzt weg", "il manque l'en-tête", "el botón ya no aparece", "manca l'intestazione"),
        *("o botão sumiu", "тесты падают", "页面还是空白", "ボタンが表示されません"),
    ],
)
def test_something_is_missing_or_does_not_work(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("I wanted it in the sidebar, not the header", "the docs say the opposite", "as I said, only the tests"),
        *("ich wollte das auf Deutsch", "je t'ai demandé en français", "eso no es lo que pedí"),
        *("non è quello che ho chiesto", "não era isso que eu pedi", "это не то, что я просил", "我说的是另一个文件"),
        *("use the existing helper instead of a new one", "It should say A, not B", "Actually it is 30 seconds"),
        *("output should be sorted by count. right now it is random", "Why is the port hard coded? It should be read."),
        *("Prod must not point to localhost!! I expected a placeholder", "你没有给出来源，我要求要有来源"),
        *("Priorities as strings? We agreed on integers 1-5.", "The header is gone? And it has a phone now"),
        "lists and links are not converted, only headings. use a proper approach please",
        "merci, par contre le chemin doit être /opt/a, pas /etc/a",
        *("nimm bitte die andere Datei", "debería ser en mayúsculas", "英語ではなく日本語で書いてください"),
    ],
)
def test_something_else_was_wanted(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("can you put it back the way it was", "remove the comments you added", "go back to the previous version"),
        *("mach das rückgängig", "non, remets comme avant", "déjalo como estaba", "rimetti com'era prima"),
        *("volta como estava", "верни как было", "请恢复原来的代码", "元に戻してください"),
        *("why is there a new file in the root?", "Shouldn't this be async?", "where did the footer go?"),
        *("warum hast du das gelöscht?", "pourquoi tu as changé ça ?", "¿por qué borraste eso?", "怎么把注释删了？"),
        *("better, but the icon is misaligned", "almost there, the last column is cut off", "gut, aber zu dunkel"),
        *("too long", "trop long", "don't add comments everywhere", "ne touche pas à la config"),
    ],
)
def test_it_is_to_be_as_it_was_or_less(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        *("No problem, thanks!", "not bad, now add a test", "How do I undo a commit?", "Great. What does revert do?"),
        *("now the tests please", "Nichts weiter, danke.", "no, that's all. thanks", "not now", "no need for tests"),
        *("there's another bug: the search crashes on empty input", "let's also fix the failing lint in utils.ts"),
        *("great, but can you also add a test?", "Looks good! Can you make the bars blue instead of red?"),
        *("add a check that the amount is not negative", "if the list is empty show a message", "is it still large?"),
        *("why is the sky blue", "did you push?", "what about performance?", "it's in src/config.ts"),
        *("users should not be able to delete the last admin", "the second one", "yes, but keep it short"),
        *("wie kann ich das rückgängig machen?", "nicht nötig, danke", "merci, parfait", "no hace falta, gracias"),
        *("¿cómo funciona esto?", "grazie, ora aggiungi un test", "agora faça o mesmo para o outro", "好的，继续"),
        *("不用了，谢谢", "如果列表为空不显示按钮"),
        *("次にテストを追加してください", "не нужно, спасибо", "хорошо, продолжай"),
        "Can you find me a Chinese restaurant in San Francisco now?",
    ],
)
def test_no_objection(words: str) -> None:
    assert not objects(words)


def test_an_answer_to_a_question_of_the_models_compares_nothing() -> None:
    for words in ("no, I don't want to return it", "no, still no internet", "use the new one instead of the old one"):
        assert not objects(words, answers=True)
    assert objects("you deleted the wrong one", answers=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (TRACEBACK, True),
        ("$ make\nsrc/a.c:3:5: error: expected ';'", True),
        ("3 failed, 2 passed", True),
        ("thanks, it passes now:\n0 failed", False),
        ("the log:\nall 12 tests passed", False),
    ],
)
def test_what_a_failed_program_said_was_pasted(words: str, *, expected: bool) -> None:
    assert shows_failure(words) is expected
    assert is_praise(words) is words.startswith("thanks")


def heard(words: str, answer: str, *, worked: bool = True) -> int:
    """How many sites the words after finished work make."""
    builder = TraceBuilder().step(act(bash("make")), [("ok", False)]) if worked else TraceBuilder()
    builder.step(act(Text("Done."))).event("user_text", words)
    return len(find_sites(builder.step(act(Text(answer))).build()))


def test_a_pasted_failure_is_the_models_where_it_did_something() -> None:
    assert heard(TRACEBACK, "Let me look.") == 1
    assert heard(TRACEBACK, "Let me look.", worked=False) == 0


def test_an_answer_that_gives_the_user_right_makes_their_words_an_objection() -> None:
    assert heard("Ann is invited as well?", "You're right, I left Ann out.") == 1
    assert heard("Ann is invited as well?", "Yes, she is.") == 0
    assert heard("perfect, thanks", "Sorry it took so long.") == 0
