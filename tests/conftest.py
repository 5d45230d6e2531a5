"""Options of the whole test set: which of the slow tests run.

`--slow all` (the default) runs them all, `--slow none` leaves them out, `--slow part` runs the quarter whose turn it
is: a test's part is a hash of its name, and the part of the day is the day of the year modulo 4, so every slow test
runs at least every fourth day.
"""

from __future__ import annotations

import os
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import settings

# Before any test imports torch: tiny models are slower on several threads, and CI machines have few.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A deadline measures what else the machine does, not us.
settings.register_profile("without_deadline", deadline=None)
settings.load_profile("without_deadline")

PARTS = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", choices=("all", "none", "part"), default="all", help="which slow tests run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = config.getoption("--slow")
    today = datetime.now(UTC).timetuple().tm_yday % PARTS
    left_out = [
        item
        for item in items
        if without_cases(item) or (item.get_closest_marker("slow") and not runs(item.nodeid, chosen, today))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def without_cases(item: pytest.Item) -> bool:
    """Whether the item stands for a parametrised test whose sample files are not on this machine: no case, no test."""
    mark = item.get_closest_marker("skip")
    return mark is not None and str(mark.kwargs.get("reason", "")).startswith("got empty parameter set")


def runs(nodeid: str, chosen: str, today: int) -> bool:
    """Whether a slow test runs under the option's value on a day of this part."""
    return chosen == "all" or (chosen == "part" and zlib.crc32(nodeid.encode()) % PARTS == today)
