"""A real policy behind a real socket: the shipped tiny model, the official client, the command line, and `ingest`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from postgrad.core.actor import Ask, Sampling
from postgrad.core.artifact import MANIFEST, Manifest, write_manifest
from postgrad.core.canonical import file_sha256
from postgrad.core.errors import ConfigError, OutsideFailure
from postgrad.core.files import write_json
from postgrad.core.message import Message
from postgrad.models.actor import PolicyActor
from postgrad.models.policy import Policy, load_policy
from postgrad.run.config import load
from postgrad.serve.policy_engine import PolicyEngine
from postgrad.serve.server import Listening, Running, serving
from postgrad.traces.readers import read
from postgrad.verbs.serve import CONFIG, run

ROOT = Path(__file__).parent.parent.parent
USER: list[Any] = [{"role": "user", "content": "Say something."}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "ok": {"type": "boolean"}},
                "required": ["a", "ok"],
            },
        },
    }
]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


@pytest.fixture
def running(policy: Policy, tmp_path: Path) -> Iterator[Running]:
    with serving(PolicyEngine(policy, name="tiny"), Listening(tmp_path / "captures")) as running:
        yield running


@pytest.fixture
def client(running: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=running.address, api_key="none", max_retries=0, timeout=60)


@pytest.mark.parametrize(("temperature", "seed"), [(0.0, 0), (1.0, 3), (2.0, 4)])
def test_served_is_what_the_policy_answers(
    policy: Policy, client: openai.OpenAI, temperature: float, seed: int
) -> None:
    """Streamed, folded and in process: one text, from one renderer and one sampler. The model is random, so its bytes
    are mostly no UTF-8: the hardest case for a stream."""
    ask: Any = {"model": "tiny", "messages": USER, "max_tokens": 40, "temperature": temperature, "seed": seed}
    plain = client.chat.completions.create(**ask)
    stream = client.chat.completions.create(**ask, stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    asks = [Ask((Message.of("user", "Say something."),))]
    [local] = PolicyActor(policy, "tiny").answer(asks, Sampling(temperature, max_new_tokens=40, seed=seed))
    assert local.message is not None
    assert plain.choices[0].message.content == local.message.text
    assert streamed == local.message.text
    assert plain.usage is not None
    assert plain.usage.prompt_tokens == local.prompt_tokens
    assert plain.usage.completion_tokens == local.completion_tokens
    assert plain.choices[0].finish_reason == local.stop_reason


def test_the_prompt_is_never_cut(policy: Policy, client: openai.OpenAI) -> None:
    """Tokens are bytes here: a prompt that fills all 8192 positions but one is served with one token, reason "length";
    one byte more is refused, and the message says the numbers."""
    empty = len(policy.renderer.prompt([Message.of("user", "")]))
    fits: Any = [{"role": "user", "content": "a" * (8192 - 1 - empty)}]
    answer = client.chat.completions.create(model="tiny", messages=fits, max_tokens=5)
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (8191, 1)
    long: Any = [{"role": "user", "content": "a" * (8192 - empty)}]
    with pytest.raises(openai.BadRequestError, match="is 8192 tokens; the messages and tools take 8192") as refused:
        client.chat.completions.create(model="tiny", messages=long)
    assert refused.value.code == "context_length_exceeded"


@pytest.mark.parametrize("seed", range(3))
def test_a_forced_call_fits_its_schema(client: openai.OpenAI, seed: int) -> None:
    """tool_choice "required": even a random model calls the tool with the arguments that its schema asks for.

    The stream folds to the same calls as the plain answer.
    """
    ask: Any = {"model": "tiny", "messages": USER, "tools": TOOLS, "tool_choice": "required", "max_tokens": 300}
    ask |= {"temperature": 1.0, "seed": seed}
    answer = client.chat.completions.create(**ask).choices[0]
    streamed = dict[int, str]()
    for chunk in client.chat.completions.create(**ask, stream=True):
        for call in chunk.choices[0].delta.tool_calls or []:
            assert call.function is not None
            streamed[call.index] = streamed.get(call.index, "") + (call.function.arguments or "")
    assert not answer.message.content
    assert answer.message.tool_calls
    assert list(streamed.values()) == [call.function.arguments for call in answer.message.tool_calls]
    for call in answer.message.tool_calls:
        arguments = json.loads(call.function.arguments)
        assert call.function.name == "add"
        assert set(arguments) == {"a", "ok"}
        assert type(arguments["a"]) is int
        assert type(arguments["ok"]) is bool


def test_captures_are_read_as_traces(running: Running, client: openai.OpenAI) -> None:
    """A refused request, then a chat of two turns: two steps, two texts of the user; the refusal is no capture."""
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="tiny", messages=USER, n=2)
    first = client.chat.completions.create(model="tiny", messages=USER, max_tokens=8)
    turn = [*USER, first.choices[0].message.model_dump(), {"role": "user", "content": "And?"}]
    list(client.chat.completions.create(model="tiny", messages=turn, max_tokens=8, stream=True))
    result = read(running.service.captures.today())
    [trace] = result.traces
    assert len(trace.steps) == 2
    assert trace.steps[0].action.text == first.choices[0].message.content
    assert [message.text for message in trace.context(trace.steps[1])][-1] == "And?"
    assert sorted(event.kind for event in trace.events) == ["user_text", "user_text"]
    assert sum(result.uses.values()) == 2


def test_a_context_that_the_model_does_not_have_is_refused(policy: Policy) -> None:
    with pytest.raises(ConfigError, match="8192"):
        PolicyEngine(policy, context_length=9000)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_the_command_serves_until_it_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    """It prints the address, answers, and a signal ends it with exit code 0 and one JSON object on stdout."""
    words = ["serve", "tiny-random", "--port", "0", "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "POSTGRAD_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "postgrad", *words],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        told = process.stderr.readline()
        while "serving" not in told:
            assert told, "it ended before it served"
            told = process.stderr.readline()
        found = re.search(r"http://\S+/v1", told)
        assert found is not None, told
        client = openai.OpenAI(base_url=found.group(), api_key="none", max_retries=0, timeout=60)
        client.chat.completions.create(model="tiny-random", messages=USER, max_tokens=4)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, err
    result = json.loads(out)
    assert result["captured"] == 1
    [file] = (tmp_path / result["captures"]).glob("*.jsonl")
    assert len(file.read_text().splitlines()) == 1


def test_the_check_serves_one_request(tmp_path: Path) -> None:
    """`--check TEXT` sends one request over HTTP and returns the answer and the file that holds the exchange."""
    config = load(CONFIG, overrides={"model": "tiny-random", "port": "0", "max_new_tokens": "6", "check": "Hello?"})
    result = run(config, tmp_path)
    [line] = Path(result["captured"]).read_text().splitlines()
    assert json.loads(line)["response"] == result["answer"]
    assert result["request"]["messages"] == [{"role": "user", "content": "Hello?"}]
    assert result["answer"]["usage"]["completion_tokens"] <= 6
    assert json.loads(json.dumps(result)) == result


def test_a_check_that_is_refused_fails(tmp_path: Path) -> None:
    """The prompt does not fit into 8 tokens: the server's own words reach the user."""
    config = load(CONFIG, overrides={"model": "tiny-random", "port": 0, "context_length": 8, "check.text": "Hello?"})
    with pytest.raises(OutsideFailure, match="context length is 8 tokens"):
        run(config, tmp_path)


def test_a_taken_port_is_told(running: Running, tmp_path: Path) -> None:
    port = running.address.rsplit(":", 1)[1].removesuffix("/v1")
    config = load(CONFIG, overrides={"model": "tiny-random", "port": port, "check": "Hello?"})
    told = rf"port {port} is taken \(process \d+, .*, listens there\); give another --port, or --port 0 for a free one"
    with pytest.raises(ConfigError, match=told):
        run(config, tmp_path)


def test_a_champion_is_served_by_its_pointer(tmp_path: Path, policy: Policy) -> None:
    """champion.json names the artifact; its folder's name is the model's name."""
    policy.save(tmp_path / "v2")
    write_manifest(tmp_path / "v2", Manifest(parent="p", method="sft", kind="adapter"))
    pointer = {"artifact": str(tmp_path / "v2"), "manifest": file_sha256(tmp_path / "v2" / MANIFEST)}
    write_json(tmp_path / "champion.json", pointer)
    config = load(CONFIG, overrides={"model": str(tmp_path / "champion.json"), "port": 0, "check": "Hello?"})
    assert run(config, tmp_path)["answer"]["model"] == "v2"
