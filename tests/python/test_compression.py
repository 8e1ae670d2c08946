# SPDX-License-Identifier: Apache-2.0
"""Compressed allreduces: what they promise of errors, of residuals and of what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks, on_wired_ranks


def gradients(p: int, n: int, dtype: str = "float32") -> list[Any]:
    rng = np.random.default_rng(p * n)
    return [(rng.standard_normal(n) ** 3).astype(dtype) for _ in range(p)]


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize("op", ["sum", "avg"])
def test_nothing_is_lost_but_late(among: Any, op: str) -> None:
    """Of a constant gradient all that was sent and all that is left is what was handed in."""
    p, n, steps = 4, 900, 12
    parts = gradients(p, n, "float64")

    def body(comm: cl.Communicator) -> Any:
        topk, sent = cl.TopK(0.05), np.zeros(n)
        for _ in range(steps):
            x = parts[comm.rank].copy()
            assert comm.allreduce(x, compress=topk, op=op) is x
            sent += x
        assert topk.residual is not None
        left = comm.allreduce(topk.residual.copy(), op=op)
        return sent + left

    whole = sum(parts) * steps / (p if op == "avg" else 1)
    for result in among(p, body):
        np.testing.assert_allclose(result, whole, rtol=1e-9, atol=1e-9)


def test_the_largest_are_sent() -> None:
    parts = gradients(3, 1000)

    def body(comm: cl.Communicator) -> Any:
        return comm.allreduce(parts[comm.rank].copy(), compress=cl.TopK(0.01, feedback=False))

    expected = np.zeros(1000, "float32")
    for part in parts:
        largest = np.argsort(-np.abs(part), kind="stable")[:10]
        expected[largest] += part[largest]
    for result in on_ranks(3, body):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_a_threshold_is_used_again() -> None:
    """Elements are searched for once in `reuse` calls, and about as many are sent in all."""
    rng = np.random.default_rng(5)
    topk = cl.TopK(0.1, reuse=4)
    counts = [topk.select(rng.standard_normal(2000)).nnz for _ in range(8)]
    assert counts[0] == counts[4] == 200
    assert all(100 <= count <= 400 for count in counts)
    assert len(set(counts)) > 2
    flood = topk.select(rng.standard_normal(2000) * 100)
    assert flood.nnz <= 400


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_residual_is_state(dtype: str) -> None:
    parts = gradients(2, 300, dtype)

    def body(comm: cl.Communicator) -> tuple[Any, Any]:
        first = cl.TopK(0.02)
        comm.allreduce(parts[comm.rank].copy(), compress=first)
        second = cl.TopK(0.02)
        second.residual = np.array(first.residual)
        again = [comm.allreduce(parts[comm.rank].copy(), compress=t) for t in (first, second)]
        with pytest.raises(cl.InvalidArgumentError, match="300 elements, x has 10"):
            comm.allreduce(np.zeros(10, dtype), compress=first)
        return again[0], again[1]

    for one, other in on_ranks(2, body):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("form", "error"), [("e4m3", 2**-4), ("e5m2", 2**-3)])
def test_fp8_is_within_its_bound(form: str, error: float) -> None:
    p, parts = 4, gradients(4, 5000)

    def body(comm: cl.Communicator) -> Any:
        return comm.allreduce(parts[comm.rank].copy(), compress=cl.FP8(form))

    exact = sum(part.astype("float64") for part in parts)
    own = sum(np.abs(part.astype("float64")) for part in parts)
    scale = max(np.abs(part).max() for part in parts) * p
    for result in on_ranks(p, body):
        allowed = error * own + error * np.abs(exact) * (1 + error) + scale * p * 2.0**-16
        assert np.all(np.abs(result - exact) <= allowed)
        assert np.abs(result - exact).max() > 0


def test_fp8_of_what_no_scale_holds() -> None:

    def body(comm: cl.Communicator) -> None:
        x = np.array([1.0, np.inf if comm.rank else 2.0, 0.5], "float32")
        np.testing.assert_array_equal(comm.allreduce(x, compress=cl.FP8()), [2, np.inf, 1])
        y = np.array([np.nan, 1 / 3], "float32")
        result = comm.allreduce(y, compress=cl.FP8())
        assert np.isnan(result[0])
        assert result[1] == np.float32(1 / 3) * 2
        zeros = comm.allreduce(np.zeros(3, "float32"), compress=cl.FP8())
        np.testing.assert_array_equal(zeros, 0)

    on_ranks(2, body)


def test_a_codec_of_the_program() -> None:
    """A linear map to half as many numbers, and back."""
    pairs = cl.codec(lambda x: x.reshape(-1, 2).sum(axis=1), lambda c, n: np.repeat(c / 2, 2)[:n])

    def body(comm: cl.Communicator) -> Any:
        return comm.allreduce(np.arange(6.0) + comm.rank, compress=pairs)

    for result in on_ranks(3, body):
        np.testing.assert_allclose(result, [4.5, 4.5, 10.5, 10.5, 16.5, 16.5])


def test_what_is_refused() -> None:
    def body(comm: cl.Communicator) -> None:
        bad, x = cl.InvalidArgumentError, np.ones(4)
        for share in (0, 1.5, -1):
            with pytest.raises(bad, match="share is"):
                cl.TopK(share)
        with pytest.raises(bad, match="reuse is 0"):
            cl.TopK(0.1, reuse=0)
        topk = cl.TopK(0.5)
        with pytest.raises(bad, match="op 'max' is not there with compress"):
            comm.allreduce(x, op="max", compress=topk)
        with pytest.raises(bad, match="x is int64"):
            comm.allreduce(np.ones(4, int), compress=topk)
        with pytest.raises(bad, match="algorithm is not there with compress"):
            comm.allreduce(x, algorithm="ring", compress=topk)
        with pytest.raises(bad, match="QSGD is there for sparse arrays only"):
            comm.allreduce(x, compress=cl.QSGD(4))
        with pytest.raises(bad, match="output is there for sparse arrays only"):
            comm.allreduce(x, output="dense")
        with pytest.raises(TypeError, match="unexpected keyword argument 'outptu'"):
            comm.allreduce(x, outptu="dense")  # type: ignore[call-arg]
        with comm.group(), pytest.raises(bad, match="not there in group"):
            comm.allreduce(x, compress=topk)
        short = cl.codec(lambda v: v[:2], lambda c, n: c)
        with pytest.raises(bad, match="decode gave 2 elements, where 4"):
            comm.allreduce(x, compress=short)
        assert comm.allreduce(x, compress=topk, async_op=True).wait() is x
        assert comm.allreduce(x, compress=None) is x

    on_ranks(2, body)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("form", ["e4m3", "e5m2"])
def test_scales_of_eight_bits_are_not_rounded_to_the_dtype(dtype: str, form: Any) -> None:
    least = {"float16": 1e-6, "float32": 1e-44, "float64": 1e-300}[dtype]
    most = {"float16": 1e4, "float32": 1e37, "float64": 1e300}[dtype]
    for size in (least, least * 100, 1e-4, most):
        rng = np.random.default_rng(0)
        parts = [(rng.uniform(-1, 1, 300) * size).astype(dtype) for _ in range(4)]

        def body(comm: cl.Communicator, parts: list[Any] = parts, size: float = size) -> None:
            got = comm.allreduce(parts[comm.rank].copy(), compress=cl.FP8(form))
            exact = np.sum([part.astype(np.float64) for part in parts], axis=0)
            off = np.abs(got.astype(np.float64) - exact)
            grain = float(np.finfo(dtype).smallest_subnormal)
            assert off.max() <= size * 4 * 2 * (0.0625 if form == "e4m3" else 0.125) + 4 * grain

        on_ranks(4, body)


def test_what_is_no_compressor_is_refused() -> None:
    def body(comm: cl.Communicator) -> None:
        for wrong in (4, "topk", cl.TopK, cl.QSGD):
            with pytest.raises(cl.InvalidArgumentError, match="compress is"):
                comm.allreduce(np.ones(3), compress=wrong)  # type: ignore[arg-type]
        with pytest.raises(cl.InvalidArgumentError, match="adasum"):
            comm.allreduce(cl.Sparse(np.array([1]), np.ones(1), 9), op="adasum")
        with pytest.raises(cl.InvalidArgumentError, match="structure"):
            comm.allreduce({"x": np.ones(3)}, output="dense")
        for share in ("a", None, 0, 2):
            with pytest.raises(cl.InvalidArgumentError, match="share"):
                cl.TopK(share)  # type: ignore[arg-type]
        with pytest.raises(cl.InvalidArgumentError, match="bits"):
            cl.QSGD(4.0)  # type: ignore[arg-type]

    on_ranks(1, body)


def test_state_goes_on_where_it_was() -> None:
    """Threshold and momentum too: what is chosen is the same as without the break."""
    rng = np.random.default_rng(3)
    steps = [[rng.standard_normal(500).astype("float32") for _ in range(2)] for _ in range(7)]

    def body(comm: cl.Communicator) -> None:
        made = [cl.TopK(0.05, reuse=5, momentum=0.5) for _ in range(2)]
        fresh = made[0].state()
        assert fresh == {"residual": None, "speed": None, "threshold": None, "uses": 0}
        for step, parts in enumerate(steps):
            whole, broken = (comm.allreduce(parts[comm.rank].copy(), compress=t) for t in made)
            np.testing.assert_array_equal(whole, broken)
            if step == 2:
                state = made[1].state()
                made[1] = cl.TopK(0.05, reuse=5, momentum=0.5)
                made[1].restore({**state, "residual": state["residual"].tolist()})
                state["residual"][:] = 0  # a copy
        made[1].restore(fresh)
        assert made[1].state() == fresh
        for wrong in ({}, {**fresh, "threshold": "a"}, {**fresh, "more": 1}, None):
            with pytest.raises(cl.InvalidArgumentError, match="the state is"):
                made[1].restore(wrong)  # type: ignore[arg-type]

    on_ranks(2, body)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_too_large_for_the_dtype_is_sent_later(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    most = float(np.nextafter(kind.type(np.inf), kind.type(0)))
    calls = 4

    def body(comm: cl.Communicator) -> None:
        topk, sent = cl.TopK(0.25), np.zeros(8)
        for step in range(calls):
            x = np.zeros(8, kind)
            if step < 2 and comm.rank == 0:
                x[:2] = [most, 1]
                x[3] = -most * 0.5
            got = comm.allreduce(x, compress=topk)
            assert np.isfinite(got.astype(np.float64)).all()
            sent += got.astype(np.float64)
        np.testing.assert_allclose(sent[[0, 3]], [2 * most, -most], rtol=1e-6)
        x = np.zeros(8, kind)
        x[2] = np.inf
        assert comm.allreduce(x, compress=cl.TopK(0.25))[2] == np.inf

    on_ranks(2, body)


half = cl.codec(lambda x: x[:4], lambda c, n: np.resize(c, n))
DENSE_WAYS: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "TopK": lambda: cl.TopK(0.5),
    "TopK of the sum": lambda: cl.TopK(0.5, of_sum=True),
    "more of the sum": lambda: cl.TopK(0.25, of_sum=True),
    "FP8": lambda: cl.FP8(),
    "other FP8": lambda: cl.FP8("e5m2"),
    "codec": lambda: half,
}
SPARSE_WAYS = [None, cl.QSGD(4), cl.QSGD(8), cl.QSGD(4, seed=1)]


@pytest.mark.parametrize("among", [on_ranks, on_wired_ranks])
@pytest.mark.parametrize(("one", "other"), list(combinations(DENSE_WAYS, 2)))
def test_ranks_that_compress_in_other_ways_are_told(among: Any, one: str, other: str) -> None:
    """Each calls another collective inside, or the same one with other words."""

    def body(comm: cl.Communicator) -> None:
        way = DENSE_WAYS[other if comm.rank == 1 else one]()
        with pytest.raises(cl.MismatchError):
            comm.allreduce(np.arange(8.0) + 1, compress=way)

    among(3, body)


@pytest.mark.parametrize(("one", "other"), list(combinations(SPARSE_WAYS, 2)))
def test_sparse_vectors_that_are_quantised_in_other_ways(one: Any, other: Any) -> None:
    def body(comm: cl.Communicator) -> None:
        x = cl.Sparse(np.arange(3), np.ones(3), 9)
        with pytest.raises(cl.MismatchError, match="QSGD of"):
            comm.allreduce(x, compress=other if comm.rank else one)

    on_ranks(2, body)
