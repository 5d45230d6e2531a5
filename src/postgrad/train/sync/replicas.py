"""The replicas of a run, from the inside of one: what they tell each other and the means that they take.

They meet at a store that the first one keeps, and form a gloo group of their own. The default process group, its
environment variables and whatever else this process belongs to are never touched. With several workers a replica,
worker r of each forms a group with worker r of the others.

A mean is summed in the order of the replicas, piece by piece, each replica summing one: it depends on no algorithm of a
library, is the same on all, and costs the traffic of an all-reduce.

Shapes: N numbers, K replicas, P numbers of a piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.distributed import ProcessGroupGloo

from postgrad.core.errors import OutsideFailure


class Replicas:
    """The group, or the one replica there is.

    Raises:
        OutsideFailure: the others did not come in time, here and in every method.
    """

    def __init__(self, address: str | None, *, replica: int, count: int, rank: int, timeout: float) -> None:
        self.replica, self.count, self._timeout = replica, count, timeout
        self._said = 0
        if count == 1:
            return
        assert address is not None, "the settings ask for one"
        host, _, port = address.rpartition(":")
        limit = timedelta(seconds=timeout)
        with self._waiting(f"at {address}"):
            keeps = replica == rank == 0
            meeting = TCPStore(host, int(port), is_master=keeps, timeout=limit, wait_for_workers=False)
            self._store = PrefixStore(f"postgrad/{rank}", meeting)
            group_store = PrefixStore("group", self._store)
            self._group: Any = ProcessGroupGloo(group_store, replica, count, limit)

    def gathered(self, value: Any) -> list[Any]:
        """Every replica's `value`, plain JSON, in order of replica."""
        if self.count == 1:
            return [value]
        self._said += 1
        values = []
        with self._waiting(f"(message {self._said})"):
            self._store.set(f"{self._said}/{self.replica}", json.dumps(value))
            for other in range(self.count):
                values.append(json.loads(self._store.get(f"{self._said}/{other}")))
        return values

    def mean(self, values_N: Tensor) -> Tensor:
        """Mean over replicas of a flat CPU tensor, the same bits on all."""
        if self.count == 1:
            return values_N
        size = -(-len(values_N) // self.count)
        sent_N = values_N.new_zeros(size * self.count)
        sent_N[: len(values_N)] = values_N
        received_N = torch.empty_like(sent_N)
        with self._waiting("in a sync"):
            self._group.alltoall_base(received_N, sent_N, [], []).wait()
            pieces_KP = received_N.view(self.count, size)
            total_P = pieces_KP[0].clone()
            for piece_P in pieces_KP[1:]:
                total_P += piece_P
            self._group._allgather_base(sent_N, total_P / self.count).wait()
        return sent_N[: len(values_N)]

    def first(self, values_N: Tensor) -> Tensor:
        """The first replica's `values_N`, on all."""
        if self.count > 1:
            with self._waiting("at the start"):
                self._group.broadcast(values_N, 0).wait()
        return values_N

    def part(self) -> None:
        """Leave, the first one last: it keeps the store that the others still read."""
        if self.count > 1:
            self.gathered("finished")
            with self._waiting("at the end"):
                self._store.set(f"gone/{self.replica}", "")
                if self.replica == 0:
                    self._store.wait([f"gone/{k}" for k in range(self.count)])

    @contextmanager
    def _waiting(self, where: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # torch.distributed raises nothing more precise for a lost or late peer
            why = " ".join(str(error).split())[:200]
            raise OutsideFailure(
                f"replica {self.replica} of {self.count} lost another one or waited {self._timeout:g} s for it {where}:"
                f" {why}; the same command on all replicas goes on from their last common checkpoint"
            ) from error
