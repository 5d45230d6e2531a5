"""JSON to a sampling server and back: retries where waiting helps, one clear line where it does not.

A sampling request changes nothing on the server, so any failed one may be sent again. Redirects are not followed.
"""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from postgrad.core.errors import ConfigError, MissingDependency, OutsideFailure

CONNECT = 10.0
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0  # seconds


class Client:
    """One server; may be used by several threads."""

    def __init__(
        self,
        url: str,
        *,
        key_variable: str | None,
        timeout: float,
        tries: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependency("httpx", extra="train") from None
        self._http, self._url, self._tries, self._sleep = httpx, url, tries, sleep
        headers = {} if key_variable is None else {"Authorization": f"Bearer {_key(key_variable)}"}
        self._client = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=CONNECT),
            limits=httpx.Limits(max_connections=None),
            trust_env=not _is_local(url),
        )

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON of the answer; its text where it is none.

        Raises:
            ConfigError: the server refuses the request.
            OutsideFailure: it cannot be reached, or fails, as often as may be tried.
        """
        told = ""
        for attempt in range(self._tries):
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt)
            try:
                response = self._client.post(path, json=body)
            except self._http.HTTPError as error:
                told = f"{type(error).__name__}: {error}"
            else:
                if response.status_code < 300:
                    return _content(response)
                told = f"{response.status_code}: {response.text[:300]}"
                if response.status_code < 500 and response.status_code not in (408, 409, 425, 429):
                    raise ConfigError(f"the sampling server at {self._url}{path} refused the request", got=told)
                wait = _asked_for(response.headers.get("retry-after"), wait)
            if attempt + 1 < self._tries:
                self._sleep(wait)
        raise OutsideFailure(f"the sampling server at {self._url}{path} failed {self._tries} times; last: {told}")

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def _content(response: Any) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def _asked_for(header: str | None, wait: float) -> float:
    """The wait that the server asked for, in seconds, where it is a number and not too long."""
    try:
        return min(LONGEST_WAIT, max(0.0, float(header))) if header else wait
    except ValueError:
        return wait


def _key(variable: str) -> str:
    key = os.environ.get(variable)
    if not key:
        raise ConfigError(f"environment variable {variable}, the sampling server's key, is not set")
    return key


def _is_local(url: str) -> bool:
    """Whether it is this machine, which no proxy of the environment can reach."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
