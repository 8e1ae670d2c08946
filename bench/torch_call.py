# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.torch_call``: what torch's way adds to a call of 8 bytes between two ranks.

A synchronous ``all_reduce`` through torch.distributed, the same call on the group's communicator,
and the same as a persistent call. What the first takes longer is compared with what a call costs
whose backend does nothing: torch's own ``fake`` one, in the same processes. Blocks alternate.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.record import RESULTS, save

CALLS = 500  # of a block
GOAL = 2.0  # fake calls
WAYS = ("torch", "communicator", "persistent", "fake")

_ways: dict[str, Callable[[], Any]] = {}


def prepare(cores: Sequence[int]) -> None:
    """Make the calls, on a core of this rank's own. Runs in a rank."""
    import os

    import torch
    from torch import distributed
    from torch.testing._internal.distributed import fake_pg  # noqa: F401 — registers its backend

    from collectives.torch import communicator_of

    os.sched_setaffinity(0, {cores[distributed.get_rank()]})
    x = torch.ones(2)
    comm, fake = communicator_of(), distributed.new_group(backend="fake")
    _ways["torch"] = lambda: distributed.all_reduce(x)
    _ways["communicator"] = lambda: comm.allreduce(x, op="sum")
    _ways["persistent"] = comm.persistent.allreduce(x)
    _ways["fake"] = lambda: distributed.all_reduce(x, group=fake)
    x.zero_()


def block() -> list[float]:
    """Return the seconds of a call of each way. Runs in a rank."""
    from torch import distributed

    found = []
    for call in _ways.values():
        distributed.barrier()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - begin) / CALLS)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and save."""
    import os

    from tests.backend.teams import team

    parser = argparse.ArgumentParser(prog="python -m bench.torch_call", description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--output", type=Path, default=RESULTS / "torch_call.json")
    chosen = parser.parse_args(arguments)
    cores = sorted(os.sched_getaffinity(0))
    with team("collectives", 2) as ranks:
        ranks.run("bench.torch_call.prepare", [cores[0], cores[-1]])
        rounds = [ranks.run("bench.torch_call.block")[0] for _ in range(chosen.rounds)]
    shares = [(torch - ours) / fake for torch, ours, _, fake in rounds]
    bare = [(torch - persistent) / fake for torch, _, persistent, fake in rounds]
    figures = {
        "seconds": dict(zip(WAYS, map(median, zip(*rounds, strict=True)), strict=True)),
        "added, in fake calls": _spread(shares),
        "added to a persistent call, in fake calls": _spread(bare),
        "goal": GOAL,
    }
    save(chosen.output, {"figures": figures})
    sys.stdout.write(f"{json.dumps(figures, indent=1)}\n")
    return 0


def _spread(shares: Sequence[float]) -> dict[str, float]:
    tenth = len(shares) // 10
    ordered = sorted(shares)
    return {
        "median": median(shares),
        "lowest tenth": ordered[tenth],
        "highest tenth": ordered[-1 - tenth],
    }


if __name__ == "__main__":
    raise SystemExit(main())
