"""Rule 9: the same mistake again. The strongest place for a hint: "this has failed already because ...".

The same tool with the same arguments and the same kind of failure is a repeat of the first such site. What was
excusable once (a missing program, an unknown path) is a mistake when it is tried again and fails with the same words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from postgrad.core.canonical import canonical_json
from postgrad.core.message import ToolCall
from postgrad.core.trace import Trace
from postgrad.signals.actions import normal_call
from postgrad.signals.error_sites.rules import Verdict
from postgrad.signals.error_sites.site import Site
from postgrad.signals.shell.commands import command_of

_OUTSIDE = ("reject", "interrupt", "cascade", "no_match", "correction", "undo", "user_edit")


def mark_repeats(trace: Trace, sites: Sequence[Site]) -> list[Site]:
    """The sites, with `repeat_of` where the call and the kind of failure were there before."""
    calls = {call.id: call for step in trace.steps for call in step.action.tool_calls}
    first: dict[str, Site] = {}
    told: defaultdict[str, set[str]] = defaultdict(set)
    marked = []
    for site in sites:
        call = calls.get(site.call or "")
        if call is None or site.kind in _OUTSIDE:
            marked.append(site)
            continue
        key, words = canonical_json([repeat_key(call), site.kind]), _signature(site.text)
        if key in first:
            marked.append(_again(site, first[key], same_words=words in told[key]))
        else:
            marked.append(first.setdefault(key, site))
        told[key].add(words)
    return marked


def _again(site: Site, earlier: Site, *, same_words: bool) -> Site:
    known_red = site.verdict == "benign" and site.kind in ("test_failed", "check_failed")  # nothing was edited between
    excused = site.verdict in ("benign", "env") and same_words and not known_red
    verdict: Verdict = "real" if excused else site.verdict
    rule = "repeat/2" if excused else site.rule
    return msgspec.structs.replace(site, repeat_of=earlier.step, verdict=verdict, rule=rule)


def repeat_key(call: ToolCall) -> object:
    """A shell line counts by its words: description and time limit do not make it another command."""
    line = command_of(call)
    return [call.name, " ".join(line.split())] if line is not None else normal_call(call)


def _signature(text: str) -> str:
    """The words of a failure without numbers, addresses and times."""
    return re.sub(r"\W*\d[\w.:]*", "#", " ".join(text.split())[:600]).lower()
