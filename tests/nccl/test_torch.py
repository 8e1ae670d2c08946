# SPDX-License-Identifier: Apache-2.0
"""Tensors of the real torch, in memory of the host: `make test-extras`."""

from __future__ import annotations

from typing import Any

import pytest

from collectives import nccl
from collectives.errors import InvalidArgumentError
from tests.nccl.standin import Standin

pytestmark = pytest.mark.extras


@pytest.mark.parametrize(
    ("name", "code"),
    [("float32", 7), ("int64", 4), ("bfloat16", 9), ("float8_e4m3fn", 10), ("float8_e5m2", 11)],
)
def test_tensors(standin: Standin, comm: nccl.Communicator, name: str, code: int) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 3).to(getattr(torch, name))
    out = torch.zeros(2, 3).to(x.dtype)
    assert comm.allreduce(x, out) is out
    assert out.float().eq(1).all()
    assert standin.log() == [
        f"ncclAllReduce {x.data_ptr():#x} {out.data_ptr():#x} 6 dtype {code} op 0 root -1 rank 0 "
        "stream 0"
    ]
    comm.persistent.allgather(x, out)()
    assert f" 6 dtype {code} op -1 " in standin.log()[0]


def test_tensors_that_are_refused(comm: nccl.Communicator) -> None:
    torch = pytest.importorskip("torch")
    wrong: list[tuple[Any, str]] = [
        (torch.ones(4, 4).T[:2], r"one piece: pass x.contiguous\(\)"),
        (torch.ones(3, requires_grad=True), r"requires grad: pass x.detach\(\)"),
        (torch.ones(3).to_sparse(), r"pass x.to_dense\(\)"),
        (torch.ones(3, dtype=torch.complex64), "no arithmetic on complex64"),
        (torch.ones(3, device="meta"), "is a tensor on meta"),
    ]
    for x, said in wrong:
        with pytest.raises((InvalidArgumentError, NotImplementedError), match=said):
            comm.allreduce(x)
    with torch.no_grad():
        x = torch.ones(3, requires_grad=True)
        assert comm.allreduce(x) is x


def test_dtypes_and_factors_of_torch(standin: Standin, comm: nccl.Communicator) -> None:
    torch = pytest.importorskip("torch")
    with comm.pre_mul_sum(torch.tensor([0.25]), torch.float32) as op:
        assert comm.allreduce(torch.ones(2), torch.zeros(2), op=op).tolist() == [0.25, 0.25]
    with pytest.raises(InvalidArgumentError, match="factor has 2 elements of float32"):
        comm.pre_mul_sum(torch.ones(2), torch.float32)
