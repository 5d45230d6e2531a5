"""Which served model id counts as the one that was asked for."""

from __future__ import annotations

import pytest

from postgrad.teachers.providers.served import same_model


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("teacher-a", "teacher-a", True),
        ("teacher-a", "teacher-b", False),
        ("teacher-a", "Teacher-A", True),
        ("teacher-a", "", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4", "gpt-4-0613", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False),
        ("gpt-4o-2024-08-06", "gpt-4o", False),
        ("claude-sonnet-4", "claude-sonnet-4-20250514", True),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("claude-3-5-sonnet@20241022", "claude-3-5-sonnet@20241022", True),
        ("gemini-1.5-pro", "gemini-1.5-pro-002", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("gpt-4o", "openai/gpt-4o-2024-08-06", True),
        ("meta-llama/llama-3:free", "meta-llama/llama-3", True),
        ("llama3", "llama3:latest", True),
        ("llama3:70b", "llama3:70b", True),
        ("llama3:70b", "llama3:8b", False),
        ("/models/qwen", "qwen", True),
        ("qwen-7b", "qwen-72b", False),
    ],
)
def test_names(asked: str, served: str, same: bool) -> None:
    assert same_model(asked, served) is same


def test_further_names_are_the_users_word() -> None:
    assert same_model("a", "/srv/weights.gguf", ("weights.gguf",))
    assert not same_model("a", "b", ("c",))
    assert same_model("a", "b", ("*",))
