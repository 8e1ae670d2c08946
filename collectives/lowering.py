# SPDX-License-Identifier: Apache-2.0
"""How a schedule becomes a plan, as the C interface takes it."""

from __future__ import annotations

from typing import Any

from collectives._ffi import ffi
from collectives.names import MODES, STORES


def lowering(mode: str, depth: int, lag: int, stores: str = "ordinary") -> Any:
    """Return a ``coll_lowering``.

    ``mode`` is where messages lie, ``depth`` how many slots a rank has, ``lag`` how many tiles lie
    between two rounds; ``stores`` are those that the plan is to be right with.
    """
    how = ffi.new("coll_lowering *")
    how.size = ffi.sizeof("coll_lowering")
    how.mode, how.depth, how.lag, how.stores = MODES[mode], depth, lag, STORES[stores]
    return how
