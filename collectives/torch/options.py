# SPDX-License-Identifier: Apache-2.0
"""What torch's option objects say, in the words of this library."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch.distributed import ReduceOp

from collectives.errors import UnsupportedError

OPERATIONS = {
    ReduceOp.SUM: "sum",
    ReduceOp.AVG: "avg",
    ReduceOp.PRODUCT: "prod",
    ReduceOp.MIN: "min",
    ReduceOp.MAX: "max",
    ReduceOp.BAND: "band",
    ReduceOp.BOR: "bor",
    ReduceOp.BXOR: "bxor",
}


def operation(op: Any) -> str:
    """Return the name of a torch reduction. Raises UnsupportedError for PREMUL_SUM."""
    kind = getattr(op, "op", op)
    found = OPERATIONS.get(kind)
    if found is None:
        names = ", ".join(known.name for known in OPERATIONS)
        raise UnsupportedError(
            f"collectives.torch: reduction {getattr(kind, 'name', kind)} is not there: {names} are"
        )
    return found


def is_async(opts: Any) -> bool:
    """Whether the caller goes on before the call is done, as far as it has said."""
    return opts is None or bool(getattr(opts, "asyncOp", True))


def seconds_of(opts: Any, timeout: timedelta | None = None) -> float | None:
    """Return the time-out of a call; None: that of its group."""
    given = getattr(opts, "timeout", None) if timeout is None else timeout
    return None if given is None or given <= timedelta(0) else float(given.total_seconds())
