# SPDX-License-Identifier: Apache-2.0
"""What torch's option objects say, in the words of this library."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch.distributed import ReduceOp

from collectives.errors import UnsupportedError

# By number: what torch's names need to be looked up takes as long as a small call.
OPERATIONS = {
    int(ReduceOp.SUM): "sum",
    int(ReduceOp.AVG): "avg",
    int(ReduceOp.PRODUCT): "prod",
    int(ReduceOp.MIN): "min",
    int(ReduceOp.MAX): "max",
    int(ReduceOp.BAND): "band",
    int(ReduceOp.BOR): "bor",
    int(ReduceOp.BXOR): "bxor",
}
_NO_LIMIT: dict[str, Any] = {}


def operation(op: Any) -> str:
    """Return the name of a torch reduction. Raises UnsupportedError for PREMUL_SUM."""
    found = OPERATIONS.get(hash(op))  # its number, in half the time of asking for that
    if found is None:
        kind = getattr(op, "op", op)
        names = ", ".join(ReduceOp.RedOpType(known).name for known in OPERATIONS)
        raise UnsupportedError(
            f"collectives.torch: reduction {getattr(kind, 'name', kind)} is not there: {names} are"
        )
    return found


def root_of(opts: Any, root: int | None) -> tuple[Any, int]:
    """Return the options and the root, which may stand in their place; else 0."""
    if isinstance(opts, int):  # by position
        return None, opts
    if root is not None:
        return opts, root
    return opts, 0 if opts is None else int(opts.rootRank)


def is_async(opts: Any) -> bool:
    """Whether the caller goes on before the call is done, as far as it has said."""
    return opts is None or bool(getattr(opts, "asyncOp", True))


def seconds_of(timeout: timedelta | float) -> float | None:
    """Return a time-out in seconds, as which torch takes them too; None where it is unset."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    return seconds if seconds > 0 else None


def limits_of(opts: Any, timeout: timedelta | float | None = None) -> dict[str, Any]:
    """Return the time-out of a call as its keyword; nothing where it is that of the group."""
    if timeout is None:
        timeout = getattr(opts, "timeout", None)
        if timeout is not None and timeout.days < 0:  # unset
            return _NO_LIMIT
    seconds = None if timeout is None else seconds_of(timeout)
    return _NO_LIMIT if seconds is None else {"timeout": seconds}
