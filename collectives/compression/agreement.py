# SPDX-License-Identifier: Apache-2.0
"""Sums of what a compressor makes of arrays, in which the ranks compare these arrays, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectives.arrays import operand
from collectives.names import Rest, how, op_code

if TYPE_CHECKING:
    from collectives.compression.codec import Vector
    from collectives.reductions import Reductions


def compared(
    comm: Reductions, code: Vector, op: str, timeout: Rest, *, how_made: str, of: Vector
) -> None:
    """Reduce ``code`` in place, where all ranks have made theirs alike, of arrays that are alike.

    Raises MismatchError on all ranks where ``how_made``, or the dtype or the length of ``of``,
    differs: codes may be alike, of arrays that are not.
    """
    both = operand(code, "allreduce")
    options = how("allreduce", None, None, timeout)
    words = f"{of.size} {of.dtype} compressed by {how_made}"
    comm._run("allreduce", None, "allreduce", both, both, options, op_code("allreduce", op),
              0, None, None, words)  # fmt: skip
