"""What the recorder adds to a call: the same client, the same local API, directly and through `postgrad record`.

Three processes: a local API that answers at once, the recorder, and this client, which asks both ways in turn, so that
whatever else the machine does falls on both alike. A case's `ours` and `peer` are medians in milliseconds; what is
promised is the difference, `added`, below 5 ms. `correct` says that every answer came as it was sent and that every
call through the recorder was written.

Run: python benchmarks/record.py [--json] [--quick] [--calls 400]
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

TARGET_MS = 5.0
ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x" * 2000}, "finish_reason": "stop"}]}
CHUNK = {"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
STREAM = b"".join(f"data: {json.dumps(CHUNK)}\n\n".encode() for _ in range(100)) + b"data: [DONE]\n\n"


def api(port: int) -> None:
    """The local API: a stream in paced chunks where one is asked for, else one answer at once."""
    import asyncio

    import uvicorn

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        streamed = b'"stream":true' in body[:200]
        kind, said = (b"text/event-stream", STREAM) if streamed else (b"application/json", json.dumps(ANSWER).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        if streamed:
            begun = time.perf_counter()
            for number, start in enumerate(range(0, len(said), 100), 1):
                await send({"type": "http.response.body", "body": said[start : start + 100], "more_body": True})
                # No model says more than 500 tokens a second. By the clock: one late piece does not delay the others.
                await asyncio.sleep(max(0.0, begun + 0.002 * number - time.perf_counter()))
            said = b""
        await send({"type": "http.response.body", "body": said})

    uvicorn.run(answer, port=port, log_level="critical", lifespan="off", access_log=False)


@contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    """A server process that listens on `port`."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: reachable(port))
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def reachable(port: int) -> bool:
    """Whether anything answers there."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code > 0
    except httpx.HTTPError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for at most 60 s."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("a server did not start")
        time.sleep(0.05)


def timed(client: httpx.Client, url: str, body: dict[str, Any]) -> tuple[float, float, bytes]:
    """Milliseconds to the first byte and to the last, and the answer."""
    begun = time.perf_counter()
    with client.stream("POST", url, json=body) as response:
        pieces = response.iter_raw()
        first = next(pieces)
        to_first = time.perf_counter() - begun
        whole = first + b"".join(pieces)
    return 1000 * to_first, 1000 * (time.perf_counter() - begun), whole


def measure(name: str, body: dict[str, Any], urls: tuple[str, str], calls: int) -> list[dict[str, Any]]:
    """Rows for the first byte and the last byte of a kind of call."""
    times: dict[str, list[tuple[float, float]]] = {url: [] for url in urls}
    answers = set()
    with httpx.Client(timeout=60) as client:
        for number in range(calls + 10):
            for url in urls if number % 2 else urls[::-1]:
                first, last, answer = timed(client, url, body)
                answers.add(answer)
                if number >= 10:
                    times[url].append((first, last))
    rows = []
    for place, what in ((0, "first byte"), (1, "whole answer")):
        peer, ours = (statistics.median(one[place] for one in times[url]) for url in urls)
        added = round(ours - peer, 3)
        correct = len(answers) == 1
        rows.append({"case": f"{name}, {what}", "unit": "ms", "ours": round(ours, 3), "peer": round(peer, 3)})
        rows[-1] |= {"peer_name": "direct", "added": added, "ratio": round(ours / peer, 2), "target": TARGET_MS}
        rows[-1] |= {"correct": correct, "met": correct and added < TARGET_MS}
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="60 calls a case")
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--api", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.api:
        api(given.api)
        return
    calls = 60 if given.quick else given.calls
    said = [{"role": "user", "content": "word " * 40_000}]
    cases = {
        "plain": {"stream": False, "model": "m", "messages": [{"role": "user", "content": "hello"}]},
        "200 KB context": {"stream": False, "model": "m", "messages": said},
        "stream": {"stream": True, "model": "m", "messages": [{"role": "user", "content": "hello"}]},
    }
    wanted = 0
    with tempfile.TemporaryDirectory() as folder:
        own, port = free_port(), free_port()
        record = [sys.executable, "-m", "postgrad", "record", "--run", f"{folder}/run", "--port", str(port)]
        record += ["--upstream-openai", f"http://127.0.0.1:{own}/v1"]
        urls = tuple(f"http://127.0.0.1:{number}/v1/chat/completions" for number in (own, port))
        with running([sys.executable, __file__, "--api", str(own)], own), running(record, port):
            rows = []
            for name, body in cases.items():
                asked = calls // 4 if body["stream"] else calls  # a paced stream takes its time
                rows += measure(name, body, (urls[0], urls[1]), asked)
                wanted += asked + 10
        written = len((Path(folder) / "run" / "openai_chat.jsonl").read_bytes().splitlines())
    if written != wanted:
        rows = [row | {"correct": False, "met": False} for row in rows]
    if given.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(
                f"{row['case']:36} direct {row['peer']:8.2f} ms, recorded {row['ours']:8.2f} ms, +{row['added']:.2f} ms"
            )


def free_port() -> int:
    """A port that is free now."""
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
