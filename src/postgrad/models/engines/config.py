"""`EngineConfig`: a recipe's section on where completions are sampled. No torch is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from postgrad.core.errors import ConfigError
from postgrad.core.strict import Strict


class EngineConfig(Strict):
    """A server that samples for the policy."""

    kind: Literal["vllm", "sglang", "openai_compatible"] = "vllm"
    """Its API: vllm, sglang, or openai_compatible for any completions API that returns token ids."""
    url: str
    """Its address, without a path: http://host:8000."""
    model: str
    """The base model by the name that the server knows it by."""
    weights: Literal["adapter", "model", "fixed"] = "adapter"
    """What it is given when the policy has changed: the adapter, the whole model (sglang), or nothing (fixed)."""
    folder: Path | None = None
    """Where weights are put for it, a folder that it can read too; null is a temporary one on this machine."""
    key_variable: str | None = None
    """Environment variable that holds its key."""
    concurrency: Annotated[int, Field(ge=1)] = 32
    """Prompts asked for at the same time."""
    timeout: Annotated[float, Field(gt=0)] = 600.0
    """Seconds for one prompt's completions."""
    tries: Annotated[int, Field(ge=1)] = 5
    """Tries of a request that fails outside of our reach; waits between them double."""

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ConfigError("engine.url", got=value, expected="an address such as http://127.0.0.1:8000")
        return value.rstrip("/").removesuffix("/v1")

    @model_validator(mode="after")
    def _takes_them(self) -> EngineConfig:
        possible = {"vllm": ("adapter",), "sglang": ("adapter", "model"), "openai_compatible": ()}[self.kind]
        if self.weights not in (*possible, "fixed"):
            raise ConfigError(
                f"a {self.kind} server takes no {self.weights} while it runs",
                got=f"engine.weights: {self.weights}",
                expected=" or ".join((*possible, "fixed")),
            )
        return self
