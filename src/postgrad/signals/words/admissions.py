"""What the model says of its last step at the start of the next: it was to fail, the place is to blame, it was wrong.

Models speak of their own results in far fewer words than users do, mostly in English. Words decide only beside what
happened: a failure that is called expected where nothing had been changed, an edit that is called wrong and is then
made again. Not covered: models that say nothing between their calls.
"""

from __future__ import annotations

import re
from typing import Literal

from postgrad.core.message import Message, Reasoning
from postgrad.signals.words.phrases import Phrases

Saying = Literal["expected", "shown", "old", "place", "fine"]

_FIRST_WORDS = 160
_OPENING = 500  # characters: what the step begins with
_CHANGE = r"(?:my|our|the|this|these|any)(?: \w+)? (?:changes?|edits?|fix|work|modifications?|refactor\w*)"
_THE_BUG = r"(?:the|this|that|our)(?: \w+)? (?:bug|issue|problem|failure|crash|behaviou?r|error)"
_SAYINGS: tuple[tuple[Saying, Phrases], ...] = (
    (
        "old",
        Phrases(
            r"\bpre-?existing\b|\b(?:un|not )related (?:to|with) \w+|\bunrelated (?:\w+ )?(?:failures?|errors?"
            r"|tests?|issues?)",
            rf"\bnot (?:caused|introduced|due) (?:by|to) {_CHANGE}|\bnothing to do with {_CHANGE}",
            rf"\b(?:fail(?:s|ed|ing|ures?)?|errors?|broken|existed|there|present) (?:\w+ ){{0,3}}(?:before"
            rf"|without) {_CHANGE}",
            r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|broken|existed) (?:\w+ ){0,3}on (?:the )?(?:main|master|base"
            r"|clean|original)\b",
            r"\balready (?:fail(?:ed|ing|s)|broken|existed|there before)\b|\bbestand(?:en)? schon vorher\b|本来就"
            r"|原本就|既存の",
        ),
    ),
    (
        "expected",
        Phrases(
            r"\bas (?:was )?(?:expected|intended|it should|i expected)\b|\b(?:this|that|it|which|these|those"
            r"|failures?|errors?|tests?)(?:['’]s| is| are| was| were) (?:all |totally |perfectly "
            r"|completely )?expected\b(?! to be)",
            r"\bexpected (?:failures?|errors?|to fail|behaviou?r)\b|\bfails? (?:correctly|for the right reason)",
            r"\bred phase\b|wie erwartet|comme (?:prévu|attendu)|como (?:se esperaba|esperado)|как и ожидалось"
            r"|符合预期|想定(?:どおり|通り)",
        ),
    ),
    (
        "shown",
        Phrases(
            rf"\b(?:confirm(?:s|ed|ing)?|reproduc(?:es?|ed|ing)|demonstrat(?:es?|ed)|exhibits?) (?:that )?{_THE_BUG}",
            rf"{_THE_BUG} (?:is|has been|was|can be) (?:\w+ )?(?:confirmed|reproduced|reproducible)",
            r"\b(?:i|we)(?:['’]ve| have)? (?:successfully |now |been able to )*reproduced?\b"
            r"|\bsuccessfully reproduced\b",
            r"\breproduction (?:works|succeeded|confirmed|script works)",
        ),
    ),
    (
        "place",
        Phrases(
            r"\b(?:environment|sandbox)(?:al)? (?:issue|problem|limitation|restriction|constraint)",
            r"\b(?:is|are)(?: not|n['’]t) (?:available|installed|accessible|supported|present) (?:in|on"
            r"|for) (?:this|the|our) (?:\w+ )?(?:environment|sandbox|system|machine|container|image|host)",
            r"\bno (?:network|internet)(?: access| connect\w+)?\b|\bnetwork (?:access )?(?:is"
            r"|seems) (?:\w+ )?(?:restricted|blocked|unavailable|disabled)",
        ),
    ),
    (
        "fine",
        Phrases(
            r"\b(?:that|this|it)(?:['’]s| is) (?:fine|ok(?:ay)?|normal|harmless|not a problem|no problem"
            r"|not an issue)\b",
            r"\bwhich is (?:fine|ok(?:ay)?|normal|harmless)\b|\b(?:a )?false (?:positive|alarm)\b",
        ),
    ),
)
_ANNOUNCES = Phrases(
    r"\b(?:confirm|verify|check|see|show|prove|demonstrate|make sure)\b(?: \w+){0,4} (?:is|are|still|really|does"
    r"|indeed) "
    r"(?!not|n['’]t|no longer)(?:\w+ )?(?:broken|wrong|fail(?:s|ing)?|buggy|red|crash(?:es|ing)?|there)\b(?! any)",
    r"\b(?:should|must|will|would|has to|is (?:meant|supposed|expected) to|expect(?:s|ed"
    r"|ing)? (?:\w+ ){0,4}to) (?:now |still |first |initially )?(?:fail|refuse|reject|error|panic|crash|raise|throw"
    r"|complain"
    r"|abort|exit non-?zero|be (?:rejected|refused|red)\b|list (?:what|all|everything)\b|(?:give|return|print"
    r"|produce|show) (?:(?:an?|the|me|us|its|that) ){0,2}(?:\w+ )?(?:\w*error|[45]\d\d|failure|panic|non-?zero"
    r"|what (?:is|to|needs|remains|breaks)))",
    r"\b(?:failing|red) tests? first\b|\bfirst,? (?:the|a) failing test|\btests? first\b",
    r"(?:muss|müssen|soll\w*|wird|werden) (?:\w+ ){0,3}(?:fehlschlagen|scheitern|rot sein)|fehlschlagende\w* tests?",
    r"(?:doit|doivent|devrait|va) (?:\w+ )?échouer|test qui échoue|(?:debe|deben|debería|tiene que|va a) fallar"
    r"|test que falla|(?:deve|devem|precisa|vai) falhar|teste que falha|(?:deve|devono|dovrebbe) fallire",
    r"(?:должен|должна|должны|должно) (?:\w+ )?(?:упасть|падать|провалиться|ломаться)|падающий тест",
    r"(?:应该|應該|会|會|先写|先寫).{0,6}(?:失败|失敗|报错|報錯)|失敗する(?:はず|こと|テスト)|エラーになる(?:か|はず|こと)|落ちるはず",
    r"\b(?:vérif\w+|confirm\w+|test\w+) (?:que|qu['’]).{1,60}(?:refus|rejet|échou|erreur)"
    r"|(?:verific\w+|comprob\w+|compruebo|comprueba) (?:que|se) .{1,60}(?:rechaz|recus|rejeit|fall|falh|error)"
    r"|\b(?:prüf\w*|test\w*|schau\w*)\b.{1,60}(?:abgelehnt|abgewiesen|fehlschlägt|verweigert)",
    r"(?:провер\w+|убед\w+).{1,60}(?:отклон|отказ|упад|пада|ошибк)|(?:确认|验证|檢查|检查|驗證).{1,30}(?:拒绝|拒絕|失败|失敗|报错)"
    r"|(?:エラー|拒否|失敗|弾かれ).{0,20}(?:確認|検証)",
    r"(?:실패해야|실패하는 테스트)",
)
_WRONG = Phrases(
    r"\bi (?:\w+ ){0,2}(?:accidentally|mistakenly|inadvertently|wrongly|incorrectly|erroneously)\b",
    r"\bi (?:made|introduced|created) (?:an?|some) (?:\w+ )?(?:mistake|error|typo|bug|duplicate|mess|problem)",
    r"\bi (?:broke|messed|botched|mangled|misplaced|mistyped|misspelled|misspelt|duplicated|corrupted)\b",
    r"\bmy (?:\w+ )?(?:edit|change|replacement|patch|command|script|sed|regex|insertion"
    r"|fix)\b[^.!?\n]{0,60}\b(?:broke|removed|deleted|duplicated|mangled|corrupted|was wrong|was incorrect"
    r"|did(?: not|n['’]t)|went wrong|messed|failed)",
    r"\bmy (?:mistake|error|bad|typo)\b|\boops\b|\bthe (?:edit|replacement|sed|substitution"
    r"|patch) (?:command )?(?:did(?: not|n['’]t) (?:work|apply|change|match|take)|was(?: not|n['’]t) applied"
    r"|went wrong|seems to have (?:not|failed))",
    r"mein fehler|c'est mon erreur|mi error|я ошибся|我的错|我搞错|私のミス",
)
_YIELDS = re.compile(
    r"\A\W*(?:(?:oh|ah|yes|yeah|ok(?:ay)?|hmm+|good|ouch|sorry)\W+){0,3}(?:you(?:['’]re| are) (?:\w+ )?(?:right"
    r"|correct)|(?:good|great|nice) catch|my (?:mistake|bad|apologies)|(?:i )?(?:sincerely |really )?apologi[sz]e"
    r"|(?:my )?apologies|(?:i['’]?m |i am )?(?:so |very |really )?sorry|oops|whoops|i (?:misunderstood|misread"
    r"|misinterpreted|overlooked|missed|forgot|should have|shouldn['’]t have|got that wrong)|i see (?:the"
    r"|my) (?:mistake|error)|that['’]s my (?:mistake|fault)|thanks? (?:you )?for (?:catching|pointing"
    r"|the correction|correcting)|understood[,.]? (?:i['’]ll|let me) (?:undo|revert|fix|remove|change|redo)"
    r"|(?:du hast|sie haben|da hast du) (?:\w+ )?recht|entschuldig\w+|stimmt|tut mir leid"
    r"|tu as (?:tout à fait )?raison|vous avez raison|désolée?|tienes (?:toda la )?razón|tiene razón|lo siento"
    r"|perdón|disculp\w+|hai ragione|scusa|você tem razão|desculp\w+|(?:ты|вы) прав|извини|прошу прощения|你说得对"
    r"|你說得對|您说得对|您說得對|抱歉|对不起|對不起|おっしゃる通り|申し訳|すみません|ご指摘|맞습니다|죄송)",
    re.IGNORECASE,
)
# An excuse for what it cannot do gives nobody right.
_CANNOT = re.compile(
    r"\bas an? (?:ai|language|assistant)\b|\b(?:can(?:no|['’])t|unable|not able|don['’]t have|do not have"
    r"|no access)\b",
    re.I,
)
_IN_MIND = Phrases(
    r"\bthe user (?:is |has |just )*(?:correct(?:s|ing|ed)|object(?:s|ing|ed)|complain(?:s|ing|ed)|unhappy"
    r"|frustrated|point(?:s|ing|ed) out|annoyed|not happy|right\b|disagree|reject|push(?:es|ing)? back"
    r"|saying (?:that )?(?:it|this|that) (?:is ?n[o'’]t|still|does ?n[o'’]t))",
    r"\bi (?:misunderstood|misread|misinterpreted|made a mistake|was wrong|got (?:it|that) wrong)\b",
)


def sayings(message: Message) -> tuple[Saying, ...]:
    """What a step says first about the failure before it."""
    said = opening(message)
    return tuple(name for name, words in _SAYINGS if words.search(said)) if said else ()


def announces(message: Message) -> bool:
    """Whether a step says before it acts that what it runs is to fail."""
    told = ((call.arguments or {}).get("description") for call in message.tool_calls)
    said = "\n".join((opening(message), *(words[:_OPENING] for words in told if isinstance(words, str))))
    return _ANNOUNCES.search(said) is not None


def admits(message: Message) -> bool:
    """Whether a step begins with the word that the model's own last change was wrong."""
    said = opening(message)
    return bool(said) and _WRONG.search(said) is not None


def yields(message: Message) -> bool:
    """Whether an answer begins with giving the user right, or with an excuse."""
    said = message.text.lstrip()[:_FIRST_WORDS]
    if _YIELDS.match(said) and not _CANNOT.search(said):
        return True
    return _IN_MIND.search(_thought(message)) is not None


def opening(message: Message) -> str:
    """The first words of a step, spoken and thought."""
    return f"{_thought(message)}\n{message.text[:_OPENING]}".strip()


def _thought(message: Message) -> str:
    return next((block.text[:_OPENING] for block in message.blocks if isinstance(block, Reasoning) and block.text), "")
