# SPDX-License-Identifier: Apache-2.0
"""How a communicator makes plans of sparse sums."""

from __future__ import annotations

from collections.abc import Sequence

from collectives.arrays import Array
from collectives.caller import Caller
from collectives.sparse.plan import SparsePlan, make_plan


class Planning(Caller):
    """Plans of sums at indices that stay the same."""

    def sparse_plan(
        self,
        out_indices: Array,
        in_indices: Array | None = None,
        *,
        length: int,
        degrees: Sequence[int] | None = None,
        timeout: float | None = None,
    ) -> SparsePlan:
        """Tell all ranks at which indices this one will have values, and where it wants sums.

        ``out_indices``: integers below ``length``, which is 2^48 at most, one-dimensional, in any
        order; those that come several times have several values, which add up. ``in_indices``:
        where it wants sums, of the same dtype; where it has values, if None. Each rank has indices
        of its own. Later ``plan.reduce(values)`` moves values only: half of the bytes of allreduce,
        or less, where ranks do not want all. Up to 16 ranks they go whichever way has less to move,
        straight or through a rank that gives the index (``plan.way``), more through a butterfly of
        two layers; or of layers of these ``degrees``, whose product is the number of ranks (Kylix).

        All ranks call it, with the same ``length`` and ``degrees``: else all get MismatchError.
        """
        return make_plan(self, out_indices, in_indices, length, degrees, timeout)
