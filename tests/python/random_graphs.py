# SPDX-License-Identifier: Apache-2.0
"""Irregular graphs to pack trees into."""

from __future__ import annotations

from itertools import combinations

from hypothesis import strategies as st

from tests.python.graphs import Links


@st.composite
def graphs(draw: st.DrawFn, most: int = 9, both: bool = True) -> Links:
    """Some links between 2 to ``most`` ranks, all joined by a random tree."""
    p = draw(st.integers(2, most))
    rate = st.integers(1, 6)
    found = dict[tuple[int, int], float]()
    for rank in range(1, p):
        other = draw(st.integers(0, rank - 1))
        found[rank, other], found[other, rank] = draw(rate), draw(rate)
    for a, b in draw(st.lists(st.sampled_from([*combinations(range(p), 2)]), max_size=2 * p)):
        found[a, b] = draw(rate)
        if both:
            found[b, a] = draw(rate)
    return found
