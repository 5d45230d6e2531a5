"""When freed memory is given back, and that layers look for it."""

from __future__ import annotations

import pytest
import torch

from postgrad.models import heap
from postgrad.models.heap import GROWN, Heap
from postgrad.models.policy import Policy


def test_memory_is_given_back_when_a_pass_has_grown_by_much() -> None:
    """In units of `GROWN`. Made at 3; a pass begins at 4: 5 is one more, not above; 5.5 is above, and giving back
    leaves 4.5; 5.4 is within one of that. The next pass begins at 5.6, which is no growth; 6.6 is not above, 6.7 is.
    """
    sizes = iter(int(size * GROWN) for size in (3, 4, 5, 5.5, 4.5, 5.4, 5.6, 6.6, 6.7, 6))
    given: list[int] = []
    watched = Heap(lambda: next(sizes), lambda: given.append(1))
    counts = []
    for looks in (3, 2):
        watched.begin()
        for _ in range(looks):
            watched.watch()
            counts.append(len(given))
    assert counts == [0, 1, 1, 1, 2]
    assert next(sizes, None) is None


def test_every_layer_looks_while_gradients_are_kept(tiny: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass with gradients looks once a layer, one without never."""
    looks: list[int] = []

    def resident() -> int:
        looks.append(1)
        return 0

    watched = Heap(resident, lambda: None)
    monkeypatch.setattr(heap, "_heap", lambda: watched)
    looks.clear()
    ids = torch.arange(5)[None]
    with torch.no_grad():
        tiny.body(input_ids=ids)
    assert not looks
    tiny.body(input_ids=ids)
    assert len(looks) == tiny.network.config.num_hidden_layers


def test_freed_memory_really_returns() -> None:
    """Of 2,000 buffers of 64 KB every second is freed: 64 MB of holes, of which most leave the process."""
    own = heap._heap()
    assert own is not None
    buffers = [torch.ones(16384) for _ in range(2000)]
    del buffers[::2]
    full = heap._resident()
    own._give_back()
    assert full - heap._resident() > 40e6
    assert sum(int(buffer.sum()) for buffer in buffers) == 1000 * 16384
