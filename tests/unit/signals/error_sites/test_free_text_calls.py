"""Calls whose input is free text by design (a patch): that they are no JSON is no fault of theirs."""

from __future__ import annotations

import pytest

from postgrad.signals.error_sites.sites import find_sites
from postgrad.signals.hints.hint import template_hint
from postgrad.traces.formats.shapes.parts import free_text_call
from unit.signals.traces_by_hand import TraceBuilder, act, bash

PATCH = free_text_call("c0", "apply_patch", "*** Begin Patch\n*** Update File: package.json\n@@\n-a\n+b\n*** End Patch")


@pytest.mark.parametrize(
    "text",
    [
        "Success. Updated the following files:\nM package.json",
        '{"output": "Success. Updated the following files:\\nM package.json\\n", "metadata": {"exit_code": 0}}',
    ],
)
def test_a_patch_that_applied_is_no_site_whatever_file_it_names(text: str) -> None:
    assert find_sites(TraceBuilder().step(act(PATCH), [(text, False)]).build()) == []


def test_nor_is_one_without_a_result() -> None:
    assert find_sites(TraceBuilder().step(act(PATCH)).build()) == []


def test_one_that_did_not_apply_gets_the_hint_for_patches_and_not_the_one_for_json() -> None:
    text = "apply_patch verification failed: Failed to find expected lines in package.json:\na"
    trace = TraceBuilder().step(act(PATCH), [(text, True)]).build()
    (site,) = find_sites(trace)
    assert (site.kind, site.verdict) == ("invalid_call", "real")
    hint = template_hint(site, trace)
    assert hint is not None
    assert "lines of the patch" in hint
    assert "JSON" not in hint


def test_it_is_an_edit_of_its_file() -> None:
    fails = [("Exit code 1\nError: Invalid package config\n    at package.json:3", True)]
    builder = TraceBuilder().step(act(PATCH), [("Success. Updated the following files:\nM package.json", False)])
    (site,) = find_sites(builder.step(act(bash("node cli.js", "c1")), fails).build())
    assert (site.verdict, site.step) == ("real", 0)
