# SPDX-License-Identifier: Apache-2.0
"""A rank of ``bench.hosts.levels``: allreduce as the library chooses, or by a named algorithm."""

from __future__ import annotations

import collectives as cl
from bench.peers.channel import Message
from bench.peers.ranks.serve import Server, attend, station
from bench.peers.ranks.work import Bound, Work


class Caller:
    """One call, by whatever algorithm the driver has named last."""

    def __init__(self, comm: cl.Communicator) -> None:
        self._comm = comm
        self._algorithm: str | None = None

    def bind(self, work: Work) -> Bound:
        """Return the call on arrays of its own, in place."""
        x, out = work.arrays()
        return Bound(x, out, lambda: self._comm.allreduce(x, algorithm=self._algorithm))

    def choose(self, algorithm: str | None) -> tuple[Message, bytes]:
        """Name the algorithm of all calls from now on; None: the library's choice."""
        self._algorithm = algorithm
        return {}, b""


def main() -> None:
    """Meet the others, then the driver."""
    place = station()
    with cl.init() as comm:
        caller = Caller(comm)
        attend(place, cl.__version__, Server(place, caller.bind).orders | {"choose": caller.choose})


if __name__ == "__main__":
    main()
