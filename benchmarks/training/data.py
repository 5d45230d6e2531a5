"""Token data of the training cases, the same for every arm: a function of the settings and nothing else.

Random tokens unless a real trace is given: compute does not depend on their values, and equal tokens by chance would
help a prefix tree. A real trace is cut message by message so that every context fits, and its ids are taken modulo the
vocabulary where a quick run uses a small one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

OBSERVATION, ACTION, HEAD = 192, 64, 384
"""Most tokens of a real trace's observation, action and beginning, before they are cut to the context's length."""

Settings = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """A step as two branches: the context, and two actions."""

    prompt: list[int]
    chosen: list[int]
    rejected: list[int]


@dataclass(frozen=True)
class Group:
    """Completions of one prompt; `hinted` is the teacher's prompt where there is one."""

    prompt: list[int]
    completions: list[list[int]]
    advantages: list[float]
    hinted: list[int]


def pairs(settings: Settings) -> list[Pair]:
    """The pairs of one trace: a step is an observation and two actions, and the trace goes on with the chosen one."""
    if settings.get("trace"):
        turns = real_turns(Path(settings["trace"]), settings["steps"] + 1)
    else:
        turns = random_turns(settings)
    room = settings["context"] // settings["steps"]
    found, context = list[Pair](), list[int]()
    for step in range(settings["steps"]):
        (observation, chosen), (_, rejected) = turns[step], turns[step + 1]
        chosen, rejected = chosen[: room // 4], rejected[: room // 4]
        if chosen == rejected:
            rejected = [*rejected[:-1], rejected[-1] + 1]
        context = context + observation[: room - len(chosen)]
        found.append(Pair(context, chosen, rejected))
        context = context + chosen
    size = settings["vocabulary"]
    return [Pair(*([token % size for token in part] for part in (p.prompt, p.chosen, p.rejected))) for p in found]


def random_turns(settings: Settings) -> list[tuple[list[int], list[int]]]:
    """Observations and actions that fill the context."""
    draw, room = np.random.default_rng(0), settings["context"] // settings["steps"]
    action = max(1, min(ACTION, room // 4))
    return [
        (draw.integers(10, settings["vocabulary"], room - action).tolist(), draw.integers(10, 999, action).tolist())
        for _ in range(settings["steps"] + 1)
    ]


def real_turns(path: Path, count: int) -> list[tuple[list[int], list[int]]]:
    """Tokens of what the model saw new, and did, at the first `count` steps of the first trace that has as many."""
    from postgrad.models.load import load_tokenizer
    from postgrad.models.render import Renderer
    from postgrad.models.resolve import resolve_model
    from postgrad.traces import readers

    renderer = Renderer(load_tokenizer(resolve_model("smollm2-135m")))
    trace = next(trace for trace in readers.read(path).traces if learnable(trace) >= count)
    seen, turns = 0, []
    for step in [step for step in trace.steps if step.can_be_learnt][:count]:
        context = trace.context(step)
        new = [text for m in context[seen:] for text in (m.text, *(result.text for result in m.tool_results)) if text]
        ids = renderer.tokenizer.encode("\n".join(new), add_special_tokens=False)
        turns.append((ids[: OBSERVATION if seen else HEAD], renderer.action(step.action)[:ACTION]))
        seen = len(context) + 1
    return turns


def learnable(trace: Any) -> int:
    """Steps of a trace that say what the model saw and did."""
    return sum(step.can_be_learnt for step in trace.steps)


def group(settings: Settings) -> Group:
    """One prompt of P tokens (and one with a hint), G completions of C tokens."""
    draw, size = np.random.default_rng(1), settings["vocabulary"]
    p, g, c, h = (int(settings.get(name, 0)) for name in ("P", "G", "C", "hint"))
    prompt = draw.integers(10, size, p).tolist()
    completions = draw.integers(10, size, (g, c)).tolist()
    advantages = draw.normal(size=g)
    hint = draw.integers(10, size, h).tolist()
    return Group(prompt, completions, (advantages - advantages.mean()).round(3).tolist(), [*prompt, *hint])


def documents(settings: Settings) -> list[list[int]]:
    """Documents of skewed lengths: log-normal with median 64, at most `longest` tokens."""
    draw = np.random.default_rng(2)
    lengths = np.exp(draw.normal(np.log(64), 1.2, settings["documents"])).astype(int).clip(8, settings["longest"])
    return [draw.integers(10, settings["vocabulary"], n).tolist() for n in lengths]
