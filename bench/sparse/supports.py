# SPDX-License-Identifier: Apache-2.0
"""Which elements of a vector a rank has: the same on every library, and known to all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.sparse.real import REAL, make, support_of

Array = npt.NDArray[Any]

SYNTHETIC = ("uniform", "skewed", "clustered")
SUPPORTS = (*SYNTHETIC, *REAL)
_CLUSTER = 256  # neighbours
_DRAWS = 6  # where elements are many and steep, fewer than wanted are found
_STEEP = 5.0  # skewed: half of the elements lie in the first 2^-5 of the vector


@dataclass(frozen=True)
class Problem:
    """A sparse allreduce: where elements lie, how long the vector is, which share is there."""

    support: str
    length: int
    density: float
    ranks: int

    @property
    def entries(self) -> int:
        """About how many elements each rank has."""
        return max(round(self.length * self.density), 1)

    def __str__(self) -> str:
        return f"{self.support} {self.density:.3%} of {self.length}, {self.ranks} ranks"

    def words(self) -> str:
        """Return it as one word, for a rank."""
        return f"{self.support}:{self.length}:{self.density!r}:{self.ranks}"

    @classmethod
    def read(cls, words: str) -> Problem:
        """Read what :meth:`words` wrote."""
        support, length, density, ranks = words.split(":")
        return cls(support, int(length), float(density), int(ranks))


def real_problem(support: str, ranks: int) -> Problem:
    """Return the problem of a real gradient, whose support is found here."""
    length, entries = make(support, ranks)
    return Problem(support, length, entries / length, ranks)


def indices(problem: Problem, rank: int) -> Array:
    """Return the ascending int32 indices of a rank."""
    if problem.support in REAL:
        return support_of(problem.support, problem.ranks, rank)
    rng = np.random.default_rng([rank, problem.length, problem.entries])
    n, k = problem.length, problem.entries
    if k >= n:
        return np.arange(n, dtype=np.int32)
    if problem.support == "clustered":
        blocks = _distinct(rng, max(n // _CLUSTER, 1), max(k // _CLUSTER, 1), 1.0)
        found = (blocks[:, None] * _CLUSTER + np.arange(_CLUSTER)).reshape(-1)
        return found[found < n][:k].astype(np.int32)
    steep = _STEEP if problem.support == "skewed" else 1.0
    return _distinct(rng, n, k, steep).astype(np.int32)


def _distinct(rng: np.random.Generator, n: int, k: int, steep: float) -> Array:
    """Return about k distinct numbers below n, ascending; small ones more often where steep."""
    if steep == 1.0 and k > n // 8:
        return np.flatnonzero(rng.random(n) < k / n)
    found = np.empty(0, np.int64)
    for _ in range(_DRAWS):
        more = (n * rng.random(max(k - found.size, 16) * 5 // 4) ** steep).astype(np.int64)
        found = np.union1d(found, more)
        if found.size >= k:
            break
    if found.size > k:
        found = np.sort(rng.permutation(found)[:k])
    return found


def values(problem: Problem, rank: int, entries: int) -> Array:
    """Return float32 values of which every sum is exact, none of them zero."""
    del problem
    return (1 + (np.arange(entries) * 7 + rank) % 13).astype(np.float32)


def expected(problem: Problem) -> tuple[Array, Array]:
    """Return indices and values of the sum over all ranks."""
    parts = [indices(problem, rank) for rank in range(problem.ranks)]
    sums = [values(problem, rank, part.size) for rank, part in enumerate(parts)]
    if sum(part.size for part in parts) > problem.length // 4:
        whole = np.zeros(problem.length, np.float32)
        for part, those in zip(parts, sums, strict=True):
            whole[part] += those
        places = np.flatnonzero(whole).astype(np.int32)
        return places, whole[places]
    places, where = np.unique(np.concatenate(parts), return_inverse=True)
    return places, np.bincount(where, np.concatenate(sums)).astype(np.float32)
