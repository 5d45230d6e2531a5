"""Teachers as they stand in a recipe or in a file of their own.

    teachers:
      - {name: a, kind: openai, base_url: "http://127.0.0.1:9001/v1", model: teacher-a, api_key_env: TEACHER_KEY,
         price: {input: 1.0, output: 2.0, cached_input: 0.1}}
      - {name: b, kind: local, model: smollm2-135m}
    concurrency: 8

What belongs to the endpoint may stand beside the name, as here, or in a section `endpoint`. Prices are US dollars per
million tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from postgrad.core.errors import ConfigError
from postgrad.run.config import Config, validate
from postgrad.run.nearest import nearest
from postgrad.run.yaml import read_yaml
from postgrad.teachers.providers.prompt_cache import RuleName
from postgrad.teachers.providers.provider import check_public, check_variable

_OURS = ("messages", "model", "stream", "stream_options", "tools", "functions", "system", "prompt", "input")
"""What a request is about: another value would be sent unredacted, and outside of what the budget has weighed."""
_Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


Variable = Annotated[str, AfterValidator(check_variable)]
"""Name of an environment variable, never a key."""
Address = Annotated[str, AfterValidator(check_public)]
"""Address of an API, with no key in it."""


class BatchPrice(Config):
    """US dollars per million tokens in a provider's batch API."""

    input: _Dollars
    """of prompt tokens"""
    output: _Dollars
    """of completion tokens"""


class PriceConfig(Config):
    """US dollars per million tokens."""

    input: _Dollars
    """of prompt tokens"""
    output: _Dollars
    """of completion tokens"""
    cached_input: _Dollars | None = None
    """of prompt tokens that the provider's prompt cache held"""
    cache_write: _Dollars | None = None
    """of prompt tokens that are written into it; Anthropic: 1.25 times the input unless given"""
    batch: Annotated[float, Field(ge=0, le=1)] | BatchPrice | None = None
    """of the batch API: a share of the full price, or prices"""
    prompt_cache: RuleName | None = None
    """what of a prompt costs cached_input, for plans: none, openai (1024 tokens, blocks of 128), anthropic, or all that
    was asked before [openai: openai; anthropic: anthropic]"""

    @model_validator(mode="after")
    def _a_hit_is_no_dearer(self) -> PriceConfig:
        if self.cached_input is not None and self.cached_input > self.input:
            raise ValueError(f"cached_input is {self.cached_input:g}, expected at most input ({self.input:g})")
        return self


class Failover(Config):
    """Another endpoint for the same teacher, asked when those before it fail."""

    base_url: Address
    """address of the API"""
    kind: Literal["anthropic", "ollama", "openai"] | None = None
    """its API [the teacher's]"""
    model: str = ""
    """its name for the model [the teacher's]"""
    api_key_env: Variable | None = None
    """environment variable that holds its key"""
    price: PriceConfig | None = None
    """[the teacher's]"""


class Endpoint(Config):
    """Where a network teacher is, and how hard it is worked."""

    base_url: Address = ""
    """address of the API, usually ending in /v1 (anthropic and ollama: the public, or the local one)"""
    api_key_env: Variable | None = None
    """environment variable that holds the key"""
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """calls at once to this provider [calls.concurrency]"""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """seconds per try [20 and a tenth for every token that may be written]"""
    max_retries: Annotated[int, Field(ge=0)] = 5
    """tries after the first; a 429 waits as long as the endpoint says"""
    accept: tuple[str, ...] = ()
    """further model ids that may answer in its name; "*" is any"""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """further request parameters; null takes one of ours out"""
    stream: bool = False
    """have answers sent in parts, for servers that cut silent connections"""
    tokenizer: Path | None = None
    """tokenizer.json to count tokens with before a call"""
    failover: tuple[Failover, ...] = ()
    """other endpoints, in order"""

    @field_validator("extra")
    @classmethod
    def _is_about_the_answer(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = sorted(set(value) & set(_OURS))
        if taken:
            told = f"`extra` cannot set {', '.join(taken)}"
            do = "stream: true stands beside the name" if taken[0].startswith("stream") else "take it out"
            raise ConfigError(told, expected="parameters of the answer, like top_p or reasoning_effort", do=do)
        return value


class TeacherConfig(Config):
    """One teacher."""

    name: Annotated[str, Field(min_length=1)]
    """short unique name"""
    kind: str
    """openai, anthropic, ollama, local, gold, cassette, or module:Class"""
    model: str = ""
    """model of a local or network teacher"""
    environment: str = ""
    """environment/split[:n], the tasks that gold answers and gold hints come from"""
    seed: int = 0
    """draws the n tasks of that environment"""
    constrained: bool = False
    """answer under the grammar of the offered tools (local models)"""
    hint: Literal["none", "template", "gold"] = "none"
    """what it is told: nothing, how not to repeat the student's mistake, or the answer"""
    endpoint: Endpoint = Endpoint()
    """where a network teacher is"""
    price: PriceConfig | None = None
    """of the model, per million tokens [the price table's]"""
    tape: Path | None = None
    """file of recorded answers: kind cassette plays it, any other kind is recorded on it"""

    @model_validator(mode="before")
    @classmethod
    def _from_flat(cls, data: Any) -> Any:
        """Take an endpoint's keys, and `path` for a tape, from beside the name."""
        if not isinstance(data, Mapping):
            return data
        flat = {key: data[key] for key in Endpoint.model_fields if key in data}
        rest = {key: value for key, value in data.items() if key not in flat}
        if "path" in rest and rest.get("kind") == "cassette" and "tape" not in rest:
            rest["tape"] = rest.pop("path")
        section = rest.get("endpoint") or {}
        if flat and isinstance(section, Mapping):
            twice = sorted(set(flat) & set(section))
            if twice:
                told = f"teacher {data.get('name')}: {twice[0]} is given twice"
                raise ConfigError(told, got="beside the name and in `endpoint`", do="give it once")
            rest["endpoint"] = {**section, **flat}
        cls._require_known(rest)
        return rest

    @classmethod
    def _require_known(cls, given: Mapping[Any, Any]) -> None:
        """A misspelt key of an endpoint is nearest to one that is no field of this class."""
        known = (*cls.model_fields, *Endpoint.model_fields)
        unknown = next((str(key) for key in given if key not in cls.model_fields), None)
        if unknown is not None:
            told = f"teacher {given.get('name')}: unknown key '{unknown}'"
            raise ConfigError(told, do=nearest(unknown, known))

    @model_validator(mode="after")
    def _uses_every_key(self) -> TeacherConfig:
        """A key that its kind does not read is a mistake; what a class of one's own reads nobody knows."""
        unused = set(_UNREAD.get(self.kind, ())) & self.model_fields_set
        if self.environment and self.kind in _UNREAD and self.kind != "gold" and self.hint != "gold":
            unused.add("environment")
        if unused:
            named = sorted(unused)[0]
            inner = sorted(self.endpoint.model_fields_set) if named == "endpoint" else []
            told = f"teacher {self.name}: a teacher of kind {self.kind} does not use {inner[0] if inner else named}"
            raise ConfigError(told, do="take it out, or give the kind that was meant")
        return self


_UNREAD: Mapping[str, tuple[str, ...]] = {
    "local": ("endpoint",),
    "gold": ("endpoint", "model", "constrained"),
    "cassette": ("endpoint", "constrained"),
    **dict.fromkeys(("openai", "anthropic", "ollama"), ()),
}
"""Keys that mean nothing to a kind."""


class TeachersFile(Config):
    """A file of teachers."""

    teachers: tuple[TeacherConfig, ...]
    """who is asked"""
    concurrency: Annotated[int, Field(ge=1)] | None = None
    """calls at once, over all teachers"""
    prices: Path | None = None
    """price file that replaces the shipped one"""


def read_teachers(path: Path) -> TeachersFile:
    """Read a file of teachers.

    Raises:
        ConfigError: it is missing, no YAML mapping, or holds what is unknown.
    """
    if not path.is_file():
        raise ConfigError("no file of teachers here", got=str(path), expected="a YAML file with a list `teachers`")
    return validate(TeachersFile, read_yaml(path), source=str(path))
