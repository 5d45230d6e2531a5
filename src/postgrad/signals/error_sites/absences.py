"""Commands that ask for a thing, or take one away, and are told that it is not there.

Programs with subcommands name what they do: `list`, `show` and `status` ask, `stop`, `delete` and `uninstall` take
away. The first is answered "no", the second has nothing left to do; neither is a mistake. A thing that is named by a
number or an id is not asked for: whoever has an id says that there is such a thing. Not covered: programs whose
subcommands are none of these words.
"""

from __future__ import annotations

import re

from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.shell.lines import parse_line
from postgrad.signals.shell.programs import PROBES, SEARCHES
from postgrad.signals.words.phrases import Phrases
from postgrad.signals.words.wordings import COMMAND_NOT_FOUND, ERROR_WORD, NO_SUCH_FILE, NOT_FOUND


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_ASKS = _names(
    """
    ls list get show view describe inspect info status search query find ps stat stats history version whoami exists
    has outdated audit ls-remote ls-files ls-tree rev-parse symbolic-ref get-url log blame
    has-session is-active is-enabled is-running read health doctor schema tables top
    """
)
_TAKES_AWAY = _names(
    """
    rm rmi remove delete del destroy drop uninstall unlink untag stop kill down unload bootout disable unset prune
    kill-session kill-server kill-window deregister unregister detach disconnect logout revoke unmount eject clear
    """
)
# Programs that do nothing else.
_ASK = _names(
    "id groups finger dig nslookup host ping nc ncat netcat dpkg-query readlink realpath pg_isready pkg-config"
)
_TAKE_AWAY = _names("dropdb dropuser userdel groupdel umount deluser kill killall pkill")
# Programs that ask, or take away, with an option.
_BY_OPTION = re.compile(
    r"(?P<asks>crontab -l|screen -(?:ls|list)|dpkg -[lsLS]|rpm -q\w*|tmux has|git (?:describe|symbolic-ref|ls-files"
    r"|show-ref)\b|git remote(?: -v)?$)|(?P<takes>crontab -r|git stash (?:pop|drop|apply))"
)
# Verbs that do a thing, after which a word of the lists above is only a name: `npm run list`, `docker exec a ps`.
_DOES = _names(
    """
    run exec create add apply push commit install start restart up set put update upgrade deploy build test import
    export send publish checkout switch merge rebase clone init login attach cp copy mv move logs
    """
)
_MANY = frozenset(
    [
        "python",
        "python3",
        "node",
        "deno",
        "bun",
        "ruby",
        "perl",
        "php",
        "bash",
        "sh",
        "zsh",
        "npx",
        "uvx",
        "ssh",
        "su",
        "sudo",
        "env",
        "xargs",
        "watch",
    ]
)
_ABSENT = Phrases(
    r"\bno such\b|\bdoes(?: not|n['’]t) exist\b|\b(?:could ?not|couldn['’]t|can ?not|can['’]t) (?:find|resolve to)\b",
    r"\bno [\w-]+(?: [\w-]+){0,4} (?:found|exists?|available|matching|for|on|in|configured|running)\b",
    r"\bnot (?:currently )?(?:installed|loaded|registered|running|signed|tracked|configured|active|mounted|listed)\b",
    r"\bnot a (?:git repository|working tree)\b|\bnoSuch\w+|\bNXDOMAIN\b|ResourceNotFound|\b404\b",
    r"\bno (?:upstream|sockets|crontab|process(?:es)?|packages?|matches|such|route)\b|\bis not there\b"
    r"|unrecognized service|could not be found",
    r"is not a symbolic ref|does not appear to be a git repository",
    r"connection refused|name or service not known|temporary failure in name resolution|unknown host|not enough arg",
)
# Commands that ask whether a name is one of a revision or a file.
_NAMES = re.compile(r"git (?:rev-parse|ls-files|describe|name-rev)\b")
_UNKNOWN_NAME = re.compile(r"unknown revision|did not match any file|needed a single revision")
_NO_REPOSITORY = re.compile(r"\bnot a git repository\b|does not have any commits yet", re.IGNORECASE)
_GIT_LOOKS = _names(
    "status log diff show branch remote rev-parse ls-files ls-tree blame describe rev-list shortlog grep"
)
_FIRST_WORDS, _EDGE = 4, 2000
_FEW_ROWS = 6
_NUMBER = re.compile(r"#?\d{2,}|[0-9a-f-]{12,}", re.IGNORECASE)
_QUIET_CODES = (1, 3, 4)
_HIDES = re.compile(r"(?:2|&)>\s*/dev/null")
_NOT_RUN = (126, 127)
_MISUSED = re.compile(
    r"unrecogni[sz]ed|\busage:|(?:unknown|invalid|illegal|bad) (?:option|flag|argument|command)", re.I
)
_COMPLAINS = re.compile(
    rf"^\W*(?:\S+: )?(?:{ERROR_WORD}|fatal|unknown|invalid|panic|traceback|failed|cannot|can't|could not)\b"
    rf"|{_MISUSED.pattern}",
    re.IGNORECASE | re.MULTILINE,
)
_CRASHED = re.compile(r"^Traceback |^\S*(?:Error|Exception)\b", re.MULTILINE)
_HARMLESS = frozenset({"cd", "echo", "printf", "head", "tail", "grep", "wc", "pwd", "true", "sleep", "sort", "export"})


def is_absent(evidence: Evidence) -> bool:
    """Whether a command that asks, or takes away, is told that the thing is not there."""
    if evidence.line is None:
        return False
    parsed, output = parse_line(evidence.line), evidence.outcome.output.strip()
    sorts = [_sort(words) for words in parsed.commands]
    if evidence.outcome.code in _NOT_RUN or not parsed.commands or COMMAND_NOT_FOUND.search(output[:_EDGE]):
        return False
    if _UNKNOWN_NAME.search(output) and _NAMES.match(" ".join(parsed.deciding)):
        return True
    if _NO_REPOSITORY.search(output) and _looks_at_git(parsed.commands):
        return True
    joined = [sort for sort, operator in zip(sorts, parsed.after, strict=True) if operator == "&&"]
    if "does" in joined:  # what had to go well before it may be what failed
        return False
    rows = [row for row in output.splitlines() if row.strip()]
    if sorts[-1] == "probes" and _HIDES.search(evidence.line):  # its complaints are thrown away
        return True
    if not rows:
        return sorts[-1] == "asks" and evidence.outcome.code in _QUIET_CODES
    if sorts[-1] not in ("asks", "takes") or ("does" in sorts and _CRASHED.search(output)):
        return False
    said = "\n".join((*rows[:_FEW_ROWS], *rows[-_FEW_ROWS:]))
    if any(pattern.search(said) for pattern in (_ABSENT, NOT_FOUND, NO_SUCH_FILE)):
        named = sorts[-1] == "asks" and _by_id(parsed.deciding)
        return not named and (sorts[-1] == "asks" or len(rows) <= _FEW_ROWS) and not _MISUSED.search(said)
    return sorts[-1] == "asks" and evidence.outcome.code in _QUIET_CODES and not _COMPLAINS.search(said)


def _looks_at_git(commands: tuple[tuple[str, ...], ...]) -> bool:
    """Subcommands of git that change nothing: whether there is a repository at all is what they find out."""
    verbs = [
        next((word for word in words[1:] if not word.startswith("-")), "") for words in commands if words[0] == "git"
    ]
    return bool(verbs) and all(verb in _GIT_LOOKS for verb in verbs)


def _by_id(words: tuple[str, ...]) -> bool:
    """A number, or a pod, whose name only a listing tells."""
    pod = words[0] in ("kubectl", "oc") and any(re.fullmatch(r"po(?:ds?)?(?:/.*)?", word) for word in words[1:-1])
    return pod or any(_NUMBER.fullmatch(word) for word in words[1:])


def _sort(words: tuple[str, ...]) -> str:
    """What a simple command does: "asks", "probes", "takes" (away), "harmless", or "does" something else."""
    name = re.split(r"[\\/]", words[0])[-1].lower()
    line = " ".join((name, *words[1:_FIRST_WORDS]))
    if name in _TAKE_AWAY:
        return "takes"
    if name in _HARMLESS or name in SEARCHES:
        return "harmless"
    if name in PROBES:
        return "probes"
    option = _BY_OPTION.match(line)
    if option is not None:
        return str(option.lastgroup)
    if name in _ASK:
        return "asks"
    return "does" if name in _MANY else _by_verb([word for word in words[1:] if not word.startswith("-")])


def _by_verb(words: list[str]) -> str:
    for word in words[: _FIRST_WORDS - 1]:
        verb = word.lower().split(":")[-1]
        if verb in _DOES or "/" in word:
            return "does"
        known = verb if verb in _ASKS | _TAKES_AWAY else verb.split("-")[0]  # `get-role`, `list-buckets`
        if known in _TAKES_AWAY:
            return "takes"
        if known in _ASKS:
            return "asks"
    return "does"
