"""The edition of our own code: whatever decides what a source becomes in a store.

Readers, fidelity, redaction, error sites and tables change between releases and between two commits. Every source in
a store is stamped with the edition that read it (`ingest_settings.Settings.stamp`); one of an older edition is read
anew by the next ingest. So a change of any of that code is a new edition, and a test that knows the code by its hash
says so.
"""

from __future__ import annotations

EDITION = 7
"""Goes up with every change that makes another reading, or another judgement, of the same bytes."""
CODE = "3587fa2bb657a154"
"""The hash of the code of this edition; comments, docstrings and blank lines do not count (`test_editions`)."""


def edition() -> int:
    """The edition of this code."""
    return EDITION
