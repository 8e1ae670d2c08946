# SPDX-License-Identifier: Apache-2.0
"""Calls of torch.distributed on tensors that share memory with NumPy's arrays, by any backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.ranks.serve import Station
from bench.peers.ranks.work import ROOT, Array, Bound, Work


def meet(backend: str, place: Station) -> str:
    """Meet the others in a file beside the driver's socket; return torch's version."""
    import torch
    from torch import distributed

    distributed.init_process_group(
        backend,
        init_method=f"file://{place.meet}.store",
        rank=place.rank,
        world_size=place.ranks,
    )
    return str(torch.__version__)


def leave() -> None:
    """End the default group."""
    from torch import distributed

    distributed.destroy_process_group()


def bind(work: Work) -> Bound:
    """Return the call of a cell, through torch's functions."""
    from torch import distributed

    x, out = work.arrays()
    give = _tensor(x)
    take = give if out is x else _tensor(out)
    parts = work.parts
    calls = {
        "allreduce": lambda: distributed.all_reduce(take),
        "reduce_scatter": lambda: distributed.reduce_scatter_tensor(take, give),
        "allgather": lambda: distributed.all_gather_into_tensor(take, give),
        "broadcast": lambda: distributed.broadcast(take, ROOT),
        "alltoall": lambda: distributed.all_to_all_single(take, give),
        "alltoallv": lambda: distributed.all_to_all_single(take, give, parts, parts),
    }
    if work.kind == "allgatherv":
        pieces = list(take.split(parts))
        return Bound(x, out, lambda: distributed.all_gather(pieces, give))
    if work.kind == "reduce_scatterv":
        pieces = list(give.split(parts))
        return Bound(x, out, lambda: distributed.reduce_scatter(take, pieces))
    return Bound(x, out, calls[work.kind])


def _tensor(array: Array) -> Any:
    import torch

    if array.dtype.name != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
