"""A network teacher at a scripted endpoint, and asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from postgrad.core.actor import Ask, Sampling
from postgrad.core.message import Message
from postgrad.teachers.cache import AnswerCache
from postgrad.teachers.gateway import Endpoint, Gateway, Limits
from postgrad.teachers.money.prices import FREE, Price
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.providers.openai_compatible import OpenAICompatible
from postgrad.teachers.providers.provider import Provider
from unit.signals.traces_by_hand import WEATHER

SAMPLING = Sampling(temperature=0.5, max_new_tokens=64, seed=3)
QUICK = Limits(concurrency=2, timeout=5.0, max_retries=2)


def ask(text: str = "weather?") -> Ask:
    return Ask((Message.of("user", text),), (WEATHER,))


def openai(url: str, **options: Any) -> OpenAICompatible:
    return OpenAICompatible("asked-1", url, **options)


def teacher(
    folder: Path,
    *providers: Provider,
    price: Price = FREE,
    limits: Limits = QUICK,
    accepted: tuple[str, ...] = (),
    gateway: Gateway | None = None,
    **options: Any,
) -> NetworkTeacher:
    """A teacher called "http" whose answers are kept in `folder`."""
    endpoints = [Endpoint(provider, price, limits, accepted) for provider in providers]
    cache = AnswerCache(folder / "cache", "http")
    return NetworkTeacher("http", endpoints, cache=cache, gateway=gateway or Gateway(), **options)
