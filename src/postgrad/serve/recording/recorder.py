"""`Recorder`: every call becomes one line of a file of its API, as `ingest` reads it, without keys.

    {"request", "response", "time", "metadata": {"postgrad": {...}},     as `traces.capture` writes a call
     "provider", "path", "status", "seconds", "stream", "api_headers", "environment"[, "aborted"]}

Lines are made and written on a thread of their own after the client has its answer, in the order in which the calls
ended. A line is one write, flushed to the disk before the next one: a killed recorder loses the calls in work and
leaves at most one torn last line in a file. A key is never written: headers are left out but for those of
`KEPT_HEADERS`; the query is left out; the values of the keys that calls brought and of the environment's variables
named like keys are replaced wherever they appear; the rest goes through `Redactor`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from postgrad.core.canonical import plain_json
from postgrad.run.progress import note
from postgrad.serve.log import append_line
from postgrad.serve.recording.answers import has_ended
from postgrad.serve.recording.bodies import decoded, read_answer, read_object
from postgrad.serve.recording.upstreams import Api, Provider
from postgrad.traces.capture import exchange
from postgrad.traces.redaction.redactor import Redactor

KEPT_HEADERS = ("anthropic-version", "anthropic-beta", "openai-beta", "user-agent")
"""Request headers that change what an API does, or say who asks."""
CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization")
_CREDENTIAL_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SERVER_KEYS = {"authorization", "authorization_token", "headers"}


@dataclass
class Call:
    """One call as it went over the wire; `aborted` says why an answer has no end."""

    api: Api
    provider: Provider
    path: str
    headers: Mapping[str, str]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    request: bytearray = field(default_factory=bytearray)
    status: int = 0
    response_headers: Mapping[str, str] = field(default_factory=dict)
    response: bytearray = field(default_factory=bytearray)
    seconds: float = 0.0
    aborted: str = ""


@dataclass
class Counts:
    """What became of the calls: `errors` had a status of 400 or more or were aborted; `lost` could not be written."""

    calls: int = 0
    recorded: int = 0
    errors: int = 0
    unreadable: int = 0
    lost: int = 0


class Recorder:
    """Writes calls to ``FOLDER/API.jsonl``; `close` waits until all of them are written."""

    def __init__(self, folder: Path, *, environment: Mapping[str, Any], secrets: Iterable[str] = ()) -> None:
        self.folder = folder
        self.counts = Counts()
        self.files: set[Path] = set()
        self._environment = dict(environment)
        self._redactor = Redactor()
        self._secrets: dict[str, str] = {}
        self._hide(secrets)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="postgrad-recorder")
        self._waiting: set[Future[None]] = set()
        self._lock = threading.Lock()

    def add(self, call: Call) -> None:
        """Take a call that has ended; returns at once."""
        future = self._thread.submit(self._write, call)
        with self._lock:
            self._waiting = {one for one in self._waiting if not one.done() or one.exception()} | {future}

    def close(self) -> None:
        """Wait until every call is written."""
        self._thread.shutdown(wait=True)
        for future in self._waiting:
            future.result()

    def _write(self, call: Call) -> None:
        self.counts.calls += 1
        line = self.line(call)
        self.counts.errors += call.status >= 400 or bool(call.aborted)
        if line is None:
            self.counts.unreadable += 1
            return
        path = self.folder / f"{call.api}.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            append_line(path, line.encode())
        except OSError as error:
            if not self.counts.lost:
                note(f"warning: a call was not recorded: cannot write {path}: {error.strerror or error}")
            self.counts.lost += 1
            return
        self.files.add(path)
        self.counts.recorded += 1

    def line(self, call: Call) -> str | None:
        """The line of a call, None where the request is no JSON object."""
        request = read_object(decoded(bytes(call.request), call.headers.get("content-encoding", "")))
        if request is None:
            return None
        kind = call.response_headers.get("content-type", "")
        body = decoded(bytes(call.response), call.response_headers.get("content-encoding", ""))
        response = read_answer(call.api, body, content_type=kind)
        if read_object(body) is not None or has_ended(body.decode("utf-8", "replace")):
            call.aborted = ""  # the connection ended after the answer had
        if call.aborted and not response.get("error"):
            response["error"] = {"message": call.aborted, "type": "aborted"}
        told = exchange(_without_server_keys(request), response, time=call.started.isoformat()) | {
            "provider": call.provider,
            "path": call.path,
            "status": call.status,
            "seconds": round(call.seconds, 4),
            "stream": "event-stream" in kind,
            "api_headers": {name: call.headers[name] for name in KEPT_HEADERS if name in call.headers},
            "environment": self._environment,
        }
        told |= {"aborted": call.aborted} if call.aborted else {}
        self._hide(credentials(call.headers))
        return self._without_known(plain_json(self._redactor.redact(told))) + "\n"

    def _hide(self, secrets: Iterable[str]) -> None:
        """Remember keys; the same key always gets the same mark."""
        for secret in secrets:
            self._secrets.setdefault(secret, f"<secret:credential:{len(self._secrets) + 1}>")

    def _without_known(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(plain_json(secret)[1:-1], self._secrets[secret])
        return text


def _without_server_keys(request: dict[str, Any]) -> dict[str, Any]:
    """Tool servers are named with the keys to them: OpenAI's among the tools, Anthropic's in a list of their own."""
    lists = {key: request[key] for key in ("tools", "mcp_servers") if isinstance(request.get(key), list)}
    return request | {
        key: [
            {k: v for k, v in item.items() if k not in _SERVER_KEYS} if isinstance(item, dict) else item
            for item in items
        ]
        for key, items in lists.items()
    }


def credentials(headers: Mapping[str, str]) -> list[str]:
    """The keys in a call's headers: whole values without a scheme."""
    values = (headers[name] for name in CREDENTIAL_HEADERS if name in headers)
    return [key for value in values if worth_hiding(key := value.rpartition(" ")[2])]


def credentials_of_environment(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Values of variables that are named like keys, but for paths of files with keys in them."""
    named = (value for name, value in environment.items() if _CREDENTIAL_NAME.search(name) and worth_hiding(value))
    return [value for value in named if not os.path.exists(value)]


def worth_hiding(value: str) -> bool:
    """Local servers take any word as a key ("none", "dummy"), and such a word is no secret elsewhere in a text."""
    return len(value) >= 12 or (len(value) >= 8 and any(letter.isdigit() for letter in value))
