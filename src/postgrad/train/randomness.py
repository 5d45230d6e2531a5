"""States of the random generators of this process, as plain JSON, so that a resumed run draws the same numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


def random_state() -> dict[str, Any]:
    """States of python's, numpy's and torch's global generators, and of every visible CUDA device."""
    numpy_state = np.random.get_state(legacy=False)
    assert isinstance(numpy_state, dict)
    version, words, gauss = random.getstate()
    return {
        "python": [version, list(words), gauss],
        "numpy": {**numpy_state, "state": {**numpy_state["state"], "key": numpy_state["state"]["key"].tolist()}},
        "torch": _text(torch.get_rng_state()),
        "cuda": [_text(state) for state in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else [],
    }


def machine() -> dict[str, Any]:
    """What bit-equality hangs on beside the random states: torch's version and threads, the kind of device."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return {"torch": str(torch.__version__), "threads": torch.get_num_threads(), "device": device}


def restore_random_state(state: dict[str, Any]) -> None:
    """Take back what `random_state` gave."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    key = np.array(state["numpy"]["state"]["key"], dtype=np.uint32)
    np.random.set_state({**state["numpy"], "state": {**state["numpy"]["state"], "key": key}})
    torch.set_rng_state(_tensor(state["torch"]))
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([_tensor(text) for text in state["cuda"]])


def _text(state: Tensor) -> str:
    return bytes(state.tolist()).hex()


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
