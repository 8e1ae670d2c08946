# SPDX-License-Identifier: Apache-2.0
"""What sparse algorithms send, headers included, is what their formulas say of the actual entries.

SparCML, SC'19: whole sums in recursive doubling; parts to their owners and the sums of these to all
in the others. Circulant: Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms",
2024.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import collectives as cl
from tests.python.ranks import last, on_ranks

N, P, PAIR, VALUE = 400_000, 4, 8, 4
HEAD = 48  # of a frame of the transport, more than any has
Places = npt.NDArray[np.int32]


def united(supports: Sequence[Places]) -> int:
    return int(np.unique(np.concatenate(supports)).size)


def within(support: Places, part: int) -> Places:
    low, high = part * N // P, (part + 1) * N // P
    return support[(support >= low) & (support < high)]


def recursive_double(supports: Sequence[Places]) -> int:
    sent = 0
    for distance in (1, 2):
        for rank in range(P):
            group = [r for r in range(P) if r // distance == rank // distance]
            sent += united([supports[r] for r in group]) * PAIR
    return sent


def split(supports: Sequence[Places]) -> int:
    return sum(
        within(supports[rank], part).size * PAIR
        for rank in range(P)
        for part in range(P)
        if part != rank
    )


def split_allgather(supports: Sequence[Places]) -> int:
    return split(supports) + (P - 1) * united(supports) * PAIR


def dense_allgather(supports: Sequence[Places]) -> int:
    return split(supports) + (P - 1) * N * VALUE


def allgather(supports: Sequence[Places]) -> int:
    return (P - 1) * sum(s.size for s in supports) * PAIR


def ring(supports: Sequence[Places]) -> int:
    sent = (P - 1) * united(supports) * PAIR
    for part in range(P):
        for vectors in range(1, P):  # a part's way begins behind its owner
            first = (part + 1) % P
            on_the_way = [within(supports[(first + i) % P], part) for i in range(vectors)]
            sent += united(on_the_way) * PAIR
    return sent


def circulant(supports: Sequence[Places]) -> int:
    """Of four ranks: two parts each go two ranks on, then one part, of two vectors, one rank on."""
    sent = (P - 1) * united(supports) * PAIR
    for part in range(P):
        own = [within(supports[(part - back) % P], part) for back in range(P)]
        sent += (own[2].size + own[3].size + united([own[1], own[3]])) * PAIR
    return sent


FORMULAS: dict[str, Callable[[Sequence[Places]], int]] = {
    "ssar_recursive_double": recursive_double,
    "ssar_split_allgather": split_allgather,
    "dsar_split_allgather": dense_allgather,
    "allgather": allgather,
    "ring": ring,
    "circulant": circulant,
}


@pytest.mark.parametrize("algorithm", FORMULAS)
@pytest.mark.parametrize("density", [0.001, 0.01, 0.05])
def test_bytes_are_those_of_the_formula(algorithm: str, density: float) -> None:
    rng = np.random.default_rng(7)
    entries = round(N * density)
    supports = [np.sort(rng.choice(N, entries, replace=False)).astype(np.int32) for _ in range(P)]

    def body(comm: cl.Communicator) -> Any:
        own = supports[comm.rank]
        comm.allreduce(
            cl.Sparse(own, np.ones(own.size, "float32"), N), algorithm=algorithm, coding="raw"
        )
        taken = last(comm)
        return taken.nbytes + HEAD * taken.messages

    sent = sum(on_ranks(P, body))
    formula = FORMULAS[algorithm](supports)
    assert formula <= sent <= 1.05 * formula
