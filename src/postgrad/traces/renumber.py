"""`renumber`: from the names that records had while a history was built to their numbers in the source.

A conversation forgets and takes back by record number. Where one record holds several messages, or a message came in
several records, a reader names the messages itself and gives the numbers at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from postgrad.core.trace import Trace


def renumber(trace: Trace, names: Mapping[int, tuple[int, ...]]) -> Trace:
    """`trace` with the record numbers that `names` gives for each name; a result is in the last of its records."""

    def numbers(records: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(number for name in records for number in names[name]))

    replace = msgspec.structs.replace
    return replace(
        trace,
        messages={key: replace(message, records=numbers(message.records)) for key, message in trace.messages.items()},
        steps=tuple(replace(step, records=numbers(step.records)) for step in trace.steps),
        result_records={call: names[name][-1] for call, name in trace.result_records.items()},
    )
