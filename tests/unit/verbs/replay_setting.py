"""A trace store made by hand, and a scripted teacher that recipes can name, for the tests of replay and build."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.trace import Feedback, Trace
from postgrad.teachers.scripted import ScriptedActor
from postgrad.traces.capture import lines
from postgrad.traces.readers import read
from postgrad.traces.storage.store import Store
from postgrad.verbs.teachers import TeacherConfig
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
RIGHT = act(call("get_weather", {"city": "Rome"}))


def weather_traces(task_ids: Sequence[str | None] = (None, None, None)) -> list[Trace]:
    """Three one-step runs: a wrong value, a right call, a malformed call. The first request holds a secret."""
    wrong = Feedback("verifier", 0.0, "wrong_value: city must be Rome", "test")
    right = Feedback("verifier", 1.0, "", "test")
    made = []
    for number, (arguments, said) in enumerate(
        [('{"city": "Oslo"}', wrong), ('{"city": "Rome"}', right), ("{", wrong)]
    ):
        request = f"weather in Rome, please ({number})" + (f" key {SECRET}" if number == 0 else "")
        builder = TraceBuilder(request, [WEATHER], task_ids[number])
        result = ("Error: not a JSON object", True) if arguments == "{" else ("20", False)
        builder.step(act(call("get_weather", arguments)), [result], feedback=[said])
        made.append(builder.build(f"trace-{number}"))
    return made


def make_store(folder: Path, traces: Sequence[Trace]) -> Path:
    """A store with `traces`, through capture and reader as in life."""
    log = folder / "log.jsonl"
    log.write_text("".join(f"{line}\n" for trace in traces for line in lines(trace)), encoding="utf-8")
    Store(folder / "store").add(read(log))
    return folder / "store"


class Sure(ScriptedActor):
    """Always gives the right call."""

    @classmethod
    def from_config(cls, config: TeacherConfig) -> Sure:
        """By its name in the recipe."""
        return cls(config.name, lambda ask: RIGHT)


class Shy(ScriptedActor):
    """Answers in words."""

    @classmethod
    def from_config(cls, config: TeacherConfig) -> Shy:
        """By its name in the recipe."""
        return cls(config.name, lambda ask: Message.of("assistant", "I would rather not."))


class Small(ScriptedActor):
    """A model whose context holds nothing."""

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """As a local model abstains."""
        return [Answer(None, self.name, "too_long") for _ in asks]

    @classmethod
    def from_config(cls, config: TeacherConfig) -> Small:
        """By its name in the recipe."""
        return cls(config.name, {})


class Unsaid(Sure):
    """May be anywhere: it does not say."""

    local = False


class Judge(ScriptedActor):
    """Prefers the action with Rome in it, wherever it stands."""

    @classmethod
    def from_config(cls, config: TeacherConfig) -> Judge:
        """By its name in the recipe."""
        return cls(config.name, lambda ask: Message.of("assistant", _place_of_rome(ask.messages[0].text)))


def _place_of_rome(text: str) -> str:
    first, _, second = text.rpartition("Action A:")[2].partition("Action B:")
    return "A" if "Rome" in first else "B" if "Rome" in second else "T"
