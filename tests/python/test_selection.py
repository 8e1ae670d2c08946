# SPDX-License-Identifier: Apache-2.0
"""The largest elements of a vector, from Python: what NumPy's sort gives."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.sparse.selection import select_above, top_k

DTYPES: list[Any] = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def vector(dtype: Any, n: int = 5000) -> Any:
    drawn = np.random.default_rng(3).standard_normal(n).astype(dtype)
    drawn[[7, 4000]] = np.nan
    drawn[[8, 9]] = np.inf, -np.inf
    return drawn


@pytest.mark.parametrize("dtype", DTYPES)
def test_top_k_is_what_a_stable_sort_gives(dtype: Any) -> None:
    x = vector(dtype)
    magnitudes = np.abs(x.astype(np.float64))
    magnitudes[np.isnan(magnitudes)] = 1e308 * 10  # with infinities: both are taken first
    order = np.argsort(-magnitudes, kind="stable")
    for k in (0, 4, 50, 5000):
        chosen = top_k(x.reshape(50, -1), k)
        assert (chosen.length, chosen.nnz, chosen.dtype) == (5000, k, x.dtype)
        assert chosen.indices.dtype == np.int32
        assert chosen.indices.tolist() == sorted(order[:k].tolist())
        assert chosen.values.tobytes() == x[chosen.indices].tobytes()
    assert top_k(x, 2).indices.tolist() == [7, 4000]  # NaNs before infinities


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("room", [None, 0, 7])
def test_select_above(dtype: Any, room: int | None) -> None:
    x = vector(dtype)
    chosen = select_above(x, 0.5, room)
    assert chosen.indices.tolist() == np.flatnonzero(~(np.abs(x) < 0.5)).tolist()
    assert chosen.values.tobytes() == x[chosen.indices].tobytes()
    assert select_above(x, np.inf).indices.tolist() == [7, 8, 9, 4000]


def test_what_cannot_be_chosen_is_refused() -> None:
    x = np.ones(3, np.float32)
    wrong: Any
    for wrong in (-1, 4, 1.5, True, "all", None):
        with pytest.raises(InvalidArgumentError, match="of 3 elements: pass 0 to that"):
            top_k(x, wrong)
    for wrong in (np.ones(3, np.int32), np.ones(3, np.complex64)):
        with pytest.raises(InvalidArgumentError, match=r"x is \w+: pass one of float32"):
            top_k(wrong, 1)
    for wrong in (-1.0, float("nan"), "low", 1j, True):
        with pytest.raises(InvalidArgumentError, match="pass 0 or more"):
            select_above(x, wrong)
    with pytest.raises(InvalidArgumentError, match="room for -1 elements"):
        select_above(x, 1.0, -1)


def test_the_native_layer_refuses_too() -> None:
    from collectives._ffi import check, ffi, lib

    def refused(*arguments: Any) -> str:
        with pytest.raises(CollectiveError) as caught:
            check(lib.coll_top_k(*arguments))
        return str(caught.value)

    four, none = ffi.new("float[4]"), ffi.NULL
    assert "3 elements of a vector of 2" in refused(four, lib.COLL_FLOAT32, 2, 3, 4, four, four)
    assert "pass 4 or 8" in refused(four, lib.COLL_FLOAT32, 2, 1, 2, four, four)
    assert "convert the vector" in refused(four, lib.COLL_INT32, 2, 1, 4, four, four)
    assert "no dtype number 99" in refused(four, 99, 2, 1, 4, four, four)
    assert "null pointer" in refused(none, lib.COLL_FLOAT32, 2, 1, 4, four, four)
    assert "indices of 8 bytes" in refused(four, lib.COLL_FLOAT32, 2**32 + 1, 1, 4, four, four)
