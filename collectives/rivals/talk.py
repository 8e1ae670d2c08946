# SPDX-License-Identifier: Apache-2.0
"""What ranks tell each other about a rival: small collectives of the host, in the turn of a call.

All ranks come to them in the same call of the program, with the same ``words``, which errors quote:
so one that calls something else gives all a MismatchError, and one that is gone is told of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from collectives._ffi import lib
from collectives.arrays import operand
from collectives.names import AUTOMATIC, OPS

if TYPE_CHECKING:
    from collectives.caller import Caller

ROW = 512  # bytes that a rank tells


def told(comm: Caller, row: bytes, words: str, timeout: float = 0.0) -> list[bytes]:
    """Return what each rank tells: the first bytes of its row, the rest zeros."""
    own, rows = np.zeros(ROW, np.uint8), np.zeros(ROW * comm.size, np.uint8)
    cut = row[:ROW]
    own[: len(cut)] = np.frombuffer(cut, np.uint8)
    _made(comm, "allgather", own, rows, 0, words, timeout)
    return [bytes(one) for one in rows.reshape(comm.size, ROW)]


def largest(comm: Caller, values: npt.NDArray[np.float64], words: str) -> None:
    """Replace values by the largest of all ranks."""
    _made(comm, "allreduce", values, values, OPS["max"], words, 0.0)


def all_agree(comm: Caller, ready: bool, words: str, timeout: float = 0.0) -> bool:
    """Tell whether all ranks are ready."""
    flag = np.array([ready], np.uint8)
    _made(comm, "allreduce", flag, flag, OPS["min"], words, timeout)
    return bool(flag[0])


def _made(comm: Caller, kind: str, x: Any, out: Any, op: int, words: str, timeout: float) -> None:
    """Make a call at once, whatever waits behind the one that it belongs to."""
    source, target = operand(x, kind), operand(out, kind)
    options = (*AUTOMATIC[:2], timeout, *AUTOMATIC[3:])
    request, _kept = comm._request(kind, source, target, options, op, 0, None, None, words)
    comm._handle.call(kind, lib.coll_run, request)
