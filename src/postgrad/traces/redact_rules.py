"""Our own rules for secrets, beside those of betterleaks, and what is never a secret.

A rule is a name, words of which one is in every text that it fits (lower case, for a quick look), and a pattern whose
group `secret` is replaced; the text around it stays, so `Authorization: Bearer` can still be
read. Rules with a fixed prefix ask for a word boundary before it: "task-output" holds no "sk-" key.
Not covered: secrets split over string concatenation, base64 of secrets, personal data.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN = r"[A-Za-z0-9+/=._~\-]"
_START = r"(?<![A-Za-z0-9_\-])"

RULES: Final[tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]] = (
    (
        "private-key",
        ("-----begin",),
        re.compile(
            r"(?P<secret>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r".*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)",
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
    | (?:your|my|some|example|dummy|fake|changeme|placeholder|xxx)[-_a-z0-9]*(?:key|token|secret|password|here)[a-z_\-]*
    | true|false|null|none|undefined
    """
)
MARK: Final = re.compile(r"<(?:secret|pii):[a-z0-9\-]+:\d+>")
_GENERIC_OURS: Final = frozenset({"env-secret", "authorization"})


def benign(rule: str, secret: str, *, confidence: str = "", quoted: bool = True) -> bool:
    """Whether a find is a look-alike. Shapes of ids and hashes excuse only rules that judge by context.

    A rule for one vendor's tokens (`confidence` "high", or ours with a fixed prefix) knows what it found, even where
    that vendor's tokens look like UUIDs. Letters without quotes are a name in code (`password: SecretStr`).
    """
    by_context = rule in _GENERIC_OURS or confidence in ("low", "medium")
    name = not quoted and secret.replace("_", "").replace(".", "").isalpha()
    return by_context and (name or _BENIGN.fullmatch(secret.strip("\"'")) is not None)
