"""Sentences that users say after finished work, in their languages: the table `after_answers.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from postgrad.signals.words.findings import shows_failure
from postgrad.signals.words.objections import objects

TABLE: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("after_answers.yaml").read_text("utf-8"))


@pytest.mark.parametrize("said", TABLE["objections"])
def test_it_objects(said: str) -> None:
    assert objects(said) or shows_failure(said)


@pytest.mark.parametrize("said", TABLE["none"])
def test_it_goes_on(said: str) -> None:
    assert not objects(said)
    assert not shows_failure(said)
