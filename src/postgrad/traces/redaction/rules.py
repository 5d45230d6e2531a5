"""Our own rules for secrets, beside those of betterleaks, and what is never a secret.

A rule is a name, words of which one is in every text that it fits (lower case, for a quick look), and a pattern whose
group `secret` is replaced; the text around it stays, so `Authorization: Bearer` can still be
read. Rules with a fixed prefix ask for a word boundary before it: "task-output" holds no "sk-" key. Rules that go by a
name alone (`password`, `assigned-secret`, `cli-secret`, ...) ask for a digit or a sign that names in code do not have,
and leave placeholders and expressions.
Not covered: passwords with spaces or of letters alone where nothing but their name tells (betterleaks knows some),
secrets split over string concatenation, base64 of secrets, personal data.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN = r"[A-Za-z0-9+/=._~\-]"
_START = r"(?<![A-Za-z0-9_\-])"
_PASSWORD = r"(?:passw(?:or)?d|passwort|passphrase|kennwort|pwd|senha|wachtwoord|contrase\S{1,2}a|mot[ _]de[ _]passe)"
_CREDENTIAL = (  # looking at the first letter before all else makes it twice as fast
    r"(?-i:(?=[abcdejmprswABCDEJMPRSW]))"
    r"(?:(?:access|auth|api|refresh|session|bearer)[_\-]?token|(?:bot|personal|deploy)[_\-]token|api[_\-]?key|"
    r"(?:client|app|api|shared|webhook|consumer|jwt|session)[_\-]?secret|"
    r"(?:secret|signing|encryption|master)[_\-]?key(?:[_\-]base)?)"
)
_IS = r"[\"'\\]*[ \t]{0,3}(?::=|=>|[:=])[ \t]{0,3}"  # between a name and its value, also in escaped JSON
_QUOTE = r"\\*(?P<quote>[\"'`])"
_DIGIT = r"(?=[^\s\"'`]{0,128}\d)"
_LETTER = r"(?=[^\s\"'`]{0,128}[A-Za-z])"
_MIXED = r"(?-i:(?=[^\s\"'`]{0,14}[a-z])(?=[^\s\"'`]{0,14}[A-Z]))"  # what is short has letters of both sorts
_STRONG = r"(?=[^\s\"'`]{0,128}(?:\d|[!@#^&*+~][^\s\"'`]))(?=[^\s\"'`]{0,128}\w)"  # holds what a name in code does not
_END = r"(?<![.?:])(?=$|[\s,;&\"'`\\)}\]]|[.?:](?:$|[\s\"'`\\)]))"  # the mark that ends a sentence is none of it
_LITERAL = (
    r"(?![$<{%\[(^/~]|\.{1,2}/|[A-Za-z]:\\|\w+(?:\(|://))"  # no variable, placeholder, call, pattern, path or URL
)

_PASSWORD_WORDS = ("passw", "passphrase", "kennwort", "pwd", "senha", "wachtwoord", "contrase", "de passe", "de_passe")
_CREDENTIAL_WORDS = (
    *("_token", "-token", "accesstoken", "authtoken", "apitoken", "refreshtoken", "sessiontoken", "bearertoken"),
    *("api_key", "api-key", "apikey", "secret", "signing", "encryption", "master"),
)

RULES: Final[tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]] = (
    (
        "private-key",
        ("-----begin",),
        re.compile(
            # Up to its end, or as far as it goes on where that was cut off.
            r"(?P<secret>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?=(?:(?!-----).){0,300}?[A-Za-z0-9+/]{16})"
            r"(?:(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\s|\\[nr])*(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]+|[A-Za-z0-9+/]{32,}={0,2}))+"
            r"(?:(?:\r?\n[ \t]*|(?:\\r)?\\n)[A-Za-z0-9+/]{1,31}(?:={1,2}|(?=[\"'.\s]*\Z|\.\.\.)))?))",
            re.DOTALL,
        ),
    ),
    (
        # With or without a scheme; a word without a digit ("Authorization: required") is prose unless it is long.
        "authorization",
        ("authorization", "x-api-key"),
        re.compile(
            r"(?i)(?:authorization|x-api-key)[\"'\\]*\s*[:=]\s*[\"'\\]*(?:(?:bearer|basic|token|digest|apikey)\s+)?"
            rf"(?P<secret>(?={_TOKEN}*\d|{_TOKEN}{{24}}){_TOKEN}{{8,}})"
        ),
    ),
    ("authorization", ("bearer",), re.compile(rf"\b[Bb]earer\s+(?P<secret>(?={_TOKEN}*\d){_TOKEN}{{20,}})")),
    (
        "url-password",
        ("://",),
        re.compile(r"(?i)\b[a-z][a-z0-9+.\-]{0,20}://[^\s:/@\"'<>{}$]+:(?P<secret>[^\s:/@\"'<>{}$]{3,})@"),
    ),
    (
        "aws-access-key",
        ("akia", "asia"),
        re.compile(rf"{_START}(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{{16}})(?![A-Za-z0-9])"),
    ),
    (
        "github-pat",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        re.compile(rf"{_START}(?P<secret>gh[pousr]_[A-Za-z0-9]{{30,}}|github_pat_[A-Za-z0-9_]{{40,}})"),
    ),
    ("anthropic-api-key", ("sk-ant-",), re.compile(rf"{_START}(?P<secret>sk-ant-[A-Za-z0-9_\-]{{20,}})")),
    (
        # A long run without hyphens tells a key from a hyphenated name such as a CSS class.
        "openai-api-key",
        ("sk-",),
        re.compile(rf"{_START}(?P<secret>sk-(?!ant-)(?=[\w\-]*\d)(?=[\w\-]*\w{{16}})[A-Za-z0-9_\-]{{20,}})"),
    ),
    ("huggingface-token", ("hf_",), re.compile(rf"{_START}(?P<secret>hf_[A-Za-z0-9]{{30,}})")),
    ("google-api-key", ("aiza",), re.compile(rf"{_START}(?P<secret>AIza[A-Za-z0-9_\-]{{35}})")),
    ("slack-token", ("xox",), re.compile(rf"{_START}(?P<secret>xox[abeprs]-[A-Za-z0-9\-]{{20,}})")),
    ("gitlab-token", ("glpat-",), re.compile(rf"{_START}(?P<secret>glpat-[A-Za-z0-9_\-]{{20,}})")),
    (
        # A line of an .env file or a shell: an upper-case name that says secret, and a literal value.
        "env-secret",
        ("passw", "secret", "token", "key"),
        re.compile(
            r"(?:^|[\s;])(?:export\s+)?[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|ACCESS_KEY)[A-Z0-9_]*"
            r"=(?P<quote>[\"']?)(?P<secret>[^\s\"'$<>{}()\\]{8,})(?P=quote)(?=$|[\s;&|])",
            re.M,
        ),
    ),
    (
        "aws-secret-key",
        ("secret",),
        re.compile(
            rf"(?i)(?:aws_?)?secret_?access_?key{_IS}[\"'\\]*(?P<secret>(?=[^\s]{{0,39}}\d)[a-z0-9+/]{{40}})(?![a-z0-9+/=])"
        ),
    ),
    (
        "gcp-private-key-id",
        ("private_key_id",),
        re.compile(rf"private_key_id{_IS}[\"'\\]*(?P<secret>[0-9a-f]{{40}})\b"),
    ),
    (
        "discord-webhook",
        ("discord",),
        re.compile(r"\bdiscord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/(?P<secret>[\w\-]{60,})"),
    ),
    (
        # bcrypt and what crypt(3) makes; a work factor or salt before it tells it from other text with dollars.
        "password-hash",
        ("$2", "$apr1$", "$1$", "$5$", "$6$", "$y$", "$argon2"),
        re.compile(
            r"(?<![\w$])(?P<secret>\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|\$(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
            r"|\$[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}"
            r"|\$y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
            r"|\$argon2(?:id|i|d)\$v=\d+\$[\w,=]+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{20,})(?![./A-Za-z0-9])"
        ),
    ),
    (
        "password",
        _PASSWORD_WORDS,
        re.compile(
            rf"(?i){_PASSWORD}(?:_?\d)?{_IS}{_QUOTE}(?P<secret>{_LITERAL}{_STRONG}[^\s\"'`\\]{{6,128}})\\*(?P=quote)"
        ),
    ),
    (
        # Without quotes a name with a number behind it (`password=password1`, `=config.pw2`) is code.
        "password",
        _PASSWORD_WORDS,
        re.compile(
            rf"(?i)(?<![?&]){_PASSWORD}{_IS}(?P<secret>{_LITERAL}{_DIGIT}(?!(?:\w+\.)*(?:[a-z]+\d{{0,3}}|[a-z0-9]*(?:_[a-z0-9]+)+)"
            rf"{_END})[^\s\"'`,;<>(){{}}\[\]$%\\&|/]{{8,128}}){_END}"
        ),
    ),
    (
        "netrc",
        ("login",),
        re.compile(
            r"\b(?:machine\s+\S{1,255}|default)\s+login\s+\S{1,128}\s+password\s+(?P<secret>[^\s\"'\\$<{]{4,128})"
        ),
    ),
    (
        "assigned-secret",
        _CREDENTIAL_WORDS,
        re.compile(
            rf"(?i){_CREDENTIAL}{_IS}{_QUOTE}(?P<secret>{_LITERAL}{_DIGIT}(?:[^\s\"'`\\]{{16,256}}|{_MIXED}[^\s\"'`\\]{{12,15}}))\\*(?P=quote)"
        ),
    ),
    (
        "url-token",
        ("token=", "key=", "secret=", "passw", "pwd=", "sig="),
        re.compile(
            r"(?i)[?&](?:(?:access|auth|api|refresh|session|private|id|bot|oauth|x-amz-security)?[_\-]?token|api[_\-]?key|"
            r"(?:client[_\-]?)?secret|passw(?:or)?d|pwd|sig)="
            r"(?P<secret>(?=[^\s&]{0,128}\d)(?=[^\s&]{0,128}[a-z])[a-z0-9._~%+/=\-]{8,})"
        ),
    ),
    (
        "cli-secret",
        ("--",),
        re.compile(
            r"(?i)(?<![\w\-])--(?:[a-z0-9]+[_\-])*?(?:token|passw(?:or)?d|passphrase|api[_\-]?key|(?:access|secret)[_\-]?key|"
            r"(?:client|app|api|webhook)[_\-]secret)(?:[ \t]+|=)\\*[\"']?"
            rf"(?P<secret>(?![/~.@\-]|\w+:|\w+\(){_DIGIT}{_LETTER}[^\s\"'`$<>{{}}()\\;|&,\]]{{8,}})"
        ),
    ),
    (
        "cli-secret",
        ("mysql", "mariadb", "sshpass"),
        re.compile(
            r"\b(?:(?:mysql|mariadb)[\w\-]*\b[^\n;|&]{0,200}?\s-p|sshpass\s+-p\s*)\\*[\"']?"
            rf"(?P<secret>{_DIGIT}{_LETTER}[^\s\"'`$<>{{}}()\\;|&]{{6,}})"
        ),
    ),
    (
        "cookie",
        ("cookie",),
        re.compile(
            r"(?i)(?:cookie[\"'\\]{0,4}[ \t]{0,3}[:=]?[ \t]{0,3}[\"'\\]{0,4}|;[ \t]{0,3})"
            r"(?:[\w.\-]{0,40}?(?:sess|sid|auth|token|jwt|remember)[\w.\-]{0,40})="
            r"(?P<secret>(?=[^\s;]{0,128}\d)(?=[^\s;]{0,128}[a-z])[a-z0-9%+/=._~\-]{16,})"
        ),
    ),
)

CREDENTIAL_KEYS: Final = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "api_key", "apikey", "cookie", "set-cookie"}
)

_BENIGN: Final = re.compile(
    r"""(?ix)
      [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}   # UUID
    | (?:sha\d+[:-])?(?:[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})   # commit, SHA-2
    | sha(?:256|384|512)-[a-z0-9+/]{40,}={0,2}     # subresource integrity
    | [a-z][a-z\-]*-\d{6,}                         # words and a time stamp: task-output-waiting-1770123456789
    | [\d.,:_\-]+                                  # numbers, dates, versions
    | (?:your|my|some|enter|insert|example|dummy|fake|changeme|placeholder|xxx)
      [-_\ a-z0-9]*(?:key|token|secret|password|here)[a-z_\-]*
    | change[-_\ ]?(?:me|this|it)
    | (?:pass(?:word|wd|phrase)|secret|token|example|placeholder|string|redacted|hidden)[*:!?.]?
    | \^.+\$                                       # a regular expression
    | [a-z_:\d,]+(?:\|[a-z_:\d,]+)+               # rules for a field: required|min:8
    | [#.@][a-z][\w\-]*                           # selectors: #password-2
    | true|false|null|none|undefined
    """
)
MARK: Final = re.compile(r"<(?:secret|pii):[a-z0-9\-]+:\d+>")
_GENERIC_OURS: Final = frozenset(
    {"env-secret", "authorization", "password", "assigned-secret", "cli-secret", "url-token", "cookie", "netrc"}
)
_RANDOM_OURS: Final = frozenset({"assigned-secret", "cli-secret", "url-token", "cookie"})
"""Rules for what a machine made up: words and short numbers (`my-token-2`, `db.password.v2`) are names."""
_WORDS: Final = re.compile(r"(?i)(?:[a-z]+|v?\d{1,4})(?:[\-_.](?:[a-z]+|v?\d{1,4}))*")


def benign(rule: str, secret: str, *, confidence: str = "", quoted: bool = True) -> bool:
    """Whether a find is a look-alike. Shapes of ids and hashes excuse only rules that judge by context.

    A rule for one vendor's tokens (`confidence` "high", or ours with a fixed prefix) knows what it found, even where
    that vendor's tokens look like UUIDs. Letters without quotes are a name in code (`password: SecretStr`).
    """
    by_context = rule in _GENERIC_OURS or confidence in ("low", "medium")
    if rule in _RANDOM_OURS and _WORDS.fullmatch(secret):
        return True
    name = not quoted and secret.replace("_", "").replace(".", "").isalpha()
    return by_context and (name or _BENIGN.fullmatch(secret.strip("\"'")) is not None)
