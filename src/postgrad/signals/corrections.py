"""Words of the user: did somebody type them, do they speak about the work, do they take it back?

Texts in the user's role are often the application's: stop markers, notices, environment blocks, local commands. What
is left is the user's. `corrects` knows the plain ways to say "not that" (rule 10) in the languages of the table; it is
a cheap pattern of low confidence, and its sites are never learnt from by themselves.
"""

from __future__ import annotations

import re

from postgrad.signals.outcomes import json_object

_NOTICE = re.compile(
    r"\A\s*(\[request interrupted|\[task resumption|<(?!user_?message|feedback|user_?query"
    r"|task>)[a-z][\w:-]*[-_][\w:-]+[\s>]|caveat:"
    r"|this session is being continued|# context from my ide|<environment|\[system\]|your previous (response|command"
    r"|action)"
    r"|(observation|execution result of \[[^\]]*\]|tool result|output):\s*\n"
    r"|\[?background (task|process)|unknown (slash )?command)",
    re.IGNORECASE,
)
# A local command (`/model`, `/mcp`): the user stopped the model to do something else.
_LOCAL_COMMAND = re.compile(
    r"\A\s*(<(command-name|command-message|local-command-stdout|bash-input|bash-stdout)>|/[a-z][\w:-]*(\s|\Z)|![a-z])"
)
_IDE_CONTEXT = re.compile(r"\A\s*# Context from my IDE.*?## My request for Codex:\s*", re.IGNORECASE | re.DOTALL)
_GO_ON = re.compile(
    r"\A\W*(ok(ay)?\W+)?((please|bitte|请|請)\W*)?(continue|go on|go ahead|proceed|resume|carry on|keep going"
    r"|weiter(machen)?|mach weiter"
    r"|fahre? fort|继续|繼續|请继续|続けて(ください)?"
    r"|continuez?|continúa|continua(r|re)?|sigue|prosigue|продолжай(те)?|계속(해)?|go"
    r"|yes|y|ok(ay)?"
    r"|ja|oui|sí|sim|да|好的?|はい)"
    r"(\W+(please|thanks|bitte|danke|por favor|s'il (te|vous) pla[iî]t|пожалуйста|谢谢))?\W*\Z",
    re.IGNORECASE,
)
_TAGGED = re.compile(r"<(feedback|user_message|user_feedback)>\s*(?P<words>.*?)\s*</\1>", re.DOTALL)
_SAID = re.compile(
    r"(?:the user said|user'?s? (?:feedback|reason|message|response)|with the (?:following )?(?:feedback|reason"
    r"|message)"
    r"|reason for rejection|rejection reason)\s*[:：]\s*(?P<words>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_AFTERWORD = re.compile(r"\n\s*Note: The user's next message.*\Z", re.DOTALL)
_WANTS_TO_ASK = re.compile(r"\s*The user wants to clarify", re.IGNORECASE)
_USER_EDIT = re.compile(
    r"\A.{0,300}?the user (?:has )?(?:made|applied) the following (?:updates|edits|changes"
    r"|modifications)\b[^\n]*\n(?P<words>.*)"
    r"|<user_?edits?>\s*(?P<tagged>.*?)\s*</user_?edits?>",
    re.IGNORECASE | re.DOTALL,
)
_CORRECTS = re.compile(
    r"\A\W*((that|this|it)('s| is| was) |still |the )?(wrong|incorrect)\b|\b(you|u) misunder(stood|stand)"
    r"|\A\W*(no(?! (problem|worries|need|rush|hurry|thanks|thank you|questions?|objections?|further|more|other|idea"
    r"|comments?|changes?|issues?|doubt|wonder|está mal|hay|te preocupes)\b)|not(?! (bad|yet|sure|only|really|at all"
    r"|necessarily|a problem|to worry|that i)\b)"
    r"|nope|nein|non|нет|不对|不對|不是|不行|错了|錯了|いや|違い?ます?|違う|아니|não)(?=[\s,.!:;，。、！–—]|-(?!\w)|\Z)"
    r"|\b(not that|not what i|(that|this|it)'?s (not(?! bad)|wrong|incorrect|broken)"
    r"|(is|was|are|looks?|still) (wrong|incorrect"
    r"|broken|failing)"
    r"|still (not|does ?n[o']t|fails|broken|the same|getting|see)|does ?n[o']t (work|help|compile|run)"
    r"|did ?n[o']t (work|help|fix|ask)"
    r"|you (forgot|missed|broke|removed|deleted|ignored|should(n't| not) have|were supposed)|instead[.!]|undo|revert"
    r"|roll ?back|redo"
    r"|try again|i (said|meant|asked|told)|why did you|(don'?t|do not|never) (do|use|change|touch|remove|delete|add)"
    r"|(put|change|move) (it|them|that|this) back|leave .{1,40} alone)\b"
    r"|\b(das ist falsch|ich meinte|stimmt (so )?nicht|funktioniert (immer noch )?nicht|geht (immer noch )?nicht"
    r"|du hast .{0,40}vergessen|nicht das"
    r"|mach das rückgängig|rückgängig|stattdessen|sondern|immer noch)\b"
    r"|\b(ce n'est pas (ça|correct|ce que)|c'est faux|je voulais dire|ne (marche|fonctionne) (toujours )?pas"
    r"|tu as oublié"
    r"|vous avez oublié|annule|au lieu de"
    r"|plutôt que)\b"
    r"|\b(eso no|no es (eso|correcto|lo que)|(?<!no )está mal|quería decir|no funciona|sigue (sin|fallando|dando)"
    r"|(todavía|aún) (no|falla|da)|olvidaste|deshaz|en lugar de"
    r"|en vez de)\b"
    r"|\b(não (é|está|funciona)|está errado|ainda não|esqueceu|desfaça|em vez de)\b|\b(non (è|va|funziona)|sbagliato"
    r"|ancora non|annulla|invece di)\b"
    r"|(это не то|\A\W*не то|неправильно|не работает|всё ещё|все еще|ты забыл|вы забыли|отмени|верни|вместо)"
    r"|(不对|不對|是错|是錯|不是这|不是這|还是不|還是不|仍然|没有用|沒有用|不起作用|忘了|忘记|忘記|撤销|撤銷|恢复|恢復|而不是|错误的|錯誤的|重新|改回)"
    r"|(違います|違う|そうじゃな|ではなく|まだ(動|でき|直)|動きません|動かない|忘れて|元に戻|やり直)"
    r"|(아니라|틀렸|여전히|안 ?돼|안 ?됩|되돌려|잊었)",
    re.IGNORECASE,
)


# A question about the matter takes nothing back, whatever its words: "How do I undo a commit?"
_ASKS = re.compile(r"\A\W*(how (do|can|does|would|to)|what (is|does|are|would)|is (it|there)|does)\b", re.IGNORECASE)
_STILL = re.compile(r"\b(still|again|wrong|broken)\b", re.IGNORECASE)
_LONGEST = 8000  # characters of a text that are looked at


def is_local_command(text: str) -> bool:
    """Whether the user ran a command of the application instead of speaking to the model."""
    return _LOCAL_COMMAND.match(text.lstrip()[:100]) is not None


def typed(text: str) -> str:
    """What the user typed, "" where the application wrote the text; an IDE's context block is taken off."""
    bare = _IDE_CONTEXT.sub("", text.lstrip()[:_LONGEST])
    tagged = _TAGGED.search(bare)
    if tagged is not None:
        return tagged["words"].strip()
    return "" if _NOTICE.match(bare) or is_local_command(bare) else bare.strip()


def only_goes_on(text: str) -> bool:
    """Whether the words say nothing against the work: "continue", "go on"."""
    return len(text) < 100 and _GO_ON.match(text) is not None


def words_in_refusal(text: str) -> str:
    """What the user said with a refusal, where the application puts it into the result."""
    text = text[:_LONGEST]
    value = json_object(text) or {}
    said = next(
        (value[key] for key in ("feedback", "reason", "rejection_reason") if isinstance(value.get(key), str)), ""
    )
    found = _TAGGED.search(text) or _SAID.search(text)
    words = said or (_AFTERWORD.sub("", found["words"]) if found else "")
    return "" if _WANTS_TO_ASK.match(words) else words.strip()


def user_edit(text: str) -> str:
    """The changes that the user made to an edit before accepting it, "" if none."""
    found = _USER_EDIT.search(text[:_LONGEST])
    return ((found["words"] or found["tagged"]) or "").strip() if found else ""


def corrects(text: str) -> bool:
    """Whether a follow-up text negates, redoes or takes back; judged by its first sentences."""
    opening = text.lstrip()[:400]
    return _CORRECTS.search(opening) is not None and (
        _ASKS.match(opening) is None or _STILL.search(opening) is not None
    )
