# SPDX-License-Identifier: Apache-2.0
"""reduce_scatter, allgather and broadcast of sparse vectors, beside the same of dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collectives as cl
from tests.python.ranks import on_ranks, on_wired_ranks

KINDS = ("reduce_scatter", "allgather", "broadcast")
NAMED = [(kind, a.name) for kind in KINDS for a in cl.sparse_algorithms(kind)]
PARTS = (0, 1, 7, 300)


def vectors(seed: int, p: int, length: int, dtype: str = "float32") -> list[cl.Sparse]:
    """Small numbers at places of which some come twice; of some ranks none."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(p):
        n = int(rng.integers(0, length + 2)) if length and rng.random() < 0.8 else 0
        values = rng.integers(1, 3, n).astype(dtype)
        made.append(cl.Sparse(rng.integers(0, max(length, 1), n, np.int32), values, length))
    return made


def wanted(kind: str, parts: list[cl.Sparse], root: int) -> list[npt.NDArray[Any]]:
    """Return what each rank is to get, as all values."""
    dense = [part.dense() for part in parts]
    p = len(parts)
    if kind == "broadcast":
        return [dense[root]] * p
    if kind == "allgather":
        return [np.concatenate(dense)] * p
    total = np.add.reduce(dense, dtype=dense[0].dtype)
    return np.split(total, p)


def check(result: Any, want: npt.NDArray[Any], output: str = "auto") -> None:
    if isinstance(result, cl.Sparse):
        assert output != "dense"
        assert np.all(np.diff(result.indices) > 0)
        result = result.dense()
    else:
        assert output != "sparse"
    assert result.dtype == want.dtype
    np.testing.assert_array_equal(result, want)


def call(comm: cl.Communicator, kind: str, x: Any, root: int, **options: Any) -> Any:
    more = {"root": root} if kind == "broadcast" else {}
    return getattr(comm, kind)(x, **more, **options)


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_they_give_what_the_dense_ones_give(among: Any, p: int) -> None:
    if p == 1 and among is on_wired_ranks:
        p = 7  # one rank has nobody to connect to
    cases = []
    for n in PARTS:
        for i, (kind, name) in enumerate([*NAMED, *((kind, "auto") for kind in KINDS)]):
            length = n * p if kind == "reduce_scatter" else n
            parts = vectors(100 * n + i, p, length)
            for root in range(p) if kind == "broadcast" and n == 7 else [0]:
                cases.append((kind, name, root, parts, wanted(kind, parts, root)))

    def work(comm: cl.Communicator) -> None:
        for kind, name, root, parts, want in cases:
            result = call(comm, kind, parts[comm.rank], root, algorithm=name)
            check(result, want[comm.rank])

    among(p, work)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.integers(1, 5),
    n=st.integers(0, 60),
    dtype=st.sampled_from(["float64", "float16", "int8", "uint64", "complex64"]),
    named=st.sampled_from(NAMED),
    output=st.sampled_from(["auto", "sparse", "dense"]),
    above=st.sampled_from([None, 0.0, 0.3, 1.0]),
)
def test_any_call(
    seed: int, p: int, n: int, dtype: str, named: tuple[str, str], output: Any, above: Any
) -> None:
    kind, name = named
    parts = vectors(seed, p, n * p if kind == "reduce_scatter" else n, dtype)
    root = seed % p
    want = wanted(kind, parts, root)

    def work(comm: cl.Communicator) -> None:
        options = {"algorithm": name, "output": output, "dense_above": above}
        check(call(comm, kind, parts[comm.rank], root, **options), want[comm.rank], output)

    on_ranks(p, work)


def test_the_others_elements_are_not_looked_at_in_a_broadcast() -> None:
    sent = cl.Sparse(np.array([4, 1]), np.array([1.0, 2.0]), 5)
    wrong = cl.Sparse(np.array([77, -1]), np.array([5.0, 6.0]), 5)

    def work(comm: cl.Communicator) -> None:
        result = comm.broadcast(sent if comm.rank == 1 else wrong, 1, output="sparse")
        assert result.indices.tolist() == [1, 4]
        assert result.values.tolist() == [2.0, 1.0]
        assert not np.shares_memory(result.values, sent.values)
        with pytest.raises(cl.InvalidArgumentError, match=r"index 77 \(at 0\) is none of a vector"):
            comm.allreduce(wrong)
        comm.barrier()

    on_ranks(3, work)


def test_averages_are_divided() -> None:
    def work(comm: cl.Communicator) -> None:
        x = cl.Sparse(np.arange(4), np.full(4, comm.rank + 1.0), 8)
        part = comm.reduce_scatter(x, op="avg", output="dense")
        assert part.tolist() == ([1.5] * 4 if comm.rank == 0 else [0.0] * 4)

    on_ranks(2, work)


def test_functions_on_the_default_communicator() -> None:
    x = cl.Sparse(np.array([2]), np.array([3.0]), 4)
    with cl.init() as comm:
        assert comm.size == 1
        for call in (cl.reduce_scatter, cl.allgather, cl.broadcast, cl.allreduce):
            assert call(x, output="dense", dense_above=0.5).tolist() == [0, 0, 3, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_there_is_refused(kind: str) -> None:
    (comm,) = cl.local(1)
    with comm:
        x = cl.Sparse(np.array([2]), np.array([3.0]), 4)
        refused: list[tuple[dict[str, Any], str]] = [
            ({"mode": "staged"}, f"{kind}: mode is not there for sparse arrays"),
            ({"algorithm": "swing"}, f"{kind}: there is no algorithm 'swing' of sparse vectors"),
            ({"algorithm": ["ring"]}, "there is no algorithm"),
            ({"algorithm": "dense"}, "there is no algorithm 'dense'"),
            ({"output": "csr"}, f"{kind}: output 'csr' is unknown"),
            ({"dense_above": 1.5}, f"{kind}: dense_above is 1.5: it is a share"),
            ({"dense_above": "much"}, f"{kind}: dense_above is 'much': it is a share"),
            ({"dense_above": float("nan")}, "dense_above is nan"),
            ({"timeout": -1}, f"{kind}: timeout is -1"),
        ]
        if kind != "broadcast":
            refused.append(({"out": np.zeros(4)}, f"{kind}: out is not there"))
        if kind == "reduce_scatter":
            refused.append(({"op": "minloc"}, "minloc of float64 is not there"))
            refused.append(({"accumulate": "float64"}, "accumulate is not there"))
        for options, sentence in refused:
            with pytest.raises(cl.InvalidArgumentError, match=sentence):
                getattr(comm, kind)(x, **options)
        with pytest.raises(cl.InvalidArgumentError, match="output is there for sparse arrays only"):
            getattr(comm, kind)(np.zeros(4), output="sparse")
        with pytest.raises(cl.InvalidArgumentError, match="dense_above is there for sparse arrays"):
            getattr(comm, kind)(np.zeros(4), dense_above=0.5)
        assert call(comm, kind, x, 0).nnz == 1


def test_unequal_parts_and_wrong_roots_are_refused() -> None:
    def work(comm: cl.Communicator) -> None:
        x = cl.Sparse(np.array([2]), np.array([3.0]), 7)
        with pytest.raises(
            cl.InvalidArgumentError, match="reduce_scatter: the 7 elements of x are no 2 equal"
        ):
            comm.reduce_scatter(x)
        with pytest.raises(cl.InvalidArgumentError, match="root"):
            comm.broadcast(x, 2)
        comm.barrier()

    on_ranks(2, work)


@pytest.mark.parametrize(("p", "length"), [(2, 2**47 + 1), (3, 2**48 // 3 + 1), (4, 2**47)])
def test_vectors_that_are_too_long_together_are_refused(p: int, length: int) -> None:
    """What all would get could not be handed in again; one of 2^48 elements can."""

    def work(comm: cl.Communicator) -> None:
        places = np.array([length - 1])
        with pytest.raises(
            cl.InvalidArgumentError,
            match=rf"allgather: the vectors of {p} ranks of {length} elements each .* 2\^48",
        ):
            comm.allgather(cl.Sparse(places, np.ones(1), length), output="sparse")
        most = 2**48 // p
        found = comm.allgather(cl.Sparse(np.array([most - 1]), np.ones(1), most), output="sparse")
        assert found.length == most * p
        assert found.indices.tolist() == [(rank + 1) * most - 1 for rank in range(p)]
        assert comm.broadcast(found, 0, output="sparse").nnz == p

    on_ranks(p, work)


@pytest.mark.parametrize("kind", ["reduce", "scan", "alltoall", "gather"])
def test_other_collectives_name_the_dense_way(kind: str) -> None:
    (comm,) = cl.local(1)
    with comm, pytest.raises(cl.InvalidArgumentError, match=f"{kind}: x is a Sparse: pass x.dense"):
        getattr(comm, kind)(cl.Sparse(np.array([2]), np.array([3.0]), 4))
