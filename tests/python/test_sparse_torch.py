# SPDX-License-Identifier: Apache-2.0
"""torch's sparse tensors, where torch is installed (``make test-extras``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.sparse.conversion import converted
from tests.python.ranks import on_ranks

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def alone(x: Any, **options: Any) -> Any:
    (comm,) = cl.local(1)
    with comm:
        return comm.allreduce(x, **options)


def coo(torch: Any, rank: int, dtype: Any = None) -> Any:
    """Return a matrix with an element that comes twice: 1 and 2, at (1, 2), and one of the rank."""
    places = torch.tensor([[1, 1, rank], [2, 2, 0]])
    values = torch.tensor([1.0, 2.0, rank + 1.0], dtype=dtype or torch.float32)
    return torch.sparse_coo_tensor(places, values, (4, 3))


@pytest.mark.parametrize(
    "name",
    ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "complex64", "bool"],
)
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_sums_are_those_of_torch(torch: Any, name: str, layout: str) -> None:
    dtype = getattr(torch, name)
    given = [coo(torch, rank, dtype) for rank in range(3)]
    wide = torch.int64 if name == "bool" else dtype
    want = sum(x.to(wide).to_dense() for x in given).to(dtype)

    def work(comm: cl.Communicator) -> None:
        x = given[comm.rank]
        x = x.coalesce().to_sparse_csr() if layout == "sparse_csr" else x
        for output in ("sparse", "dense"):
            found = comm.allreduce(x, output=output)
            assert found.layout is getattr(torch, layout if output == "sparse" else "strided")
            assert found.dtype is dtype
            assert bool((found.to(wide).to_dense().to(dtype) == want).all())
        found = comm.broadcast(x, 1, output="sparse")
        assert found.to_dense().tolist() == given[1].coalesce().to_dense().tolist()
        assert found.layout is x.layout

    on_ranks(3, work)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_rows_are_split_and_stacked(torch: Any, layout: str) -> None:
    given = [coo(torch, rank) for rank in range(2)]
    whole, stacked = given[0].to_dense() + given[1].to_dense(), torch.cat([*given]).to_dense()

    def work(comm: cl.Communicator) -> None:
        x = given[comm.rank]
        x = x.coalesce().to_sparse_csr() if layout == "sparse_csr" else x
        for output in ("sparse", "dense"):
            part, every = comm.reduce_scatter(x, output=output), comm.allgather(x, output=output)
            assert part.layout is every.layout
            assert part.layout is (x.layout if output == "sparse" else torch.strided)
            assert torch.equal(part.to_dense(), whole.chunk(2)[comm.rank])
            assert torch.equal(every.to_dense(), stacked)

    on_ranks(2, work)


def test_gradients_of_an_embedding(torch: Any) -> None:
    """They have one sparse and one dense dimension, and so have their sums."""

    def work(comm: cl.Communicator) -> None:
        table = torch.nn.Embedding(10, 3, sparse=True)
        table(torch.tensor([comm.rank, 7, 7])).sum().backward()
        gradient = table.weight.grad
        assert (gradient.sparse_dim(), gradient.dense_dim()) == (1, 1)
        found = comm.allreduce(gradient, output="sparse")
        assert (found.sparse_dim(), found.dense_dim()) == (1, 1)
        assert found.is_coalesced()
        assert found.indices().tolist() == [[0, 1, 7]]
        assert found.values().tolist() == [[1.0] * 3, [1.0] * 3, [4.0] * 3]
        assert gradient._nnz() == 3  # as it was
        table.weight.grad = found
        torch.optim.SparseAdam(table.parameters()).step()

    on_ranks(2, work)


def test_vectors_of_tensors_give_tensors(torch: Any) -> None:
    indices, values = torch.tensor([3, 1], dtype=torch.int16), torch.tensor([1, 2]).bfloat16()
    x = cl.Sparse(indices, values, 5)
    assert x.dtype is torch.bfloat16
    assert x.dense().tolist() == [0, 2, 0, 1, 0]
    assert cl.Sparse.from_dense(x.dense()).indices.tolist() == [1, 3]
    found = alone(x, output="sparse")
    assert found.dtype is torch.bfloat16
    assert (found.indices.tolist(), found.values.tolist()) == ([1, 3], [2, 1])
    assert found.values.data_ptr() != values.data_ptr()
    assert alone(x, output="dense").tolist() == [0, 2, 0, 1, 0]
    twice = cl.Sparse(torch.tensor([1, 1]), torch.tensor([True, True]), 2)
    assert twice.dense().tolist() == [False, True]


def test_what_need_not_be_copied_is_not(torch: Any) -> None:
    x = torch.sparse_coo_tensor(torch.tensor([[4, 1]]), torch.tensor([1.0, 2.0]), (6,))
    vector = converted(x, "test").vector
    assert vector.values.data_ptr() == x._values().data_ptr()
    assert vector.indices.data_ptr() == x._indices().data_ptr()
    row = torch.tensor([[0, 1.0, 0, 2.0]]).to_sparse_csr()
    vector = converted(row, "test").vector
    assert vector.values.data_ptr() == row.values().data_ptr()
    assert vector.indices.data_ptr() == row.col_indices().data_ptr()


def test_shapes_without_an_axis_or_an_element(torch: Any) -> None:
    zero = torch.sparse_coo_tensor(torch.empty((0, 2), dtype=torch.int64), torch.ones(2), ())
    assert alone(zero).to_dense().item() == 2
    (comm,) = cl.local(1)
    with comm, pytest.raises(cl.InvalidArgumentError, match="allgather: x has no axis"):
        comm.allgather(zero)
    for shape in ((0,), (0, 3), (3, 0)):
        assert tuple(alone(torch.zeros(shape).to_sparse()).shape) == shape
    cube = torch.arange(24.0).reshape(2, 3, 4).to_sparse()
    assert torch.equal(alone(cube, output="sparse").to_dense(), cube.to_dense())


def test_what_is_not_taken_is_refused(torch: Any) -> None:
    x = coo(torch, 0).coalesce()
    for other in ("csc", "bsr"):
        blocks = {"blocksize": (1, 1)} if other == "bsr" else {}
        tensor = getattr(x, f"to_sparse_{other}")(**blocks)
        with pytest.raises(cl.InvalidArgumentError, match=f"torch.sparse_{other} tensor of 2 dim"):
            alone(tensor)
    batches = torch.eye(2).repeat(2, 1, 1).to_sparse_csr()
    with pytest.raises(cl.InvalidArgumentError, match="sparse_csr tensor of 3 dimensions"):
        alone(batches)
    with pytest.raises(cl.InvalidArgumentError, match=r"requires grad.*detach"):
        alone(x.requires_grad_())
    with torch.no_grad():
        assert alone(x).to_dense()[1, 2] == 3
    with pytest.raises(cl.UnsupportedError, match="x is a tensor on meta"):
        alone(torch.sparse_coo_tensor((3, 3), device="meta"))


@pytest.mark.parametrize(
    ("ends", "columns", "shape"),
    [
        ([0, 1], [0, 1], (1, 4)),
        ([0, 3], [0, 1], (1, 4)),
        ([0, 1, 1], [0, 1], (2, 4)),
        ([0, 3, 2], [0, 1], (2, 4)),
        ([1, 1, 2], [0, 1], (2, 4)),
        ([0, 2**31 - 1, -(2**31), 2], [0, 1], (3, 4)),
    ],
)
def test_rows_that_end_nowhere_are_refused(torch: Any, ends: Any, columns: Any, shape: Any) -> None:
    """torch looks at ends of rows only where it is asked to."""
    parts = [torch.tensor(part, dtype=torch.int32) for part in (ends, columns)]
    bad = torch.sparse_csr_tensor(*parts, torch.tensor([1.0, 2.0]), shape, check_invariants=False)
    with pytest.raises(
        cl.InvalidArgumentError, match=r"allreduce: x has ends of rows .* 2 entries"
    ):
        alone(bad)


def test_nothing_that_is_given_is_written(torch: Any) -> None:
    x = coo(torch, 0)
    places, values = x._indices().clone(), x._values().clone()
    found = alone(x, output="sparse")
    found.values().zero_()
    assert torch.equal(x._indices(), places)
    assert torch.equal(x._values(), values)
    assert not x.is_coalesced()
    assert np.isfinite(values.numpy()).all()
