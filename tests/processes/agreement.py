# SPDX-License-Identifier: Apache-2.0
"""Ranks run random calls while their tables change: the choices of all must be one choice.

Ranks that chose differently get a MismatchError, or what comes out is wrong.
"""

from __future__ import annotations

import random
from contextlib import ExitStack

import numpy as np

import collectives as cl
from collectives.tuning.candidates import candidates
from collectives.tuning.machine import fingerprint
from collectives.tuning.table import RULE, Choice, TunedTable

KINDS = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "alltoall", "barrier")
LONGEST = 18  # of a vector: 2 to the power of so many bytes
_TABLES = 400  # calls with one table, more or less


def random_calls(number: str, seed: str) -> dict[str, int]:
    """Make so many calls; return how many results were wrong, and how many tables chose."""
    draw = random.Random(int(seed))
    wrong = tables = 0
    with cl.init(timeout=60) as comm:
        machine = fingerprint(comm)
        done = 0
        while done < int(number):
            with ExitStack() as until_the_next:
                tables += _change(comm, draw, machine, until_the_next, first=done == 0)
                for _ in range(min(draw.randint(1, 2 * _TABLES), int(number) - done)):
                    wrong += not _right(comm, draw)
                    done += 1
    return {"calls": done, "wrong": wrong, "tables": tables}


def _change(
    comm: cl.Communicator, draw: random.Random, machine: str, block: ExitStack, first: bool
) -> int:
    """Let a random table choose, or the rules, or a wish for the length of the block.

    The first is a table: a short run may make no other change.
    """
    how = 1.0 if first else draw.random()
    if how < 0.2:
        comm.use_table(None)
        return 0
    if how < 0.3:
        block.enter_context(comm.force(allreduce="ring", broadcast="binomial"))
        return 0
    comm.use_table(TunedTable(comm.size, machine, "", tuple(_lines(comm.size, draw))))
    return 1


def _lines(p: int, draw: random.Random) -> list[Choice]:
    """Return random choices, which change at random lengths."""
    lines: list[Choice] = []
    for kind in KINDS:
        for far in (False, True):
            if p > 2 and far:  # one plan wherever the cores are
                lines += [
                    Choice(c.kind, c.nbytes, c.algorithm, c.mode, c.lag, c.tile_bytes, True)
                    for c in lines
                    if c.kind == kind and not c.far
                ]
                continue
            begins = sorted({0, *(int(2 ** draw.uniform(0, LONGEST)) for _ in range(4))})
            for begin in begins:
                one = draw.choice(candidates(kind, p, max(begin, 1), True))
                name = RULE if draw.random() < 0.1 else one.algorithm
                lines.append(Choice(kind, begin, name, one.mode, one.lag, one.tile_bytes, far))
    return lines


def _right(comm: cl.Communicator, draw: random.Random) -> bool:
    """Make a random call; tell whether its result is right."""
    kind = draw.choice(KINDS)
    count = int(2 ** draw.uniform(0, LONGEST - 3 if draw.random() < 0.1 else 8))
    count = -(-count // comm.size) * comm.size
    root, value = draw.randrange(comm.size), draw.randrange(1000)
    p, own = comm.size, np.full(count, value + comm.rank)
    total = p * value + p * (p - 1) // 2
    part = count // p
    match kind:
        case "barrier":
            comm.barrier()
            return True
        case "allreduce":
            return bool((comm.allreduce(own) == total).all())
        case "reduce":
            result = comm.reduce(own, root=root)
            return comm.rank != root or bool(np.all(result == total))
        case "broadcast":
            return bool((comm.broadcast(own, root=root) == value + root).all())
        case "reduce_scatter":
            return bool((comm.reduce_scatter(own) == total).all())
        case "allgather":
            got = comm.allgather(own[:part])
            return bool((got.reshape(p, -1) == value + np.arange(p)[:, None]).all())
    got = comm.alltoall(own)
    return bool((got.reshape(p, -1) == value + np.arange(p)[:, None]).all())
