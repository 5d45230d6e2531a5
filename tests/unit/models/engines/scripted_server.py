"""A local sampling server: scripted answers, or a policy that speaks one of the APIs, adapters included."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from postgrad.models.policy import Policy, load_policy
from postgrad.models.sample import Sample
from postgrad.models.sampler import generate

Reply = tuple[int, Any]
Answering = Callable[[str, dict[str, Any]], Reply]


@dataclass
class Server:
    """Where it listens, and every request that it got."""

    url: str = ""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def serving(answer: Answering) -> Iterator[Server]:
    """Answer every POST with what `answer` says."""
    server = Server()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                server.asked.append((self.path, body))
                status, said = answer(self.path, body)
            data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


class Sampling:
    """An engine of the tiny model: it samples from its base or from an adapter that it was told to load."""

    def __init__(self, say: Callable[[list[int], list[Sample]], Any]) -> None:
        self.say = say
        self.policies: dict[str, Policy] = {"base": load_policy("tiny-random")}

    def __call__(self, path: str, body: dict[str, Any]) -> Reply:
        if path.endswith("/load_lora_adapter"):
            if body["lora_name"] in self.policies:
                return 400, "already loaded"
            self.policies[body["lora_name"]] = load_policy("tiny-random", adapter=Path(body["lora_path"]))
            return 200, "Success"
        if path.endswith("/unload_lora_adapter"):
            del self.policies[body["lora_name"]]
            return 200, "Success"
        inner = body.get("sampling_params", body)
        policy = self.policies[body.get("model") or body.get("lora_path") or "base"]
        prompt = body.get("prompt") or body["input_ids"]
        limit = inner.get("max_tokens") or inner["max_new_tokens"]
        seed = inner["seed"] if "seed" in inner else inner["sampling_seed"]
        (samples,) = generate(
            policy, [prompt], n=inner["n"], temperature=inner["temperature"], max_new_tokens=limit, seed=seed
        )
        return 200, self.say(prompt, samples)


def as_vllm(prompt: list[int], samples: list[Sample]) -> Any:
    """Choices in another order than that of their index."""
    choices = [
        {
            "index": place,
            "token_ids": list(s.tokens),
            "prompt_token_ids": prompt,
            "logprobs": {"token_logprobs": list(s.logprobs), "tokens": ["?"] * len(s.tokens)},
            "finish_reason": s.stop_reason,
        }
        for place, s in enumerate(samples)
    ]
    return {"choices": choices[::-1]}


def as_older_vllm(prompt: list[int], samples: list[Sample]) -> Any:
    """Ids written into the tokens."""
    answer = as_vllm(prompt, samples)
    for choice in answer["choices"]:
        choice["logprobs"]["tokens"] = [f"token_id:{token}" for token in choice.pop("token_ids")]
    return answer


def as_llama_cpp(prompt: list[int], samples: list[Sample]) -> Any:
    """Ids beside the log-probabilities."""
    return {
        "choices": [
            {
                "index": place,
                "finish_reason": s.stop_reason,
                "logprobs": {"content": [{"id": t, "logprob": x} for t, x in zip(s.tokens, s.logprobs, strict=True)]},
            }
            for place, s in enumerate(samples)
        ]
    }


def as_sglang(prompt: list[int], samples: list[Sample]) -> Any:
    """A list, or one object for one completion."""
    given = [
        {
            "output_ids": list(s.tokens),
            "meta_info": {
                "prompt_tokens": len(prompt),
                "finish_reason": {"type": s.stop_reason},
                "output_token_logprobs": [[x, t, None] for t, x in zip(s.tokens, s.logprobs, strict=True)],
            },
        }
        for s in samples
    ]
    return given if len(given) > 1 else given[0]
