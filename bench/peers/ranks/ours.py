# SPDX-License-Identifier: Apache-2.0
"""A rank of ours. Each way of calling is one function here and one line of ``VARIANTS``."""

from __future__ import annotations

import collectives as cl
from bench.peers.ranks.serve import serve, station
from bench.peers.ranks.work import ROOT, Bound, Work


def ordinary(comm: cl.Communicator, work: Work) -> Bound:
    """Return the plain method on arrays in ordinary memory, in place where that is possible."""
    x, out = work.arrays()
    method = getattr(comm, work.kind)
    if work.kind == "broadcast":
        return Bound(x, out, lambda: method(x, ROOT))
    if out is x:
        return Bound(x, out, lambda: method(x))
    return Bound(x, out, lambda: method(x, out))


VARIANTS = {"ordinary": ordinary}


def main() -> None:
    """Meet the others, then the driver."""
    place = station()
    variant = VARIANTS[place.way]
    with cl.init() as comm:
        serve(place, cl.__version__, lambda work: variant(comm, work))


if __name__ == "__main__":
    main()
