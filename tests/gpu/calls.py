# SPDX-License-Identifier: Apache-2.0
"""One collective on arrays of a GPU, out of place, beside what NumPy makes of the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import collectives as cl
from bench.gpu.arrays import GpuArray, GpuMemory
from bench.gpu.team import Team
from tests.oracle import Array, contribution, differs, gathered, reduction

Room = list[tuple[GpuMemory, GpuMemory]]  # of each rank: for what goes in, for what comes out
WHOLE = ("reduce_scatter", "alltoall")  # every rank passes a part for each


@dataclass(frozen=True)
class Kind:
    """What a call is, beside its algorithm; ``count``: of a part, where there are parts."""

    kind: str
    count: int
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    offset: int = 0  # bytes before each array, in its memory


def on_all(team: Team, room: Room, call: Kind, **options: Any) -> list[str]:
    """Make a call on all ranks; return what is wrong, of each on which something is."""
    return [found for found in team.run(lambda comm: wrong(comm, room, call, **options)) if found]


def errors(team: Team, room: Room, call: Kind, **options: Any) -> list[BaseException | None]:
    """Make a call on all ranks; return what each raised."""
    return team.outcomes(lambda comm: wrong(comm, room, call, **options))


def wrong(comm: cl.Communicator, room: Room, call: Kind, **options: Any) -> str | None:
    """Make a call on this rank; say what is wrong with its result, or None."""
    sent, wanted = _values(comm.rank, comm.size, call)
    source, target = room[comm.rank]
    x = None if sent is None else GpuArray.of(source, sent, call.offset)
    out = None
    if wanted is not None:
        out = GpuArray(target, wanted.size, wanted.dtype, call.offset)
        out.poison()
        out.memory.yard.synchronize()
    _run(comm, call, x, out, options)
    found = None
    if out is not None and wanted is not None:
        found = differs(out.host(), wanted, call.op)
    if found is None and x is not None and sent is not None and call.kind != "broadcast":
        found = differs(x.host(), sent)
    return None if found is None else f"rank {comm.rank}: {found}"


def _values(rank: int, p: int, call: Kind) -> tuple[Array | None, Array | None]:
    """Return what this rank passes, and what it is to get; None: nothing."""
    kind, dtype, op, n = call.kind, call.dtype, call.op, call.count
    mine = slice(rank * n, (rank + 1) * n)
    own = contribution(dtype, op, rank, p, n * p if kind in WHOLE else n)
    if kind in ("allreduce", "reduce"):
        wanted = reduction(dtype, op, p, n)
        return own, wanted if kind == "allreduce" or rank == call.root else None
    if kind == "reduce_scatter":
        return own, reduction(dtype, op, p, n * p)[mine]
    if kind == "scan":
        return own, reduction(dtype, op, rank + 1, n)
    if kind in ("allgather", "gather"):
        return own, gathered(dtype, p, n) if kind == "allgather" or rank == call.root else None
    if kind == "alltoall":
        return own, _exchanged(dtype, op, mine, p, n)
    whole = contribution(dtype, op, call.root, p, n * p if kind == "scatter" else n)
    if kind == "scatter":
        return whole if rank == call.root else None, whole[mine]
    return None, whole  # broadcast: in place, in the array that comes out


def _exchanged(dtype: str, op: str, mine: slice, p: int, n: int) -> Array:
    return np.concatenate([contribution(dtype, op, r, p, n * p)[mine] for r in range(p)])


def _run(
    comm: cl.Communicator, call: Kind, x: GpuArray | None, out: GpuArray | None, options: Any
) -> None:
    kind, root = call.kind, call.root
    if kind == "broadcast":
        assert out is not None
        if comm.rank == root:
            sent = contribution(call.dtype, call.op, root, comm.size, call.count)
            out.memory.yard.write(out.address, sent)
        comm.broadcast(out, root, **options)
    elif kind == "scatter":
        if comm.rank == root:
            comm.scatter(x, out, root=root, **options)
        else:
            comm.scatter(out, root=root, **options)
    elif kind in ("reduce", "gather"):
        extra = {"op": call.op} if kind == "reduce" else {}
        getattr(comm, kind)(x, out, root=root, **extra, **options)
    else:
        extra = {} if kind in ("allgather", "alltoall") else {"op": call.op}
        getattr(comm, kind)(x, out, **extra, **options)
