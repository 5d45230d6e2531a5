"""Serve a model behind OpenAI's chat-completions API and capture every exchange for `ingest`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import Field, field_validator

from postgrad.core.errors import MissingDependency
from postgrad.core.words import counted
from postgrad.run.config import Config
from postgrad.verbs.command import verb_command

if TYPE_CHECKING:
    from postgrad.serve.engine import Engine
    from postgrad.serve.server import Listening


class Check(Config):
    """One request that is sent to the served model, instead of serving until stopped."""

    text: str
    """what the user says"""
    tools: list[dict[str, Any]] = Field(default_factory=list)
    """tools offered, in OpenAI's form"""

    def request(self) -> dict[str, Any]:
        """The request body."""
        body: dict[str, Any] = {"messages": [{"role": "user", "content": self.text}]}
        return body | ({"tools": self.tools} if self.tools else {})


class ServeConfig(Config):
    """What to serve, where, and within which limits."""

    model: str
    """a model's name, an artifact's folder, or a champion.json"""
    name: str | None = None
    """the name that requests give [the model's name, or its folder's]"""
    host: str = "127.0.0.1"
    """address to listen on; there is no authentication"""
    port: int = Field(default=8000, ge=0, le=65535)
    """port; 0 takes a free one and prints it"""
    captures: Path | None = None
    """folder for the captured exchanges, one file a day [RUN/captures]"""
    max_queue: int = Field(default=16, ge=0)
    """requests that may wait; one more is refused with status 503"""
    context_length: int | None = Field(default=None, ge=1)
    """tokens that prompt and answer may take together [what the model was made for]"""
    max_new_tokens: int = Field(default=512, ge=1)
    """longest answer where a request sets no max_tokens"""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """temperature where a request sets none; 0 is how models are evaluated"""
    check: Check | None = None
    """send this one request, write the answer down and stop"""

    @field_validator("check", mode="before")
    @classmethod
    def _text_is_a_check(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


CONFIG = ServeConfig


def run(config: ServeConfig, out: Path) -> dict[str, Any]:
    """Serve until SIGINT or SIGTERM, or send the check's request and stop.

    Raises:
        ConfigError: an unknown model, a context longer than it was made for, or a port that is taken.
        OutsideFailure: the check's request failed.
    """
    _require_extra()
    from postgrad.serve.once import once
    from postgrad.serve.request import Defaults
    from postgrad.serve.server import Listening

    engine = _engine(config)
    captures = config.captures or out / "captures"
    defaults = Defaults(config.temperature, config.max_new_tokens)
    listening = Listening(captures, config.host, config.port, config.max_queue, defaults)
    if config.check is not None:
        return once(engine, config.check.request(), listening)
    return _until_stopped(engine, listening)


def _until_stopped(engine: Engine, listening: Listening) -> dict[str, Any]:
    from postgrad.serve.server import serving

    stop = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in signals}
    try:
        with serving(engine, listening) as running:
            click.echo(f"serving {engine.name} at {running.address} (Ctrl-C stops)", err=True)
            click.echo(f"captures go to {listening.captures}", err=True)
            stop.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    captures, written = str(listening.captures), running.service.captures.written
    return {"address": running.address, "model": engine.name, "captures": captures, "captured": written}


def _engine(config: ServeConfig) -> Engine:
    from postgrad.core.champion import champion_artifact
    from postgrad.models.policy import load_policy
    from postgrad.serve.policy_engine import PolicyEngine

    model = str(champion_artifact(Path(config.model))) if config.model.endswith(".json") else config.model
    name = config.name or (Path(model).name if Path(model).is_dir() else model)
    return PolicyEngine(load_policy(model), name=name, context_length=config.context_length)


def _require_extra() -> None:
    from importlib.util import find_spec

    for library in ("starlette", "uvicorn"):
        if find_spec(library) is None:
            raise MissingDependency(library, extra="serve")


def show(result: dict[str, Any]) -> str:
    """The answer of a check, or what a server did until it was stopped."""
    if "answer" not in result:
        return f"stopped; {counted(result['captured'], 'exchange')} in {result['captures']}"
    message = result["answer"]["choices"][0]["message"]
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", ())]
    said = "\n".join([*([message["content"]] if message["content"] else []), *calls])
    return f"{result['address']} answered:\n{said}\ncaptured in {result['captured']}"


command = verb_command("serve", CONFIG, run, help=__doc__, show=show, positional="model")
