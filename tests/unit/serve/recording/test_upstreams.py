"""Which API a path is for, where it goes, and what a command is told."""

from __future__ import annotations

import pytest

from postgrad.core.errors import ConfigError
from postgrad.serve.recording.upstreams import Upstreams

PUBLIC = Upstreams()
OTHER = Upstreams("http://host/api/v3", "http://host/claude")
BARE = Upstreams("http://host:1", "http://host:2/v1")
CLAUDE = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("upstreams", "path", "headers", "url", "api"),
    [
        # A command's base URL mirrors the true one, so the rest is a path of the true host.
        (PUBLIC, "/openai/v1/chat/completions", {}, "https://api.openai.com/v1/chat/completions", "openai_chat"),
        (PUBLIC, "/openai/v1/responses", {}, "https://api.openai.com/v1/responses", "openai_responses"),
        (PUBLIC, "/openai/v1/responses/resp_1", {}, "https://api.openai.com/v1/responses/resp_1", None),
        (PUBLIC, "/anthropic/v1/messages", {}, "https://api.anthropic.com/v1/messages", "anthropic_messages"),
        (PUBLIC, "/anthropic/messages", {}, "https://api.anthropic.com/v1/messages", "anthropic_messages"),
        (PUBLIC, "/anthropic/v1/messages/count_tokens", {}, "https://api.anthropic.com/v1/messages/count_tokens", None),
        (PUBLIC, "/anthropic/v1/messages/batches", {}, "https://api.anthropic.com/v1/messages/batches", None),
        (OTHER, "/openai/api/v3/chat/completions", {}, "http://host/api/v3/chat/completions", "openai_chat"),
        (OTHER, "/anthropic/claude/v1/messages", {}, "http://host/claude/v1/messages", "anthropic_messages"),
        # A base URL given to a client by hand.
        (PUBLIC, "/v1/chat/completions", {}, "https://api.openai.com/v1/chat/completions", "openai_chat"),
        (PUBLIC, "/chat/completions", {}, "https://api.openai.com/v1/chat/completions", "openai_chat"),
        (PUBLIC, "/v1/messages", CLAUDE, "https://api.anthropic.com/v1/messages", "anthropic_messages"),
        (PUBLIC, "/v1/models", {}, "https://api.openai.com/v1/models", None),
        (PUBLIC, "/v1/models", CLAUDE, "https://api.anthropic.com/v1/models", None),
        (PUBLIC, "/v1/threads/t/messages", {}, "https://api.openai.com/v1/threads/t/messages", None),
        (OTHER, "/v1/chat/completions", {}, "http://host/api/v3/chat/completions", "openai_chat"),
        (OTHER, "/v1/messages", CLAUDE, "http://host/claude/v1/messages", "anthropic_messages"),
        (PUBLIC, "http://other/v1/chat/completions", {}, "https://api.openai.com/v1/chat/completions", "openai_chat"),
        (PUBLIC, "*", {}, "https://api.openai.com/v1/", None),
        # An upstream without a path serves what the client asks for; a doubled version is one.
        (BARE, "/v1/chat/completions", {}, "http://host:1/v1/chat/completions", "openai_chat"),
        (BARE, "/openai/chat/completions", {}, "http://host:1/chat/completions", "openai_chat"),
        (BARE, "/v1/messages", CLAUDE, "http://host:2/v1/messages", "anthropic_messages"),
    ],
)
def test_target(upstreams: Upstreams, path: str, headers: dict[str, str], url: str, api: str | None) -> None:
    target = upstreams.target(path, headers)
    assert (target.url, target.api) == (url, api)


def test_what_is_given_beats_the_caller_and_the_caller_the_public_apis() -> None:
    caller = {"OPENAI_API_BASE": "http://old/v1", "OPENAI_BASE_URL": "http://own/v1/", "ANTHROPIC_BASE_URL": ""}
    assert Upstreams.found(caller, openai=None, anthropic=None) == Upstreams(
        "http://own/v1", "https://api.anthropic.com"
    )
    given = Upstreams.found(caller, openai="http://given/v1", anthropic="http://a")
    assert given == Upstreams("http://given/v1", "http://a")
    assert Upstreams.found({}, openai="http://bare:1", anthropic="http://a/v1/") == Upstreams(
        "http://bare:1/v1", "http://a"
    )


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("no_proxy", "corp")
    told = OTHER.environment("http://127.0.0.1:5")
    assert told["OPENAI_BASE_URL"] == told["OPENAI_API_BASE"] == "http://127.0.0.1:5/openai/api/v3"
    assert told["OPENAI_HOST"] == "http://127.0.0.1:5/openai"
    assert told["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:5/anthropic/claude"
    assert told["NO_PROXY"] == "corp,127.0.0.1,localhost"


@pytest.mark.parametrize("url", ["api.openai.com/v1", "ftp://host", "http://", "http://host/v1?key=1"])
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no base URL"):
        Upstreams(url)
