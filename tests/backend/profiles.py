# SPDX-License-Identifier: Apache-2.0
"""What torch's profiler sees of a group."""

from __future__ import annotations

import torch
from torch import distributed as dist

from tests.backend.methods import me


def profiled() -> None:
    """A profiler sees calls and messages, and what they take, before their wait is over."""
    from torch.profiler import ProfilerActivity, profile

    group, rank, size = me()
    x, parts = torch.ones(4, 250), torch.empty(size, 2)
    after, before = (rank + 1) % size, (rank - 1) % size
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        dist.all_reduce(x)
        dist.broadcast(x, 0, async_op=True).wait()
        dist.all_gather(list(parts), torch.ones(2))
        dist.reduce_scatter(torch.empty(2), list(parts))
        dist.all_to_all_single(parts[:, 0].contiguous(), torch.ones(size))
        group.allreduce_coalesced([x, torch.ones(3)]).wait()
        dist.barrier()
        sent = dist.isend(torch.ones(7), after)
        dist.recv(torch.empty(7), before)
        sent.wait()
        sent = dist.isend(torch.ones(8), after)
        dist.recv(torch.empty(8))
        sent.wait()
    found = [(event.name, event.input_shapes) for event in seen.events()]
    # Torch 2.11 loses what ends on another thread than it began on.
    across = [("broadcast", [[4, 250]]), ("all_reduce_coalesced", [[4, 250], [3]])]
    if torch.__version__ < "2.13":
        across.clear()
    for name, shapes in (
        ("all_reduce", [[4, 250]]),
        *across,
        ("all_gather", [[2]]),
        ("reduce_scatter", [[2]] * size),
        ("all_to_all", [[size]]),
        ("barrier", []),
        ("send", [[7]]),
        ("recv", [[7]]),
        ("send", [[8]]),
        ("recvAnySource", [[8]]),
    ):
        assert (f"collectives:{name}", shapes) in found, (name, shapes, found)
