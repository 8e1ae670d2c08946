# SPDX-License-Identifier: Apache-2.0
"""Tensors of torch, where torch is installed (``make test-extras``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import arrays

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


@pytest.mark.parametrize("name", sorted(arrays.DTYPES.keys() - arrays.PAIRS.keys()))
def test_every_dtype_is_reduced_in_place(torch: Any, pair: Any, threads: Any, name: str) -> None:
    dtype = getattr(torch, name)

    def work(comm: cl.Communicator) -> Any:
        x = torch.arange(6).to(dtype).reshape(2, 3)
        assert comm.allreduce(x) is x
        assert x.dtype == dtype
        return x.to(torch.complex128).tolist()

    wanted = [[0, 1, 1], [1, 1, 1]] if name == "bool" else [[0, 2, 4], [6, 8, 10]]
    assert threads(pair, work) == [wanted] * 2


def test_sums_are_accumulated_in_a_wider_dtype(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        x = torch.full((4,), 256.0 if comm.rank else 1.0, dtype=torch.bfloat16)
        assert comm.allreduce(x, op="avg", accumulate=torch.float32) is x
        with pytest.raises(cl.InvalidArgumentError, match="accumulate 'int64' is unknown"):
            comm.allreduce(x, accumulate=torch.int64)
        return x.tolist()

    assert threads(pair, work) == [[128.0] * 4] * 2  # 128.5 is a tie


def test_conjugated_views_are_read_and_written_right(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        whole = torch.tensor([1 + 2j, 3 - 1j])
        x = whole.conj()
        assert x.is_conj()
        assert comm.allreduce(x) is x
        return x.tolist(), whole.tolist()

    assert threads(pair, work) == [([2 - 4j, 6 + 2j], [2 + 4j, 6 - 2j])] * 2


def test_results_are_tensors(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        x = torch.full((2, 3), float(comm.rank), dtype=torch.bfloat16)
        gathered, part = comm.allgather(x), comm.reduce_scatter(x)
        assert gathered.dtype == part.dtype == torch.bfloat16
        out = torch.empty(2, 2, 3, dtype=torch.bfloat16)
        assert comm.allgather(x, out) is out
        parts = comm.allgatherv(x[: comm.rank + 1], [1, 2])
        assert comm.broadcast(x, root=1) is x
        return [tuple(t.shape) for t in (gathered, part, parts)], out.flatten().tolist(), x.sum()

    shapes = [(4, 3), (1, 3), (3, 3)]
    assert threads(pair, work) == [(shapes, [0.0] * 6 + [1.0] * 6, 6.0)] * 2


def test_strided_tensors_are_packed_and_written_back(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        whole = torch.arange(6.0).reshape(2, 3)
        column = whole[:, 1]
        assert comm.allreduce(column) is column
        transposed = comm.allreduce(torch.arange(6.0).reshape(2, 3).t())
        return whole.tolist(), transposed.tolist()

    whole, transposed = [[0, 2, 2], [3, 8, 5]], [[0, 6], [2, 8], [4, 10]]
    assert threads(pair, work) == [(whole, transposed)] * 2


def test_negated_views_are_read_right(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        x = torch.complex(torch.ones(1), torch.ones(1)).conj().imag
        assert x.is_neg()
        return comm.allreduce(x).tolist()

    assert threads(pair, work) == [[-2.0]] * 2


def test_tensors_and_arrays_may_be_mixed(torch: Any, pair: Any, threads: Any) -> None:
    def work(comm: cl.Communicator) -> Any:
        x = torch.ones(3) if comm.rank else np.ones(3, np.float32)
        return comm.allreduce(x).tolist()

    assert threads(pair, work) == [[2, 2, 2]] * 2


def test_autograd_notices_that_a_tensor_was_written(torch: Any) -> None:
    comm = cl.local(1)[0]
    for x in (torch.ones(3), torch.ones(6)[::2]):
        weight = torch.ones(3, requires_grad=True)
        loss = (x * weight).sum()
        comm.allreduce(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    with torch.inference_mode():
        assert comm.allreduce(torch.ones(3)).tolist() == [1, 1, 1]


def test_tensors_that_require_grad_need_no_grad(torch: Any) -> None:
    comm = cl.local(1)[0]
    x = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(cl.InvalidArgumentError, match=r"requires grad.*x\.detach\(\)"):
        comm.allreduce(x)
    with torch.no_grad():
        assert comm.allreduce(x) is x
    assert comm.allreduce(x.detach()).tolist() == [1, 1, 1]


def test_other_tensors_are_refused(torch: Any) -> None:
    comm = cl.local(1)[0]
    bad = {
        "dtype torch.float8_e5m2fnuz: supported": torch.ones(3).to(torch.float8_e5m2fnuz),
    }
    for words, x in bad.items():
        with pytest.raises(cl.InvalidArgumentError, match=words):
            comm.allreduce(x)
    with pytest.raises(cl.InvalidArgumentError, match=r"sparse_coo tensor: pass x.to_dense\(\)"):
        comm.scan(torch.ones(3).to_sparse())
    with pytest.raises(cl.UnsupportedError, match=r"tensor on meta.*pass x.cpu\(\)"):
        comm.allreduce(torch.ones(3, device="meta"))
    shared = torch.ones(1).expand(3)
    words = "elements that share their memory"
    with pytest.raises(cl.InvalidArgumentError, match=words):
        comm.allreduce(torch.ones(3), shared)
    for name in ("allreduce", "broadcast", "reduce", "scan"):
        with pytest.raises(cl.InvalidArgumentError, match=words):
            getattr(comm, name)(shared)
    out = torch.zeros(6)
    comm.allreduce(torch.ones(3), out[::2])
    assert out.tolist() == [1, 0, 1, 0, 1, 0]


CALLS = ("allreduce", "scan", "exscan", "reduce_scatter", "allgather")


@pytest.mark.parametrize("name", CALLS)
def test_the_short_way_serves_plain_tensors(torch: Any, monkeypatch: Any, name: str) -> None:
    """Without looking at arguments at length; autograd hears of it, and errors are the same."""
    comm = cl.local(1)[0]
    monkeypatch.setattr(type(comm), "_begin", None)
    monkeypatch.setattr("collectives.reductions.borrow", None)
    x, out = torch.arange(4.0), torch.zeros(4)
    before = out._version
    result = getattr(comm, name)(x, out)
    assert result is out
    assert out._version > before
    assert x._version == 0
    wanted = np.zeros(4, np.float32)
    getattr(comm, name)(np.arange(4, dtype=np.float32), wanted)
    assert out.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_other_tensors_go_the_long_way(torch: Any, name: str) -> None:
    comm = cl.local(1)[0]
    call = getattr(comm, name)
    wanted = call(np.ones(4), np.zeros(4)).tolist()
    assert call(torch.ones(4), torch.zeros(8)[::2]).tolist() == wanted
    narrow = call(torch.ones(4, dtype=torch.bfloat16), torch.zeros(4, dtype=torch.bfloat16))
    assert narrow.tolist() == wanted
    with pytest.raises(cl.InvalidArgumentError, match="requires grad"):
        call(torch.ones(4, requires_grad=True), torch.zeros(4))
    with pytest.raises(cl.InvalidArgumentError, match=r"shape|elements"):
        call(torch.ones(4), torch.zeros(3))
    gone = torch.ones(4)
    gone.untyped_storage().resize_(0)
    with pytest.raises(cl.InvalidArgumentError, match=r"null pointer|memory of its own"):
        call(torch.ones(4), gone)


EXCHANGES: dict[str, Callable[[Any, Any], object]] = {
    "data": lambda torch, x: setattr(x, "data", torch.full((1000,), 5.0)),
    "set_": lambda torch, x: x.set_(torch.full((1000,), 5.0).untyped_storage()),
    "resize_": lambda _, x: x.resize_(1 << 20),
    "storage": lambda _, x: x.untyped_storage().resize_(0),
}


@pytest.mark.parametrize("side", ["x", "out"])
@pytest.mark.parametrize("how", EXCHANGES)
def test_a_persistent_call_refuses_memory_that_was_exchanged(
    torch: Any, how: str, side: str
) -> None:
    """Else it would write into memory that is somebody else's by then."""
    (comm,) = cl.local(1)
    x, out = torch.ones(1000), torch.zeros(1000)
    call = comm.persistent.allreduce(x, out=out)
    assert call() is out
    EXCHANGES[how](torch, {"x": x, "out": out}[side])
    for use in (call, call.start):
        with pytest.raises(cl.InvalidArgumentError, match="memory of a tensor was exchanged"):
            use()
    comm.close()


@pytest.mark.parametrize("name", ["quint8", "qint32"])
def test_quantised_tensors_are_not_made(torch: Any, name: str) -> None:
    (comm,) = cl.local(1)
    with pytest.raises(cl.InvalidArgumentError, match="have a scale of their own"):
        comm.empty(3, getattr(torch, name))
    comm.close()
