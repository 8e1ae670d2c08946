# SPDX-License-Identifier: Apache-2.0
"""Draws calls by lot: the same on all ranks, which share the seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

import collectives as cl
from tests.soak.oracle import DTYPES, dtype_of, ops_of
from tests.soak.together import Together, together

MOST_BYTES = 4 << 20

FOLDING = ("allreduce", "reduce_scatter", "reduce_scatterv", "reduce", "scan", "exscan")
MOVING = (
    "broadcast",
    "allgather",
    "allgatherv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "alltoall",
    "alltoallv",
    "sendrecv",
)
ROOTED = ("reduce", "broadcast", "gather", "gatherv", "scatter", "scatterv")
WIDER = dict.fromkeys(
    ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32"), ("float32", "float64")
) | {"complex64": ("complex128",)}
UNEQUAL = ("allgatherv", "gatherv", "scatterv", "reduce_scatterv")


@dataclass(frozen=True)
class Call:
    """One collective; ``count`` is elements of the whole vector, or of a part."""

    number: int
    group: int  # index of the communicator among those of a rank
    kind: str
    dtype: str
    op: str
    count: int
    counts: tuple[int, ...]  # unequal parts; alltoallv: by sender and receiver
    root: int
    algorithm: str | None
    accumulate: str | None
    in_place: bool
    later: bool  # async_op
    start: int  # of the values in their period


def kind_of(name: str) -> str:
    """Return the collective of which the form for unequal parts is one."""
    return name if name == "sendrecv" else name.removesuffix("v")


@cache
def algorithms(kind: str, ranks: int) -> list[str | None]:
    """Return the names that ``algorithm=`` may have; None leaves the choice to the library."""
    if kind == "sendrecv":
        return [None]
    fitting = [a.name for a in cl.algorithms(kind) if a.fits(ranks)]
    return [None, None, *fitting]


def calls(seed: int, sizes: list[int], number: int) -> list[Call | Together]:
    """Draw ``number`` calls, or blocks of calls, on groups of these sizes."""
    random = Random(seed)
    return [
        (together if random.random() < 0.05 else _call)(random, sizes, i) for i in range(number)
    ]


def _call(random: Random, sizes: list[int], number: int) -> Call:
    group = random.randrange(len(sizes))
    p = sizes[group]
    kind = random.choice(FOLDING if random.random() < 0.5 else MOVING)
    if random.random() < 0.02:
        kind = "barrier"
    dtype = random.choice(DTYPES)
    ops = [op for op in ops_of(dtype) if op != "avg" or kind not in ("scan", "exscan")]
    nbytes = int(2 ** random.uniform(0, MOST_BYTES.bit_length() - 1)) - 1
    elements = nbytes // dtype_of(dtype).itemsize
    counts: tuple[int, ...] = ()
    if kind in UNEQUAL:
        counts = tuple(random.randint(0, 2 * elements // p) for _ in range(p))
    elif kind == "alltoallv":
        counts = tuple(random.randint(0, 2 * elements // (p * p)) for _ in range(p * p))
    names = algorithms("barrier" if kind == "barrier" else kind_of(kind), p)
    algorithm = random.choice(names)
    if kind == "alltoallv" and algorithm == "bruck":
        algorithm = None  # blocks that pass through other ranks are of one size
    return Call(
        number=number,
        group=group,
        kind=kind,
        dtype=dtype,
        op=random.choice(ops),
        count=elements,
        counts=counts,
        root=random.randrange(p),
        algorithm=algorithm,
        accumulate=random.choice((None, *WIDER.get(dtype, ()))) if kind in FOLDING else None,
        in_place=random.random() < 0.5,
        later=random.random() < 0.1,
        start=random.randrange(1000),
    )
