# SPDX-License-Identifier: Apache-2.0
"""What torch's option objects say, in the words of this library."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch.distributed import ReduceOp

from collectives.errors import InvalidArgumentError, UnsupportedError

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
    """Return how long to wait, in seconds, as which torch takes it too; None: as long as it takes.

    Torch's Work takes 0 for that.
    """
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    return seconds if seconds > 0 else None


def limits_of(opts: Any, timeout: timedelta | float | None = None) -> dict[str, Any]:
    """Return the time-out of a call as its keyword; nothing where it is that of the group.

    Raises InvalidArgumentError for 0.
    """
    if timeout is None:
        timeout = getattr(opts, "timeout", None)
        # What is negative is unset. So it is in most calls, which this must cost next to nothing.
        if timeout is None or timeout.days < 0:
            return _NO_LIMIT
    seconds = seconds_of(timeout)
    if seconds is not None:
        return {"timeout": seconds}
    check_time(timeout)
    return _NO_LIMIT


def check_time(timeout: timedelta | float) -> None:
    """Refuse a time-out of 0, which would be over at once."""
    if timeout in (0, timedelta(0)):
        raise InvalidArgumentError(
            "collectives.torch: the time-out is 0, over before anything is done: give one above "
            "that, or none for that of the group"
        )
