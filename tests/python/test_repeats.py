# SPDX-License-Identifier: Apache-2.0
"""Which strided arrays hold an element twice, beside a list of all the bytes that they touch."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from collectives.repeats import repeats

SIDES = st.lists(st.tuples(st.integers(0, 4), st.integers(-40, 40)), max_size=4)


@given(sides=SIDES, itemsize=st.sampled_from([1, 2, 4, 8, 16]))
@example(sides=[(2, 3), (2, 2)], itemsize=1)  # strides that do not nest, and yet share nothing
@example(sides=[(3, 8), (2, 8)], itemsize=8)  # a sliding window
@example(sides=[(2, 12), (2, 4)], itemsize=8)  # parts of elements
@example(sides=[(1, 0), (3, 8)], itemsize=8)
def test_as_a_list_of_bytes_says(sides: list[tuple[int, int]], itemsize: int) -> None:
    shape, strides = [n for n, _ in sides], [step for _, step in sides]
    touched = [
        sum(i * step for i, step in zip(index, strides, strict=True)) + byte
        for index in product(*map(range, shape))
        for byte in range(itemsize)
    ]
    assert repeats(shape, strides, itemsize) == (len(set(touched)) < len(touched))


def test_sliced_and_turned_arrays_are_answered_without_a_look_at_elements() -> None:
    x = np.lib.stride_tricks.as_strided(np.empty(1), (1 << 20, 1 << 20, 8), (1 << 30, 64, -8))
    assert not repeats(x.shape, x.strides, x.itemsize)
    assert not repeats(x.T.shape, x.T.strides, x.itemsize)
    assert repeats(x.shape, (1 << 30, 56, 8), x.itemsize)
