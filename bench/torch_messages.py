# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.torch_messages``: messages through torch.distributed, beside gloo's.

Two ranks: a message there and back (half of its time is told), and one each way at once, by
``batch_isend_irecv``. Blocks of this library and of gloo alternate.
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

SIZES = (8, 4 << 10, 64 << 10, 1 << 20, 16 << 20)  # bytes
BACKENDS = ("collectives", "gloo")
WAYS = ("one way", "both ways")


def block(nbytes: int) -> list[float]:
    """Return the median seconds of each of ``WAYS``. Runs in a rank."""
    import torch
    from torch import distributed as dist

    rank = dist.get_rank()
    x, got = torch.ones(nbytes // 4), torch.empty(nbytes // 4)

    def there_and_back() -> None:
        if rank == 0:
            dist.send(x, 1)
            dist.recv(got, 1)
        else:
            dist.recv(got, 0)
            dist.send(got, 0)

    def both_ways() -> None:
        calls = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()

    times = [median(_timed(way, nbytes)) for way in (there_and_back, both_ways)]
    assert bool((got == 1).all())
    return [times[0] / 2, times[1]]


def _timed(way: Callable[[], None], nbytes: int) -> list[float]:
    from torch import distributed

    found = []
    distributed.barrier()
    for _ in range(5 if nbytes > 4 << 20 else 30):
        begin = time.perf_counter()
        way()
        found.append(time.perf_counter() - begin)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and save."""
    from tests.backend.teams import team

    parser = argparse.ArgumentParser(prog="python -m bench.torch_messages", description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--output", type=Path, default=RESULTS / "torch_messages.json")
    chosen = parser.parse_args(arguments)
    blocks: dict[str, dict[int, list[list[float]]]] = {
        name: {nbytes: [] for nbytes in SIZES} for name in BACKENDS
    }
    with team(BACKENDS[0], 2) as ours, team(BACKENDS[1], 2) as gloo:
        teams = {BACKENDS[0]: ours, BACKENDS[1]: gloo}
        for turn in range(-1, chosen.rounds):  # the first warms up
            for nbytes in SIZES:
                for name in BACKENDS if turn % 2 else reversed(BACKENDS):
                    found = teams[name].run("bench.torch_messages.block", nbytes)[0]
                    if turn >= 0:
                        blocks[name][nbytes].append(found)
    figures = [
        _figure(way, nbytes, *([row[i] for row in blocks[name][nbytes]] for name in BACKENDS))
        for i, way in enumerate(WAYS)
        for nbytes in SIZES
    ]
    save(chosen.output, {"figures": figures})
    for figure in figures:
        sys.stdout.write(f"{json.dumps(figure)}\n")
    return 0


def _figure(way: str, nbytes: int, ours: list[float], gloo: list[float]) -> dict[str, Any]:
    ratios = sorted(its / mine for mine, its in zip(ours, gloo, strict=True))
    return {
        "way": way,
        "bytes": nbytes,
        "microseconds": {
            BACKENDS[0]: round(median(ours) * 1e6, 1),
            BACKENDS[1]: round(median(gloo) * 1e6, 1),
        },
        "gloo's over ours": [round(one, 2) for one in (median(ratios), ratios[0], ratios[-1])],
    }


if __name__ == "__main__":
    raise SystemExit(main())
