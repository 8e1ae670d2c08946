# SPDX-License-Identifier: Apache-2.0
"""Between machines a rank can send and be done before anybody hears it: close() compares calls."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_wired_ranks

Call = Callable[[cl.Communicator], object]


def x(comm: cl.Communicator) -> np.ndarray:
    return np.arange(4.0) + comm.rank


CALLS: dict[str, Call] = {
    "broadcast of 0": lambda comm: comm.broadcast(x(comm), root=0),
    "broadcast of 1": lambda comm: comm.broadcast(x(comm), root=1),
    "float32": lambda comm: comm.broadcast(x(comm).astype("f4"), root=0),
    "reduce": lambda comm: comm.reduce(x(comm), root=0),
    "reduce to 1": lambda comm: comm.reduce(x(comm), root=1),
    "max": lambda comm: comm.reduce(x(comm), root=0, op="max"),
    "gather": lambda comm: comm.gather(x(comm), root=0),
    "scan": lambda comm: comm.scan(x(comm)),
    "exscan": lambda comm: comm.exscan(x(comm)),
}
PAIRS = [
    ("broadcast of 0", "broadcast of 1"),
    ("broadcast of 0", "float32"),
    ("broadcast of 0", "reduce"),
    ("reduce to 1", "reduce"),
    ("reduce", "max"),
    ("broadcast of 0", "gather"),
    ("broadcast of 0", "scan"),
    ("scan", "exscan"),
    ("exscan", "reduce"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("apart", [0.0, 0.3])
def test_every_pair_of_calls_that_differ_is_told(first: str, second: str, apart: float) -> None:
    def body(comm: cl.Communicator) -> str:
        comm.barrier()
        try:
            CALLS[second if comm.rank else first](comm)
            time.sleep(0.1 + apart * comm.rank)
            comm.close()
        except cl.MismatchError as error:
            return str(error)
        return ""

    told = on_wired_ranks(2, body)
    # Who has left long before the other closes cannot be told any more.
    assert "rank 1 calls" in told[1] or "makes another call" in told[1]
    assert apart or told[0]


def test_a_peer_that_stays_holds_nobody_up() -> None:
    def body(comm: cl.Communicator) -> None:
        comm.barrier()
        begin = time.perf_counter()
        if comm.rank == 0:
            comm.close()
            assert time.perf_counter() - begin < 5
        else:
            time.sleep(0.5)

    on_wired_ranks(3, body)
