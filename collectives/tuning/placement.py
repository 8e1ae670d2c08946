# SPDX-License-Identifier: Apache-2.0
"""How far apart the cores of two ranks are while they race."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collectives.machine_probe import measured_costs

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_LOOK = 1e-3  # seconds of a look


def cores_are_far(comm: Communicator) -> bool:
    """Tell whether two ranks of one machine have cores that share no cache, at this moment.

    Every rank must call it, and gets the same. Virtual machines move their cores now and then.
    Among more ranks it does not matter: one plan runs wherever they are.
    """
    if comm.transport != "memory" or comm.size != 2:
        return False
    return measured_costs(comm, _LOOK).far.measured
