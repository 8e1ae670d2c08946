# SPDX-License-Identifier: Apache-2.0
"""Makes the drawn calls on one rank, and holds every result to the oracle."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

import collectives as cl
from tests.soak.draw import FOLDING, Call
from tests.soak.oracle import Vector, dtype_of, fold, rows, same, vector
from tests.soak.together import Block, Together

MOST_IN_FLIGHT = 4


class Player:
    """One rank: its groups, and what is in flight."""

    def __init__(self, groups: list[cl.Communicator | None]) -> None:
        self.groups = groups
        self.flying: list[Callable[[], None]] = []

    def play(self, call: Call | Together) -> None:
        """Make one call, if this rank is in its group; AssertionError where the result is wrong."""
        comm = self.groups[call.group]
        if comm is None:
            return
        if isinstance(call, Together):
            self._fly(Block(call, comm).make())
            return
        turn = Turn(call, comm)
        result = turn.make()
        if not call.later:
            turn.judge(result)
            return
        self._fly(lambda: turn.judge(result.wait()))

    def _fly(self, judge: Callable[[], None]) -> None:
        self.flying.append(judge)
        while len(self.flying) > MOST_IN_FLIGHT:
            self.flying.pop(0)()

    def finish(self) -> None:
        """Wait for what is in flight."""
        while self.flying:
            self.flying.pop(0)()


class Turn:
    """One call on one rank: what goes in, and what must come out."""

    def __init__(self, call: Call, comm: cl.Communicator) -> None:
        self.call, self.comm = call, comm
        self.rank, self.p = comm.rank, comm.size
        self.rows = rows(call.dtype, call.op, self.p)
        self.options: dict[str, Any] = {"algorithm": call.algorithm, "async_op": call.later}
        if call.accumulate is not None:
            self.options["accumulate"] = call.accumulate

    def make(self) -> Any:
        """Begin the call and return what it returns."""
        return getattr(self, f"_{self.call.kind}")()

    def judge(self, result: Any) -> None:
        """Compare the result with the oracle's."""
        wanted = self.wanted
        op = self.call.op if self.call.kind in FOLDING else None
        right = result is None if wanted is None else same(result, wanted, op)
        if not right:
            raise AssertionError(f"rank {self.rank} of {self.p}: {self.call}: wrong result")

    def _of(self, rank: int, start: int, length: int) -> Vector:
        """A stretch of a rank's endless vector."""
        return vector(self.rows[rank], self.call.start + start, length)

    def _folded(self, first: int, last: int, start: int, length: int) -> Vector:
        period = fold(self.rows[first:last], self.call.op)
        return vector(period, self.call.start + start, length)

    def _parts(self) -> list[int]:
        """Where every rank's part of the vector begins, and where the last one ends."""
        lengths = self.call.counts or (self.call.count // self.p,) * self.p
        return [0, *accumulate(lengths)]

    def _empty(self, length: int) -> Vector:
        return np.empty(length, dtype_of(self.call.dtype))

    def _whole(self, name: str, last: int, **more: Any) -> Any:
        x = self._of(self.rank, 0, self.call.count)
        self.wanted: Vector | None = self._folded(0, last, 0, self.call.count) if last else x.copy()
        out = None if self.call.in_place else self._empty(len(x))
        if out is not None and not last:
            out[...] = x
        return getattr(self.comm, name)(x, out, op=self.call.op, **more, **self.options)

    def _allreduce(self) -> Any:
        return self._whole("allreduce", self.p)

    def _scan(self) -> Any:
        return self._whole("scan", self.rank + 1)

    def _exscan(self) -> Any:
        return self._whole("exscan", self.rank)

    def _reduce(self) -> Any:
        result = self._whole("reduce", self.p, root=self.call.root)
        if self.rank != self.call.root:
            self.wanted = None
        return result

    def _reduce_scatter(self) -> Any:
        begin = self._parts()
        x = self._of(self.rank, 0, begin[-1])
        length = begin[self.rank + 1] - begin[self.rank]
        self.wanted = self._folded(0, self.p, begin[self.rank], length)
        return self.comm.reduce_scatter(x, op=self.call.op, **self.options)

    def _reduce_scatterv(self) -> Any:
        begin = self._parts()
        x = self._of(self.rank, 0, begin[-1])
        length = self.call.counts[self.rank]
        self.wanted = self._folded(0, self.p, begin[self.rank], length)
        return self.comm.reduce_scatterv(x, self.call.counts, op=self.call.op, **self.options)

    def _broadcast(self) -> Any:
        root, n = self.call.root, self.call.count
        self.wanted = self._of(root, 0, n)
        x = self.wanted.copy() if self.rank == root else self._empty(n)
        return self.comm.broadcast(x, root, **self.options)

    def _own_and_all(self) -> tuple[Vector, Vector]:
        begin = self._parts()
        parts = [self._of(r, begin[r], begin[r + 1] - begin[r]) for r in range(self.p)]
        return parts[self.rank], np.concatenate(parts)

    def _allgather(self) -> Any:
        x, self.wanted = self._own_and_all()
        return self.comm.allgather(x, **self.options)

    def _allgatherv(self) -> Any:
        x, self.wanted = self._own_and_all()
        counts = self.call.counts if self.call.in_place else None
        return self.comm.allgatherv(x, counts, **self.options)

    def _gather(self) -> Any:
        x, everything = self._own_and_all()
        self.wanted = everything if self.rank == self.call.root else None
        return self.comm.gather(x, root=self.call.root, **self.options)

    def _gatherv(self) -> Any:
        x, everything = self._own_and_all()
        self.wanted = everything if self.rank == self.call.root else None
        counts = self.call.counts if self.call.in_place else None
        return self.comm.gatherv(x, counts, root=self.call.root, **self.options)

    def _scattered(self) -> tuple[Vector | None, Vector]:
        begin = self._parts()
        length = begin[self.rank + 1] - begin[self.rank]
        self.wanted = self._of(self.call.root, begin[self.rank], length)
        whole = self._of(self.call.root, 0, begin[-1])
        return (whole if self.rank == self.call.root else None), self._empty(length)

    def _scatter(self) -> Any:
        x, out = self._scattered()
        return self.comm.scatter(x, out, root=self.call.root, **self.options)

    def _scatterv(self) -> Any:
        x, out = self._scattered()
        return self.comm.scatterv(x, self.call.counts, out, root=self.call.root, **self.options)

    def _block(self, source: int, target: int) -> Vector:
        """What one rank has for another."""
        p = self.p
        length = (
            self.call.counts[source * p + target]
            if self.call.counts
            else (self.call.count // (p * p))
        )
        return self._of(source, 13 * target, length)

    def _blocks(self) -> tuple[Vector, Vector]:
        ranks = range(self.p)
        sent = np.concatenate([self._block(self.rank, peer) for peer in ranks])
        return sent, np.concatenate([self._block(peer, self.rank) for peer in ranks])

    def _alltoall(self) -> Any:
        x, self.wanted = self._blocks()
        return self.comm.alltoall(
            x, None if self.call.in_place else self._empty(len(x)), **self.options
        )

    def _alltoallv(self) -> Any:
        x, self.wanted = self._blocks()
        row = self.call.counts[self.rank * self.p : (self.rank + 1) * self.p]
        return self.comm.alltoallv(x, row, **self.options)

    def _sendrecv(self) -> Any:
        ahead, behind = (self.rank + 1) % self.p, (self.rank - 1) % self.p
        x = self._of(self.rank, 0, self.call.count)
        self.wanted = self._of(behind, 0, self.call.count)
        out = self._empty(self.call.count)
        self.comm.sendrecv(x, ahead, out, behind, self.call.number, self.call.number)
        if not self.call.later:
            return out
        return _Done(out)

    def _barrier(self) -> Any:
        self.wanted = None
        return self.comm.barrier(**self.options)


class _Done:
    """What has a wait() although it is done."""

    def __init__(self, value: Vector) -> None:
        self.value = value

    def wait(self) -> Vector:
        return self.value
