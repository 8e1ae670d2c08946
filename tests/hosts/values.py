# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.hosts.test_collectives` do; each returns what was wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import collectives as cl
from tests import groups as together
from tests import sweep
from tests.canonical import canonical_fold, operands
from tests.oracle import contribution, differs, reduction
from tests.processes import messages as sent
from tests.python.graphs import dgx1

LENGTHS = 100_000  # elements: many messages
LONG = 1 << 20  # elements: more than kernels hold of a connection
AHEAD = 40  # calls in a row, with one rank late at each


def everything(comm: cl.Communicator) -> dict[str, list[str]]:
    """Run the sweeps that ranks of one machine run too."""
    checks = (sweep.dtypes, sweep.places, sweep.parts, sweep.shapes)
    found = {check.__name__: check(comm) for check in checks}
    return found | {"counts": counts(comm), "later": later(comm), "in a row": in_a_row(comm)}


def counts(comm: cl.Communicator) -> list[str]:
    """Every kind with few and with many elements, chosen by itself, of every root."""
    wrong = []
    p = comm.size
    for kind in (*sweep.FOLDS, *sweep.SCANS, *sweep.MOVES, "barrier"):
        for count in (0, 1, p - 1, LENGTHS // p if kind in sweep.SPLIT else LENGTHS):
            for root in range(p if kind in sweep.ROOTED else 1):
                found = sweep.once(comm, kind, count, root=root)
                wrong += [f"{kind} n={count} root={root}: {found}"] if found else []
    return wrong


def algorithms(comm: cl.Communicator) -> list[str]:
    """Every algorithm by its name."""
    return sweep.algorithms(comm, (None,))


def packed(comm: cl.Communicator) -> list[str]:
    """Trees that are packed into the links of some GPUs of a DGX-1."""
    wrong = []
    for kind in ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter"):
        cl.pack(dgx1(*range(comm.size)), kind=kind)
        for count in (0, 3, LENGTHS):
            for root in (0, comm.size - 1) if kind in sweep.ROOTED else (0,):
                found = sweep.once(comm, kind, count, root=root, algorithm="pack")
                wrong += [f"{kind} n={count} root={root}: {found}"] if found else []
    return wrong


def later(comm: cl.Communicator) -> list[str]:
    """Calls that are waited for later, in another order, and in a group."""
    p, rank = comm.size, comm.rank
    xs = [contribution("float32", "sum", rank, p, n) for n in (1, 1000, LENGTHS, 0, 77)]
    handles = [comm.allreduce(x, async_op=True) for x in xs]
    wrong = []
    for handle, x in reversed(list(zip(handles, xs, strict=True))):
        wrong.append(differs(handle.wait(), reduction("float32", "sum", p, len(x))))
    with comm.group():
        sums = [comm.allreduce(np.full(n, rank + 1)) for n in (1, 9, 300)]
    wrong += [differs(s, np.full(len(s), p * (p + 1) // 2)) for s in sums]
    return [found for found in wrong if found]


def in_a_row(comm: cl.Communicator) -> list[str]:
    """Different calls one after another, no barrier between: fast ranks run ahead of slow ones."""
    wrong = []
    for number in range(AHEAD):
        if number % comm.size == comm.rank:
            np.linalg.norm(np.ones((100, 100)))  # this rank comes late
        kind = ("broadcast", "reduce", "scatter", "gather", "scan", "allreduce")[number % 6]
        found = sweep.once(comm, kind, 1 + 500 * (number % 5), root=number % comm.size)
        wrong += [f"call {number}, {kind}: {found}"] if found else []
    return wrong


def reproducible(comm: cl.Communicator) -> list[str]:
    """Compare bits with the definition, by all algorithms, also with wider partial results."""
    return [*_canonical(comm), *_wider(comm)]


def _canonical(comm: cl.Communicator) -> Iterator[str]:
    p, rank = comm.size, comm.rank
    for kind in ("allreduce", "reduce_scatter", "reduce"):
        names = (None, *(a.name for a in cl.algorithms(kind) if a.fits(p)))
        for name in names:
            for dtype, n in (("float32", 8 * p), ("float64", 3000 * p), ("bfloat16", 70 * p)):
                rows = [operands(dtype, r, n) for r in range(p)]
                wanted = canonical_fold(rows, "sum")
                if kind == "reduce_scatter":
                    wanted = wanted.reshape(p, -1)[rank]
                options: dict[str, Any] = {"algorithm": name, "reproducible": True}
                call: Callable[..., Any] = getattr(comm, kind)
                try:
                    got = call(rows[rank].copy(), np.empty_like(wanted), **options)
                except cl.UnsupportedError:
                    break  # not canonical among so many ranks
                if got is not None and got.tobytes() != wanted.tobytes():
                    yield f"{kind} {name} {dtype} n={n}"


def _wider(comm: cl.Communicator) -> Iterator[str]:
    p, rank = comm.size, comm.rank
    for n in (5, 3000):
        rows = [operands("bfloat16", r, n) for r in range(p)]
        wide = np.sum([row.astype(np.float64) for row in rows], axis=0)
        got = comm.allreduce(rows[rank].copy(), accumulate="float32")
        if not np.allclose(got.astype(np.float64), wide, rtol=1 / 128, atol=1e-2):
            yield f"accumulate, n={n}"
        any_p = [operands("float32", r, n) for r in range(p)]
        got = comm.allreduce(any_p[rank].copy(), reproducible="any_p")
        again = comm.allreduce(any_p[rank].copy(), reproducible="any_p", algorithm="ring")
        if got.tobytes() != again.tobytes():
            yield f"any_p, n={n}"


def groups(comm: cl.Communicator) -> list[str]:
    """Form groups of every kind; check what is summed in them."""
    return [wrong for check in together.ALL for wrong in check(comm)]


def messages(comm: cl.Communicator) -> list[str]:
    """Send in every way, small and large, in any order, beside collectives and in groups."""
    found = []
    for way in (
        sent.ring,
        sent.any_source,
        sent.fan_in,
        sent.crossed,
        sent.with_collectives,
        sent.in_groups,
        sent.around_topology,
        _passed_on,
    ):
        found.append(way(comm))
        comm.barrier()  # nothing of the next one comes before
    return [wrong for wrong in found if wrong]


def _passed_on(comm: cl.Communicator) -> str:
    """Pass a long array on from rank to rank, while others wait at a barrier already."""
    x = np.arange(LONG) if comm.rank == 0 else np.zeros(LONG, int)
    if comm.rank > 0:
        comm.recv(x, comm.rank - 1, timeout=20)
    if comm.rank < comm.size - 1:
        comm.send(x, comm.rank + 1, timeout=20)
    comm.barrier()
    return "" if (x == np.arange(LONG)).all() else "a long message is wrong"


def by_model(comm: cl.Communicator) -> list[str]:
    """Run what the cost model says, on links that were measured and CPUs that all hosts share.

    What goes by a hierarchy of hosts stays so.
    """
    places = comm.topology(measure=False).places
    wrong: list[str | None] = [str(p) for p in places if p.machine != places[0].host]
    flat = len({place.host for place in places}) == comm.size
    table = comm.use_model(30.0)
    for nbytes in (8, 1 << 16):
        said, told = table.of("allreduce", nbytes), comm.explain("allreduce", nbytes)
        wanted = "predicted" if flat or nbytes == 8 else "rule"
        if told.source != wanted or (said is None) != (wanted == "rule"):
            wrong.append(f"{nbytes} bytes: {said}, {told}")
        if (told.predicted is None) != (wanted == "rule"):
            wrong.append(f"{nbytes} bytes, not predicted: {told}")
        x = comm.allreduce(np.full(nbytes // 8, float(comm.rank)))
        wrong.append(differs(x, np.full_like(x, sum(range(comm.size)))))
    return [found for found in wrong if found]


def persistent(comm: cl.Communicator) -> list[str]:
    """Begin prepared calls again and again, on arrays of comm.empty too, among other calls."""
    p, rank, wrong = comm.size, comm.rank, []
    x, large = comm.empty(5, np.float64), comm.empty(LENGTHS, np.int32)
    total = comm.persistent.allreduce(x)
    best = comm.persistent.allreduce(large, op="max", algorithm="ring")
    parts = comm.persistent.allgatherv(np.full(rank + 1, rank))
    meet = comm.persistent.barrier()
    for turn in range(10):
        x[:], large[:] = rank + turn, rank * turn
        total.start()
        total.wait()
        best()
        found = parts()
        meet()
        wrong.append(differs(x, np.full(5, p * turn + p * (p - 1) / 2)))
        wrong.append(differs(large, np.full(LENGTHS, (p - 1) * turn, np.int32)))
        wrong.append(differs(found, np.repeat(np.arange(p), np.arange(1, p + 1))))
        wrong.append(differs(comm.allreduce(np.ones(3)), np.full(3, float(p))))
    if comm.is_symmetric(x):
        wrong.append("other machines do not reach this memory")
    return [found for found in wrong if found]


def unsupported(comm: cl.Communicator) -> list[str]:
    """Ask for what there cannot be between machines; afterwards all goes on."""
    wrong = []
    try:
        comm.allreduce(np.ones(4), mode="pull")
        wrong.append("mode was not refused")
    except cl.UnsupportedError as error:
        if "several machines" not in str(error):
            wrong.append(f"mode: {error}")
    total = comm.allreduce(np.ones(1))[0]
    return wrong if total == comm.size else [*wrong, f"afterwards: {total}"]
