"""A server as sampler: ids and log-probabilities as they were drawn, weights of the moment, and what is refused.

The servers here are scripted, or sample from the very tiny model that the policy has, so that what must come back is
known: the log-probabilities that the policy's own forest pass gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.forest import build_forest
from postgrad.models.adapter import AdapterConfig
from postgrad.models.engines.client import Client
from postgrad.models.engines.config import EngineConfig
from postgrad.models.engines.served import ServedSampler
from postgrad.models.policy import Policy, load_policy
from postgrad.models.sample import Sample
from postgrad.models.score import token_logprobs
from unit.models.engines.scripted_server import (
    Sampling,
    Server,
    as_llama_cpp,
    as_older_vllm,
    as_sglang,
    as_vllm,
    serving,
)

PROMPTS = [[5, 6, 7], [9, 200, 31], [5, 6, 7]]
APIS = {
    "vllm": ("vllm", as_vllm),
    "older vllm": ("vllm", as_older_vllm),
    "llama.cpp": ("openai_compatible", as_llama_cpp),
    "sglang": ("sglang", as_sglang),
}


def sampler(policy: Policy, server: Server, **settings: Any) -> ServedSampler:
    settings = {"kind": "vllm", "weights": "fixed", "model": "base", "tries": 1, **settings}
    return ServedSampler(policy, EngineConfig(url=server.url, **settings))


def furthest(policy: Policy, prompts: list[list[int]], results: list[list[Sample]]) -> float:
    """The largest distance of a sample's log-probability to the policy's own."""
    worst = 0.0
    for prompt, samples in zip(prompts, results, strict=True):
        forest = build_forest([Unit(tuple((*prompt, *s.tokens) for s in samples))])
        with torch.no_grad():
            hidden_TD = policy.hidden_TD(forest)
            for path, sample in zip(forest.paths[0], samples, strict=True):
                own = token_logprobs(policy.head, hidden_TD, forest, path[len(prompt) :])
                worst = max(worst, float((own - torch.tensor(sample.logprobs)).abs().max()))
    return worst


@pytest.mark.parametrize("api", APIS)
def test_what_a_server_drew_has_the_policys_own_log_probabilities(tiny: Policy, api: str) -> None:
    kind, say = APIS[api]
    with serving(Sampling(say)) as server:
        results = sampler(tiny, server, kind=kind).generate(PROMPTS, n=3, temperature=1.0, max_new_tokens=6, seed=1)
    assert [len(samples) for samples in results] == [3, 3, 3]
    assert furthest(tiny, PROMPTS, results) < 1e-4
    assert results[0][0].tokens != results[2][0].tokens, "an equal prompt that comes again draws anew"
    sent = [body.get("prompt") or body["input_ids"] for _, body in server.asked]
    assert sorted(sent) == sorted(PROMPTS), "prompts go as ids"


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_every_request_asks_for_the_whole_distribution(tiny: Policy, kind: str) -> None:
    """Servers fill what is not said from the model's generation config, as top_p 0.8."""
    with serving(Sampling(as_vllm if kind == "vllm" else as_sglang)) as server:
        sampler(tiny, server, kind=kind).generate([[5]], temperature=1.0, max_new_tokens=2, seed=0)
    ((_, body),) = server.asked
    inner = body.get("sampling_params", body)
    assert (inner["temperature"], inner["top_p"], inner["top_k"], inner["min_p"]) == (1.0, 1.0, -1, 0.0)
    assert inner["repetition_penalty"] == 1.0
    assert set(inner["stop_token_ids"]) == set(tiny.renderer.stop_ids)


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_the_server_gets_the_weights_whenever_they_have_moved_and_only_then(kind: str, tmp_path: Path) -> None:
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=4))
    engine = Sampling(as_vllm if kind == "vllm" else as_sglang)
    with serving(engine) as server:
        sampling = sampler(policy, server, kind=kind, weights="adapter", folder=tmp_path)
        for round_ in range(3):
            if round_:
                with torch.no_grad():
                    for name, weight in policy.model.named_parameters():
                        if "lora_B" in name:
                            weight.add_(0.2 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(7)))
            for _ in range(2):
                results = sampling.generate(PROMPTS[:1], n=2, temperature=1.0, max_new_tokens=4, seed=round_)
                assert furthest(policy, PROMPTS[:1], results) < 1e-4
        assert furthest(load_policy("tiny-random"), PROMPTS[:1], results) > 1e-2, "the adapter has changed something"
        names = [path.rpartition("/")[2] for path in server.paths()]
        assert [names.count(name) for name in ("load_lora_adapter", "unload_lora_adapter")] == [3, 2]
        assert len(engine.policies) == 2, "the base, and the newest adapter"
        assert len(list(tmp_path.iterdir())) == 1


def test_sglang_takes_a_whole_model(tmp_path: Path) -> None:
    policy, held = load_policy("tiny-random"), dict[str, Policy]()
    with torch.no_grad():
        next(iter(policy.model.parameters())).mul_(1.5)

    def answer(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/update_weights_from_disk":
            held["files"] = sorted(p.name for p in Path(body["model_path"]).iterdir())  # type: ignore[assignment]
            return 200, {"success": True}
        return 200, as_sglang(body["input_ids"], [Sample((4,), (-1.0,), "length")])

    with serving(answer) as server:
        sampling = sampler(policy, server, kind="sglang", weights="model", folder=tmp_path)
        sampling.generate([[5]], temperature=1.0, max_new_tokens=1, seed=0)
    assert "model.safetensors" in held["files"]  # type: ignore[operator]


def test_greedy_is_asked_for_once(tiny: Policy) -> None:
    with serving(Sampling(as_vllm)) as server:
        ((first, second),) = sampler(tiny, server).generate([[5]], n=2, temperature=0.0, max_new_tokens=3, seed=0)
    assert first == second
    assert server.asked[0][1]["n"] == 1


def choice(**changed: Any) -> dict[str, Any]:
    """Two tokens, the second of them the stop token 2, of the tiny model."""
    plain = {"token_ids": [40, 2], "logprobs": {"token_logprobs": [-1.0, -2.0]}, "finish_reason": "stop", "index": 0}
    return {name: value for name, value in (plain | changed).items() if value is not None}


REFUSED = {
    "no ids": (choice(token_ids=None), "no token ids"),
    "no log-probabilities": (choice(logprobs=None), "no log-probabilities"),
    "one log-probability too few": (choice(logprobs={"token_logprobs": [-1.0]}), "2 token ids and 1"),
    "a null": (choice(logprobs={"token_logprobs": [None, -1.0]}), "log-probabilities"),
    "minus infinity as vLLM writes it": (choice(logprobs={"token_logprobs": [-9999.0, -1.0]}), "-9999"),
    "a probability above 1": (choice(logprobs={"token_logprobs": [0.5, -1.0]}), "0.5"),
    "words for ids": (choice(token_ids=["a", "b"]), "token ids"),
    "the stop token left out": (choice(token_ids=[40], logprobs={"token_logprobs": [-1.0]}), "without one of the stop"),
    "tokens after the stop": (choice(token_ids=[2, 40], finish_reason="length"), "goes on after"),
    "an abort": (choice(finish_reason="abort"), "abort"),
    "too many tokens": (
        choice(token_ids=[40] * 9, logprobs={"token_logprobs": [-1.0] * 9}, finish_reason="length"),
        "9",
    ),
    "another prompt": (choice(prompt_token_ids=[1, 5]), "changed the prompt"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_answer_that_cannot_be_trained_on_is_refused(tiny: Policy, case: str) -> None:
    answer, told = REFUSED[case]
    with serving(lambda *_: (200, {"choices": [answer]})) as server, pytest.raises(DataError, match=told):
        sampler(tiny, server).generate([[5]], temperature=1.0, max_new_tokens=4, seed=0)


def test_the_plain_choice_is_read(tiny: Policy) -> None:
    """What the refused ones are changed from."""
    with serving(lambda *_: (200, {"choices": [choice()]})) as server:
        found = sampler(tiny, server).generate([[5]], temperature=1.0, max_new_tokens=4, seed=0)
    assert found == [[Sample((40, 2), (-1.0, -2.0), "stop")]]


def test_a_failing_server_is_asked_again_and_then_named() -> None:
    """Three tries: two waits, the second twice the first or as the server says."""
    waits: list[float] = []
    codes = iter([503, 429, 500])
    with serving(lambda *_: (next(codes), "busy")) as server:
        client = Client(server.url, key_variable=None, timeout=5.0, tries=3, sleep=waits.append)
        with pytest.raises(OutsideFailure, match=r"failed 3 times; last: 500: busy"):
            client.post("/x", {})
    assert waits == [0.5, 1.0]
    gone = Client(server.url, key_variable=None, timeout=5.0, tries=1)
    with pytest.raises(OutsideFailure, match="Connect"):
        gone.post("/x", {})


def test_a_refused_request_is_the_users_to_mend(tiny: Policy) -> None:
    with serving(lambda *_: (404, "no such model")) as server, pytest.raises(ConfigError, match="404: no such model"):
        sampler(tiny, server).generate([[5]], temperature=1.0, max_new_tokens=4, seed=0)
    assert len(server.asked) == 1


def test_settings_that_mean_nothing_are_refused(tiny: Policy) -> None:
    with pytest.raises(ConfigError, match="takes no model while it runs"):
        EngineConfig(kind="vllm", url="http://h:1", model="m", weights="model")
    with pytest.raises(ConfigError, match="takes no adapter"):
        EngineConfig(kind="openai_compatible", url="http://h:1", model="m")
    with pytest.raises(ConfigError, match=r"engine\.url"):
        EngineConfig(url="h:8000", model="m", weights="fixed")
    assert EngineConfig(url="http://h:1/v1/", model="m").url == "http://h:1"
    with pytest.raises(ConfigError, match="KEY_THAT_IS_NOT_THERE"):
        Client("http://h:1", key_variable="KEY_THAT_IS_NOT_THERE", timeout=1.0, tries=1)
    with serving(Sampling(as_vllm)) as server:
        with pytest.raises(ConfigError, match="temperature"):
            sampler(tiny, server).generate([[5]], temperature=0.7, max_new_tokens=4, seed=0)
        with pytest.raises(ConfigError, match="adapter with no adapter"):
            sampler(tiny, server, weights="adapter").generate([[5]], temperature=1.0, max_new_tokens=4, seed=0)
