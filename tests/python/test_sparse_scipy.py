# SPDX-License-Identifier: Apache-2.0
"""SciPy's sparse arrays and matrices: the results are what SciPy's own sums are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import collectives as cl
from collectives.sparse.conversion import converted
from tests.python.ranks import on_ranks

MAKERS = [
    sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix,
]  # fmt: skip
SHAPES = [(6, 5), (1, 7), (6, 1), (0, 4), (4, 0), (2, 300)]
BY_ROWS = [maker for maker in MAKERS if maker.__name__[:3] != "csc"]


def parts(make: Any, shape: tuple[int, int], p: int, dtype: str = "float64") -> list[Any]:
    rng = np.random.default_rng(7)
    dense = rng.integers(1, 4, (p, *shape)) * (rng.random((p, *shape)) < 0.3)
    return [make(part.astype(dtype)) for part in dense]


def check(result: Any, want: Any, make: Any) -> None:
    """Compare with a dense matrix: a sparse result is of the given type, and sound."""
    if sp.issparse(result):
        assert type(result) is make
        if hasattr(result, "check_format"):
            result.check_format(full_check=True)
        assert result.has_canonical_format
        result = result.toarray()
    assert result.dtype == want.dtype
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_those_of_scipy(make: Any, shape: tuple[int, int]) -> None:
    given = parts(make, shape, 3)
    want = sum(given[1:], given[0]).toarray()

    def work(comm: cl.Communicator) -> None:
        x = given[comm.rank]
        check(comm.allreduce(x), want, make)
        sparse = comm.allreduce(x, output="sparse")
        assert sp.issparse(sparse)
        check(sparse, want, make)
        dense = comm.allreduce(x, output="dense")
        assert type(dense) is np.ndarray
        check(dense, want, make)
        check(comm.broadcast(x if comm.rank == 2 else make(shape), 2), given[2].toarray(), make)

    on_ranks(3, work)


@pytest.mark.parametrize("make", BY_ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_split_and_stacked(make: Any, shape: tuple[int, int]) -> None:
    given = parts(make, shape, 2, "int32")
    all_rows = np.concatenate([part.toarray() for part in given])

    def work(comm: cl.Communicator) -> None:
        x = given[comm.rank]
        for output in ("auto", "sparse", "dense"):
            check(comm.allgather(x, output=output), all_rows, make)
            if shape[0] % 2:
                with pytest.raises(cl.InvalidArgumentError, match=f"the {shape[0]} rows of x are"):
                    comm.reduce_scatter(x)
                continue
            want = np.split(given[0].toarray() + given[1].toarray(), 2)[comm.rank]
            check(comm.reduce_scatter(x, output=output), want, make)

    on_ranks(2, work)


def test_columns_are_no_rows() -> None:
    (comm,) = cl.local(1)
    with comm:
        for kind in ("reduce_scatter", "allgather"):
            with pytest.raises(cl.InvalidArgumentError, match=rf"{kind}: x is a csc .*tocsr"):
                getattr(comm, kind)(sp.csc_array((2, 3)))


def test_vectors_of_coo_and_what_comes_twice() -> None:
    places, values = np.array([5, 1, 5]), np.array([1.0, 2.0, 3.0])
    x = sp.coo_array((values, (places,)), shape=(8,))
    matrix = sp.coo_array((values, (places, places)), shape=(6, 6))

    def work(comm: cl.Communicator) -> None:
        found = comm.allreduce(x, output="sparse")
        assert (found.shape, found.coords[0].tolist(), found.data.tolist()) == (
            (8,),
            [1, 5],
            [4, 8],
        )
        assert comm.reduce_scatter(x).shape == (4,)
        assert comm.allgather(x).shape == (16,)
        found = comm.allreduce(matrix, output="sparse")
        assert (found.row.tolist(), found.col.tolist(), found.data.tolist()) == (
            [1, 5], [1, 5], [4, 8],
        )  # fmt: skip

    on_ranks(2, work)
    assert places.tolist() == [5, 1, 5]
    assert values.tolist() == [1, 2, 3]


def test_what_need_not_be_copied_is_not() -> None:
    row = sp.csr_array(np.array([[0, 1.0, 0, 2.0]]))
    column = sp.csc_array(row.T)
    line = sp.coo_array((np.ones(2), (np.array([3, 1]),)), shape=(4,))
    for x, places in ((row, row.indices), (column, column.indices), (line, line.coords[0])):
        vector = converted(x, "test").vector
        assert np.shares_memory(vector.values, x.data)
        assert np.shares_memory(vector.indices, places)
    matrix = sp.csr_array(np.eye(3))
    assert np.shares_memory(converted(matrix, "test").vector.values, matrix.data)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
def test_room_beyond_the_entries_is_not_read(make: Any) -> None:
    for rows in (1, 2):
        dense = np.arange(3.0 * rows).reshape(rows, 3)
        x = make(dense if make is sp.csr_array else dense.T)
        x.data, x.indices = np.append(x.data, [77, 88]), np.append(x.indices, [900, -4])
        (comm,) = cl.local(1)
        with comm:
            check(comm.allreduce(x), x.toarray(), make)


def test_matrices_that_are_none_are_refused() -> None:
    wrong = sp.csr_array(np.eye(3))
    wrong.indices[1] = 3  # would be the next row
    ends = sp.csr_array(np.eye(3))
    ends.indptr[1] = 5
    outside = sp.coo_array(np.eye(3))
    outside.coords[1][0] = -1
    (comm,) = cl.local(1)
    with comm:
        for x in (wrong, outside):
            with pytest.raises(cl.InvalidArgumentError, match=r"x has an element outside of its"):
                comm.allreduce(x)
        with pytest.raises(cl.InvalidArgumentError, match="x has ends of rows that are none"):
            comm.allreduce(ends)
        for form in ("lil", "dok", "bsr", "dia"):
            with pytest.raises(cl.InvalidArgumentError, match=rf"SciPy {form} array: .*tocsr"):
                comm.allreduce(sp.eye_array(3, format=form))
        with pytest.raises(
            cl.InvalidArgumentError, match=r"gather: x is a csr_array: pass x.toarr"
        ):
            comm.gather(sp.eye_array(3, format="csr"))


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (sp.csr_array((4, 6)), sp.csr_array((6, 4)), ("for csr 4 x 6", "for csr 6 x 4")),
        (sp.csr_array((4, 6)), sp.coo_array((4, 6)), ("for csr 4 x 6", "for coo 4 x 6")),
        (
            sp.csr_array((4, 6)),
            cl.Sparse(np.empty(0, int), np.empty(0), 24),
            ("24 float64 (sum, auto) for csr 4 x 6", "24 float64 (sum, auto)"),
        ),
    ],
)
def test_ranks_that_differ_are_told_both(mine: Any, theirs: Any, words: tuple[str, str]) -> None:
    def work(comm: cl.Communicator) -> str:
        with pytest.raises(cl.MismatchError) as caught:
            comm.allreduce(mine if comm.rank == 1 else theirs)
        return str(caught.value)

    assert len(set(texts := on_ranks(3, work))) == 1
    for word in words:
        assert word in texts[0]


def test_nothing_that_is_given_is_written_or_shared() -> None:
    for make in MAKERS:
        x = parts(make, (4, 4), 1)[0]
        kept = x.copy()
        (comm,) = cl.local(1)
        with comm:
            found = comm.allreduce(x, output="sparse")
            assert not np.shares_memory(found.data, x.data)
            found.data[:] = 9
        assert (x != kept).nnz == 0


def test_coordinates_that_differ_in_number() -> None:
    x = sp.coo_array(np.eye(4))
    x.coords = (x.coords[0], x.coords[1][:2])

    def body(comm: cl.Communicator) -> None:
        with pytest.raises(cl.InvalidArgumentError, match="4 coordinates along its first axis, 2 "):
            comm.allreduce(x)

    on_ranks(1, body)
