# SPDX-License-Identifier: Apache-2.0
"""What every rank of a test of groups does, as a thread or as a process.

Each check returns what was wrong, in words.
"""

from __future__ import annotations

from typing import cast

import numpy as np

import collectives as cl


def members(comm: cl.Communicator, world: int) -> list[int]:
    """Gather the number of each rank of a group in the world."""
    return [int(rank) for rank in comm.allgather(np.array([world]))]


def splits(comm: cl.Communicator) -> list[str]:
    """Every rank is in the group of its color, at the place of its key."""
    wrong = []
    ranks = range(comm.size)
    for colors, keys in (
        ([0] * comm.size, [-r for r in ranks]),
        ([r % 3 for r in ranks], [0] * comm.size),
        ([r // 2 for r in ranks], [r % 2 for r in ranks]),
        ([None if r == 1 else 2**62 for r in ranks], list(ranks)),
    ):
        color = colors[comm.rank]
        group = comm.split(color, keys[comm.rank])
        expected = sorted((r for r in ranks if colors[r] == color), key=lambda r: keys[r])
        if color is None:
            wrong += [] if group is None else ["a rank without a color is in a group"]
            continue
        with cast(cl.Communicator, group) as made:
            found = members(made, comm.rank)
            place = expected.index(comm.rank)
            if (found, made.rank, made.size) != (expected, place, len(expected)):
                wrong.append(f"{made} of {found} instead of {expected}")
    return wrong


def subgroups(comm: cl.Communicator) -> list[str]:
    """A subgroup has the order of its list."""
    wrong = []
    ranks = list(range(comm.size))
    for chosen in (ranks, ranks[::-1], ranks[::2], ranks[-1:], [], np.arange(comm.size)):
        group = comm.subgroup(cast(list[int], chosen))
        found = None if group is None else members(group, comm.rank)
        expected = list(chosen) if comm.rank in chosen else None
        wrong += [] if found == expected else [f"{found} instead of {expected}"]
    return wrong


def halves(comm: cl.Communicator) -> list[str]:
    """Groups of groups, until each rank is alone, and all of them work on."""
    wrong, group, depth = [], comm.dup(), 0
    nested = [group]
    while group.size > 1:
        lower = group.rank < group.size // 2
        group = cast(cl.Communicator, group.split(int(lower), -group.rank))
        nested.append(group)
        depth += 1
    for group in [*nested[::-1], *nested]:
        x = group.allreduce(np.full(1000, 1.0))
        wrong += [] if np.all(x == group.size) else [f"{group}: {x[0]}"]
    return wrong


def meshes(comm: cl.Communicator) -> list[str]:
    """Sums along each axis of every mesh of so many ranks are those of NumPy."""
    wrong = []
    p = comm.size
    for shape in [(p,), (1, p), *((d, p // d) for d in range(2, p) if p % d == 0), (2, 2, 2)]:
        if np.prod(shape) != p:
            continue
        values = np.random.default_rng(p).integers(0, 100, (*shape, 7)).astype(float)
        names = ("x", "y", "z")[: len(shape)]
        with comm.mesh(shape, names) as mesh:
            place = mesh.coordinates
            if place != tuple(int(i) for i in np.unravel_index(comm.rank, shape)):
                wrong.append(f"{mesh}: rank {comm.rank} is at {place}")
            for axis, name in enumerate(names):
                found = mesh[name].allreduce(values[place].copy())
                expected = values.sum(axis=axis, keepdims=True)
                expected = np.broadcast_to(expected, values.shape)[place]
                wrong += [] if np.array_equal(found, expected) else [f"{mesh} along {name}"]
    return wrong


def orders(comm: cl.Communicator) -> list[str]:
    """Calls on groups and on the group that they came from, in an order of each rank's own."""
    pairs = cast(cl.Communicator, comm.split(comm.rank // 2))
    stripes = cast(cl.Communicator, comm.split(comm.rank % 2))
    wrong = []
    for i in range(12):
        found = {}
        # The ranks of a stripe agree, those of a pair do not.
        for group in (pairs, stripes) if (i + comm.rank) % 2 else (stripes, pairs):
            found[group] = float(group.allreduce(np.array([comm.rank], float))[0])
            if i % 3 == 0 and group is pairs:
                group.barrier()
        whole = int(comm.allreduce(np.array([i]))[0]) if i % 4 == 0 else i * comm.size
        expected = sum(r for r in range(comm.size) if r // 2 == comm.rank // 2)
        wrong += [] if found[pairs] == expected else [f"pairs: {found[pairs]}"]
        expected = sum(range(comm.rank % 2, comm.size, 2))
        wrong += [] if found[stripes] == expected else [f"stripes: {found[stripes]}"]
        wrong += [] if whole == i * comm.size else [f"whole: {whole}"]
    return wrong


ALL = (splits, subgroups, halves, meshes, orders)
