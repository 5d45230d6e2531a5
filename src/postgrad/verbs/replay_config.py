"""What `postgrad replay` may be told: which steps, which teachers, how they answer and are called, how much money."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from postgrad.run.config import Config
from postgrad.verbs.selection import VoiConfig, Which
from postgrad.verbs.teacher_config import TeacherConfig, read_teachers


class SamplingConfig(Config):
    """How teachers answer."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy"""
    max_new_tokens: Annotated[int, Field(ge=1)] = 256
    """most tokens of an answer"""
    seed: int = 0
    """of the sampling, where a teacher takes one"""
    top_logprobs: Annotated[int, Field(ge=0, le=20)] = 0
    """likeliest tokens to keep at every place of an answer, from teachers that give them (openai, ollama)"""


class CallsConfig(Config):
    """How teachers are called."""

    concurrency: Annotated[int, Field(ge=1)] = 8
    """calls at once, over all teachers"""
    batch: Annotated[int, Field(ge=1)] = 32
    """steps that a local model answers at once"""
    cache: Path | None = None
    """folder of answers [cache/ in the run folder]"""
    prices: Path | None = None
    """price file that replaces the shipped one"""
    release: bool = False
    """count what broken-off calls may have cost as not billed, once the provider's own bill says so"""


class ReplayConfig(Config):
    """Which steps, which teachers, how much money."""

    store: Path
    """trace store to read"""
    teachers: tuple[TeacherConfig, ...] = ()
    """who is asked: a list, or the path of a file with one"""
    steps: Which = "sites"
    """steps at error sites, all of them, or those worth most for their money"""
    limit: Annotated[int, Field(ge=1)] | None = None
    """most steps to replay"""
    sampling: SamplingConfig = SamplingConfig()
    """how teachers answer"""
    budget: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """most US dollars that may be paid in this run folder, over all its runs"""
    plan: bool = False
    """say what it would cost, and ask nothing"""
    local_only: bool = False
    """refuse teachers over a network"""
    voi: VoiConfig = VoiConfig()
    """for steps: voi"""
    calls: CallsConfig = CallsConfig()
    """how teachers are called"""

    @model_validator(mode="before")
    @classmethod
    def _teachers_of_a_file(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("teachers"), str | Path):
            return data
        read = read_teachers(Path(data["teachers"]))
        calls = data.get("calls") or {}
        if isinstance(calls, Mapping):
            given = {"concurrency": read.concurrency, "prices": read.prices}
            calls = {**{key: value for key, value in given.items() if value is not None}, **calls}
        return {**data, "teachers": read.teachers, "calls": calls}
