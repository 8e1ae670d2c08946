# SPDX-License-Identifier: Apache-2.0
"""A rank of Gloo, through torch.distributed on tensors that share memory with NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.ranks.serve import Station, serve, station
from bench.peers.ranks.work import ROOT, Array, Bound, Work


def main(place: Station) -> None:
    """Meet the others in a file beside the driver's socket, then the driver."""
    import torch
    from torch import distributed

    distributed.init_process_group(
        "gloo", init_method=f"file://{place.meet}.store", rank=place.rank, world_size=place.ranks
    )

    def tensor(array: Array) -> Any:
        if array.dtype.name != "bfloat16":
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)

    def bind(work: Work) -> Bound:
        x, out = work.arrays()
        give = tensor(x)
        take = give if out is x else tensor(out)
        calls = {
            "allreduce": lambda: distributed.all_reduce(take),
            "reduce_scatter": lambda: distributed.reduce_scatter_tensor(take, give),
            "allgather": lambda: distributed.all_gather_into_tensor(take, give),
            "broadcast": lambda: distributed.broadcast(take, ROOT),
            "alltoall": lambda: distributed.all_to_all_single(take, give),
        }
        return Bound(x, out, calls[work.kind])

    serve(place, torch.__version__, bind)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(station())
