# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch in the collectives that move parts, and in scans (``make test-extras``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import collectives as cl

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def pair() -> Iterator[list[cl.Communicator]]:
    comms = cl.local(2, timeout=20)
    yield comms
    for comm in comms:
        comm.close()


def test_tensors_give_tensors(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        x = torch.tensor([[1.0, 2.0]] * (comm.rank + 1))
        found = [
            comm.gatherv(x, root=1),
            comm.allgatherv(x),
            comm.alltoallv(x, torch.tensor([comm.rank, 1])),
            comm.reduce_scatterv(torch.arange(3), [1, 2]),
            comm.scatterv(x if comm.rank == 1 else x[:1].clone(), [1, 1], root=1),
        ]
        assert all(f is None or type(f) is torch.Tensor for f in found)
        assert x.tolist() == [[1, 2]] * (comm.rank + 1)
        return [None if f is None else f.tolist() for f in found]

    row = [1, 2]
    assert threads(pair, work) == [
        [None, [row] * 3, [row], [0], [row]],
        [[row] * 3, [row] * 3, [row] * 2, [2, 4], [row]],
    ]


def test_tensors_are_changed_in_place(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        x, y, part = torch.arange(2) + comm.rank, torch.arange(4).reshape(2, 2), torch.zeros(2, 1)
        assert comm.scan(x) is x
        assert comm.alltoall(y.t()) is not None
        assert comm.scatter(torch.ones(4, 1) if comm.rank == 0 else part) is not None
        before = part._version
        assert comm.scatter(torch.ones(4, 1) if comm.rank == 0 else None, part) is part
        assert part._version > before
        return x.tolist(), y.tolist(), part.tolist()

    assert threads(pair, work) == [
        ([0, 1], [[0, 0], [2, 2]], [[1], [1]]),
        ([1, 3], [[1, 1], [3, 3]], [[1], [1]]),
    ]


def test_out_must_be_a_tensor_on_the_cpu(torch: Any, pair: Any) -> None:
    with pytest.raises(cl.UnsupportedError, match="gatherv: out is a tensor on meta"):
        pair[0].gatherv(torch.ones(2), None, torch.ones(4, device="meta"))
    with pytest.raises(cl.UnsupportedError, match="scatter: out is a tensor on meta"):
        pair[0].scatter(None, torch.ones(4, device="meta"), root=1)
    assert pair[0].sequence == 0
