"""`postgrad record [-- COMMAND]`: record the calls that an agent makes to its API, as exact traces without keys.

The command finds the recorder in the environment variables that agents read their base URLs from. Without a command the
recorder stays up until it is stopped, for agents that are configured by hand. Every API has a file of its own in the
run folder; `postgrad ingest RUN` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_serializer
from rich.console import Group

from postgrad.core.errors import ConfigError
from postgrad.run.config import Config
from postgrad.run.progress import note
from postgrad.verbs.command import verb_command

if TYPE_CHECKING:
    from postgrad.serve.recording.recorder import Recorder
    from postgrad.serve.recording.upstreams import Upstreams


class RecordConfig(Config):
    """What to record, and where it goes."""

    command: list[str] = Field(default_factory=list)
    """the command to run, given after `--`; without one the recorder stays up until it is stopped"""
    host: str = "127.0.0.1"
    """address to listen on; there is no authentication"""
    port: int = Field(default=0, ge=0, le=65535)
    """port to listen on; 0 takes a free one"""
    upstream_openai: str | None = None
    """the true base URL with its version [OPENAI_BASE_URL of the caller, else https://api.openai.com/v1]"""
    upstream_anthropic: str | None = None
    """the true base URL without version [ANTHROPIC_BASE_URL of the caller, else https://api.anthropic.com]"""
    traces: Path | None = None
    """folder for the recorded calls, one file an API [the run folder]"""

    @field_serializer("command", "upstream_openai", "upstream_anthropic")
    def _without_keys(self, value: Any) -> Any:
        """Run folders hold no keys; a command whose words held one cannot be resumed."""
        return _redacted(value)


CONFIG = RecordConfig


def run(config: RecordConfig, out: Path) -> dict[str, Any]:
    """Record until the command has ended, or until SIGINT or SIGTERM.

    Raises:
        ConfigError: an upstream is no URL, or there is no such command.
        OutsideFailure: the port is taken.
    """
    from postgrad.serve.recording.fingerprint import fingerprint
    from postgrad.serve.recording.session import recording, run_command
    from postgrad.serve.waiting import wait_until_stopped

    if any("<secret:" in word for word in config.command):
        raise ConfigError("the command held a key, which was not kept", do="give the whole command again")
    upstreams = _upstreams(config)
    environment = fingerprint(Path.cwd(), config.command)
    folder = config.traces or out
    code = 0
    with recording(folder, upstreams, environment=environment, host=config.host, port=config.port) as running:
        if config.command:
            note(f"recording to {folder} through {running.address}")
            code = run_command(config.command, upstreams.environment(running.address))
        else:
            for name, value in upstreams.environment(running.address).items():
                if name.endswith("_BASE_URL"):
                    note(f"export {name}={value}")
            note(f"recording to {folder} (Ctrl-C stops)")
            wait_until_stopped()
    result = _result(running.recorder, address=running.address, code=code)
    note(_summary(result))
    return result


def _upstreams(config: RecordConfig) -> Upstreams:
    from postgrad.serve.recording.upstreams import Upstreams

    return Upstreams.found(os.environ, openai=config.upstream_openai, anthropic=config.upstream_anthropic)


def _redacted(value: Any) -> Any:
    from postgrad.traces.redaction.redactor import Redactor

    return Redactor().redact(value)


def _result(recorder: Recorder, *, address: str, code: int) -> dict[str, Any]:
    from dataclasses import asdict

    files = sorted(str(path) for path in recorder.files)
    return {
        "exit_code": code,
        "address": address,
        **asdict(recorder.counts),
        "traces": str(recorder.folder),
        "files": files,
    }


def _summary(result: Mapping[str, Any]) -> str:
    told = f"recorded {result['recorded']} of {result['calls']} calls, {result['errors']} with errors"
    more = [
        f"{result[key]} {what}" for key, what in (("unreadable", "no JSON"), ("lost", "not written")) if result[key]
    ]
    return "; ".join([told, *more, *result["files"]])


def plan(config: RecordConfig) -> dict[str, Any]:
    """Where calls would go, and what the command would find in its environment."""
    upstreams = _upstreams(config)
    address = f"http://{config.host}:{config.port or 'PORT'}"
    return {
        "upstreams": {"openai": _redacted(upstreams.openai), "anthropic": _redacted(upstreams.anthropic)},
        "environment": upstreams.environment(address),
    }


def show(result: dict[str, Any]) -> Group:
    """Nothing: stdout is the command's, and the summary has gone to stderr."""
    return Group()


command = verb_command(
    "record",
    CONFIG,
    run,
    help="Record an agent's calls to its API: postgrad record -- COMMAND, or postgrad record --port N.",
    show=show,
    plan=plan,
    short={"-o": "traces"},
    exit_code=lambda result: int(result["exit_code"]),
    rest="command",
)
