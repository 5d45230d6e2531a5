"""Small traces with all that the page shows: branches, a subagent, mistakes, media, unknown blocks, hostile text."""

from __future__ import annotations

from typing import Any

from postgrad.core.message import Media, Message, Opaque, Reasoning, Text, Tool, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Event, Feedback, Request, Source, Step, Trace

HOSTILE = "</script></pre><img src=x onerror=alert(1)> {{ 7 * 7 }} <b>bold</b> \x1b[31mred"
TOOLS = (Tool("run", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}}),)


def call(number: int, command: str) -> ToolCall:
    return ToolCall.from_raw(id=f"c{number}", name="run", raw=f'{{"command": "{command}"}}')


def step(
    index: int, *blocks: Any, seen: tuple[str, ...] = (), results: tuple[ToolResult, ...] = (), **more: Any
) -> Step:
    request = Request(seen, TOOLS, fidelity=more.pop("fidelity", "exact"), missing=more.pop("missing", ()))
    usage = {"prompt_tokens": 100 + index, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}
    action = Message("assistant", tuple(blocks))
    others = more.pop("others", ())
    return Step(
        index,
        request,
        (Candidate(action, model="model-a", stop_reason="stop", usage=usage), *others),
        results=results,
        time=f"2026-01-01T10:00:{index:02d}Z",
        records=(index + 1,),
        **more,
    )


def branched() -> Trace:
    """Steps 0-1-4 are the main line; 2-3 go on from 1 as well and were abandoned; step 1 fails and step 4 recovers."""
    user, system = Message.of("user", "Count the <files>."), Message.of("system", "Be brief.")
    messages = {m.id: m for m in (system, user)}
    base = (system.id, user.id)
    failed = ToolResult("c1", "Exit code: 1\nno such option: --cuont" + "\nline" * 40, True, "error")
    fine = ToolResult("c4", "12", None)
    other = Candidate(Message.of("assistant", "Shall I?"), model="model-b", chosen=False)
    steps = (
        step(
            0, Reasoning("first look"), Text("I look."), call(0, "ls"), seen=base, results=(ToolResult("c0", "a\nb"),)
        ),
        step(1, call(1, "count --cuont"), seen=base, results=(failed,), others=(other,)),
        step(2, Text("A branch."), seen=base, abandoned=True),
        step(3, Text("Its end."), seen=base, abandoned=True, agent="helper"),
        step(4, call(4, "count --count"), seen=base, results=(fine,), parent=1, feedback=(Feedback("verifier", 1.0),)),
    )
    events = (Event("compaction", 4, 5, "summary of what was"), Event("user_text", 0, 1, "Count the <files>."))
    source = Source("/logs/branched.jsonl", "claude_code", app_version="2.0")
    return Trace("branched-1", source, messages, steps, events=events, result_records={"c1": 7})


def subagent() -> Trace:
    """A trace below the first one, with what strangers may write, media and an unknown block."""
    user = Message("user", (Text(HOSTILE), Media("image/png", "ab" * 32), Opaque("new_kind", {"x": HOSTILE})))
    steps = (
        step(0, Text(HOSTILE), seen=(user.id,), kind="subagent", fidelity="reconstructed", missing=("system prompt",)),
        step(1, ToolCall.from_raw(id="c9", name=HOSTILE, raw='{"broken'), seen=(user.id,), kind="subagent"),
    )
    source = Source("/logs/sub.jsonl", "codex_cli")
    return Trace("sub-2", source, {user.id: user}, steps, parent="branched-1")


def long(steps: int = 220) -> Trace:
    """One call after the other, each with a long output."""
    user = Message.of("user", "Do it many times.")
    text = "\n".join(f"output line {number}" for number in range(300))
    made = tuple(
        step(n, Text(f"number {n}"), call(n, f"work {n}"), seen=(user.id,), results=(ToolResult(f"c{n}", text),))
        for n in range(steps)
    )
    return Trace(f"long-{steps}", Source("/logs/long.jsonl", "openai_chat"), {user.id: user}, made)


def many(number: int) -> list[Trace]:
    """Two-step traces, each with words of its own."""
    made = []
    for n in range(number):
        user = Message.of("user", f"Question {n}: what is {n} plus {n}?")
        steps = (step(0, Text(f"It is {2 * n}."), seen=(user.id,)), step(1, Text("Anything else?"), seen=(user.id,)))
        made.append(Trace(f"many-{n}", Source(f"/logs/{n}.jsonl", "openai_chat"), {user.id: user}, steps))
    return made
