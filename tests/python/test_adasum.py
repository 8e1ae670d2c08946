# SPDX-License-Identifier: Apache-2.0
"""Adasum: orthogonal gradients add up, equal ones are averaged; against its definition."""

from __future__ import annotations

from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import collectives as cl
from tests.python.ranks import on_ranks, on_wired_ranks

Vector = npt.NDArray[np.float64]


def pair(a: Vector, b: Vector) -> Vector:
    ab, aa, bb = a @ b, a @ a, b @ b
    return (1 - ab / (2 * aa) if aa else 1) * a + (1 - ab / (2 * bb) if bb else 1) * b


def defined(vectors: list[Vector]) -> Vector:
    power = 1 << (len(vectors).bit_length() - 1)
    spare = len(vectors) - power
    left = [pair(vectors[2 * i], vectors[2 * i + 1]) for i in range(spare)]
    left += vectors[2 * spare :]
    while len(left) > 1:
        left = [pair(left[i], left[i + 1]) for i in range(0, len(left), 2)]
    return left[0]


@pytest.mark.parametrize(
    ("among", "p"), [(on_ranks, p) for p in range(2, 9)] + [(on_wired_ranks, p) for p in (2, 3, 6)]
)
def test_definition(among: Any, p: int) -> None:
    rng = np.random.default_rng(p)
    for n in (0, 1, 3, 1000, 70_001):
        vectors = [rng.standard_normal(n) for _ in range(p)]
        results = among(p, lambda comm, v=vectors: comm.allreduce(v[comm.rank].copy(), op="adasum"))
        for result in results:
            np.testing.assert_array_equal(result, results[0])  # the same bits
            np.testing.assert_allclose(result, defined(vectors), rtol=1e-9, atol=1e-12)


def test_orthogonal_and_equal() -> None:
    def body(comm: cl.Communicator) -> None:
        own = np.zeros(8, "float32")
        own[comm.rank] = comm.rank + 1
        whole = comm.allreduce(own, op="adasum")
        np.testing.assert_array_equal(whole, [1, 2, 3, 4, 5, 0, 0, 0])
        same = np.arange(6, dtype="float32")
        out = np.empty(6, "float32")
        assert comm.allreduce(same, out, op="adasum") is out
        np.testing.assert_allclose(out, same, rtol=1e-6)
        assert same[5] == 5
        zeros = comm.allreduce(np.zeros(4), op="adasum")
        np.testing.assert_array_equal(zeros, 0)

    on_ranks(5, body)
    np.testing.assert_array_equal(cl.local(1)[0].allreduce(np.ones(3), op="adasum"), 1)


def test_narrow_floats_are_rounded_once() -> None:
    vectors = [np.random.default_rng(r).standard_normal(500).astype("float16") for r in range(4)]
    results = on_ranks(4, lambda comm: comm.allreduce(vectors[comm.rank].copy(), op="adasum"))
    exact = defined([v.astype("float64") for v in vectors])
    np.testing.assert_allclose(results[0], exact, rtol=2**-10, atol=1e-4)


def test_what_is_refused() -> None:
    def body(comm: cl.Communicator) -> None:
        bad = cl.InvalidArgumentError
        with pytest.raises(bad, match="floating-point"):
            comm.allreduce(np.ones(3, int), op="adasum")
        with pytest.raises(bad, match="reproducible is not there"):
            comm.allreduce(np.ones(3), op="adasum", reproducible=True)
        with pytest.raises(bad, match="algorithm is not there"):
            comm.allreduce(np.ones(3), op="adasum", algorithm="ring")
        handle = comm.allreduce(np.ones(3), op="adasum", async_op=True)
        np.testing.assert_allclose(handle.wait(), 1)
        with pytest.raises(cl.MismatchError, match="adasum of 3 float64"):
            comm.allreduce(np.ones(3 if comm.rank else 4), op="adasum")

    on_ranks(2, body)


def combined(vectors: list[Vector]) -> list[Any]:
    def body(comm: cl.Communicator) -> Any:
        return comm.allreduce(vectors[comm.rank].copy(), op="adasum")

    return on_ranks(len(vectors), body)


@pytest.mark.parametrize("p", [2, 3, 4, 7])
@pytest.mark.parametrize("n", [5, 40, 3000])
def test_squares_beyond_the_range_of_numbers(p: int, n: int) -> None:
    """Vectors that differ by powers of two give what they give of usual size."""
    rng = np.random.default_rng(n)
    usual = [rng.standard_normal(n) for _ in range(p)]
    usual[1][: n // 2] = 0  # a share of nothing, beside one of little
    expected = defined(usual)
    for power in (2.0**600, 2.0**1015, 2.0**-520, 2.0**-900):
        results = combined([x * power for x in usual])
        for result in results:
            np.testing.assert_array_equal(result, results[0])
            np.testing.assert_allclose(result / power, expected, rtol=1e-9, atol=1e-12)


def exact_pair(a: Vector, b: Vector) -> list[float]:
    xs, ys = [list(map(Fraction, v.tolist())) for v in (a, b)]
    ab, aa, bb = (sum(map(mul, p, q)) for p, q in ((xs, ys), (xs, xs), (ys, ys)))
    of_a, of_b = 1 - Fraction(ab, 2 * aa), 1 - Fraction(ab, 2 * bb)
    return [float(of_a * x + of_b * y) for x, y in zip(xs, ys, strict=True)]


def test_what_is_little_beside_another() -> None:
    rng = np.random.default_rng(1)
    along, across = rng.standard_normal(100), rng.standard_normal(100)
    shares = np.repeat([1.0, 1e-160], 50)  # two ranks have a half each
    for little, much in ((1e-300, 1e300), (1e-130, 1e250), (1e-170, 1.0), (1.0, 1e170)):
        for other in (along, across, along * shares, across * shares[::-1]):
            for vectors in ([along * little, other * much], [other * much, along * little]):
                for result in combined(vectors):
                    np.testing.assert_allclose(result, exact_pair(*vectors), rtol=1e-9)
    narrow = [(along * size).astype("float32") for size in (1e-25, 1e25)]
    for result in combined(narrow):
        np.testing.assert_allclose(result, narrow[1] / 2, rtol=1e-6)


def test_elements_that_are_little_beside_others_of_their_vector() -> None:
    """Vectors are scaled for their products only: what they are made of stays as it is."""
    rng = np.random.default_rng(2)
    for large, little in ((1e200, 1e-120), (1e300, 1e-20), (1e-10, 1e-307), (1.0, 1e-300)):
        for of_other in (1e-290, 1e-100, 1.0, 1e150, 1e290):
            one, other = rng.standard_normal(20) * large, rng.standard_normal(20) * of_other
            one[4:8] *= little / large
            other[4:6] = 0
            other[8:10] *= 1e-15
            for vectors in ([one, other], [other, one]):
                expected = exact_pair(*vectors)
                for result in combined(vectors):
                    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-316)


def test_what_is_no_number_spreads() -> None:
    vectors = [np.full(40, 1e200) for _ in range(2)]
    vectors[1][3] = np.inf
    for result in combined(vectors):
        assert not np.isfinite(result[3])
