# SPDX-License-Identifier: Apache-2.0
"""Whether elements of one strided array share memory: results written to it would be lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Of strided arrays it is a hard question in general; of more elements the answer is yes.
_MOST = 10_000_000


def repeats(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether two elements of such an array share bytes; ``strides`` in bytes, of any sign.

    Sliced, transposed and reversed arrays are answered at once; whose strides do not nest, by
    looking at all elements, and beyond ten million of them by yes.
    """
    steps = sorted((abs(step), n) for n, step in zip(shape, strides, strict=True) if n != 1)
    if any(n == 0 for _, n in steps):
        return False
    extent, elements = itemsize, 1
    nested = True
    for step, n in steps:
        nested = nested and step >= extent
        extent += (n - 1) * step
        elements *= n
    if nested:
        return False
    return steps[0][0] == 0 or elements > _MOST or _meet(steps, itemsize)


def _meet(steps: list[tuple[int, int]], itemsize: int) -> bool:
    offsets = np.zeros(1, np.int64)
    for step, n in steps:
        offsets = (offsets[:, None] + step * np.arange(n)).ravel()
    offsets.sort()
    return bool((np.diff(offsets) < itemsize).any())
