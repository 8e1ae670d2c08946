# SPDX-License-Identifier: Apache-2.0
"""A rank of Gloo: torch.distributed's all_reduce of a sparse tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.ranks.serve import Station, station
from bench.sparse.ranks.serve import Bound, serve
from bench.sparse.supports import Array, Problem


def main(place: Station) -> None:
    """Meet the others in a file beside the driver's socket, then the driver."""
    import torch
    from torch import distributed

    distributed.init_process_group(
        "gloo", init_method=f"file://{place.meet}.store", rank=place.rank, world_size=place.ranks
    )

    def bind(problem: Problem, way: str, places: Array, values: Array) -> Bound:
        del way
        where = torch.from_numpy(places.astype(np.int64)[None])
        what = torch.from_numpy(values)

        def call() -> Any:
            # It writes its argument, so each call wants one; no element is copied for it.
            x = torch.sparse_coo_tensor(
                where, what, (problem.length,), is_coalesced=True, check_invariants=False
            )
            distributed.all_reduce(x)
            return x

        return Bound(call, read)

    def read(result: Any) -> tuple[Array | None, Array]:
        whole = result.coalesce()
        return whole.indices()[0].numpy(), whole.values().numpy()

    serve(place, torch.__version__, bind)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(station())
