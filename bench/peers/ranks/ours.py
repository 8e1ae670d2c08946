# SPDX-License-Identifier: Apache-2.0
"""A rank of ours. Each way of calling is one function here and one line of ``VARIANTS``."""

from __future__ import annotations

from typing import Any

import collectives as cl
from bench.peers.ranks import torch_api
from bench.peers.ranks.serve import Station, serve, station
from bench.peers.ranks.work import UNEQUAL, Array, Bound, RefusedError, Work


def ordinary(comm: cl.Communicator, work: Work) -> Bound:
    """Return the plain method on arrays in ordinary memory."""
    return _plain(comm, work, *work.arrays())


def symmetric(comm: cl.Communicator, work: Work) -> Bound:
    """Return the plain method on arrays in memory that all ranks reach."""
    return _plain(comm, work, *work.arrays(comm.empty))


def persistent(comm: cl.Communicator, work: Work) -> Bound:
    """Return a call that is made once for its arrays and begun often."""
    x, out = work.arrays()
    method = getattr(comm.persistent, work.kind)
    return Bound(x, out, method(x) if out is x else method(x, *_lengths(work), out))


def _plain(comm: cl.Communicator, work: Work, x: Array, out: Array) -> Bound:
    method = getattr(comm, work.kind)
    if out is x:
        return Bound(x, out, lambda: method(x))
    lengths = _lengths(work)
    if lengths:
        return Bound(x, out, lambda: method(x, *lengths, out))
    return Bound(x, out, lambda: method(x, out))


def _lengths(work: Work) -> tuple[Any, ...]:
    """Return what a form for unequal parts is given beside its arrays."""
    if work.kind == "alltoallv":
        return [work.parts] * work.ranks, None  # what each sends to each; what this one gets
    return (work.parts,) if work.kind in UNEQUAL else ()


TORCH = "torch"  # torch.distributed's functions, with our backend
METHODS = {"ordinary": ordinary, "persistent": persistent, "symmetric": symmetric}
VARIANTS = (*METHODS, TORCH)


def through_torch(place: Station) -> None:
    """Serve a driver that wants to know what users of torch get."""
    import collectives.torch  # registers the backend

    torch_api.meet(collectives.torch.NAME, place)
    serve(place, cl.__version__, torch_api.bind)
    torch_api.leave()


def main() -> None:
    """Meet the others, then the driver."""
    place = station()
    if place.way == TORCH:
        through_torch(place)
        return
    variant = METHODS[place.way]

    def bind(work: Work) -> Bound:
        try:
            return variant(comm, work)
        except cl.UnsupportedError as error:
            raise RefusedError(str(error)) from None

    with cl.init() as comm:
        serve(place, cl.__version__, bind)


if __name__ == "__main__":
    main()
