# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.ddp``: what a step of DistributedDataParallel waits for communication.

A network of ten million parameters, two ranks. Communication that is not hidden is the time of a
step over that of the same step whose hook communicates nothing (torch's ``noop_hook``, made for
this): both copy gradients into buckets and back. The time over a step without buckets (``no_sync``)
is told as well. The processes keep the memory that they free: whether glibc gives gradients back in
each step is chance, and costs more than any communication. Blocks of this library and of gloo
alternate, and each begins with a barrier.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.record import RESULTS, save

WIDTHS = (1024, 2048, 2048, 1792, 256)  # 10.4 million parameters
BATCH = 32
STEPS = 6  # of a block, and as many without communication
KINDS = ("reduced", "no communication", "no buckets")
BACKENDS = ("collectives", "gloo")
GOAL = 1 / 3
KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}

_made: Any = None


def prepare() -> int:
    """Make two networks and warm them up; return how many parameters one has. Runs in a rank."""
    global _made
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook

    torch.manual_seed(0)
    _made = _network(), _network(), torch.randn(BATCH, WIDTHS[0])
    _made[1][0].register_comm_hook(None, noop_hook)
    for trained in _made[:2]:
        for _ in range(3):
            _step(trained)
    return sum(parameter.numel() for parameter in _made[0][0].parameters())


def _network() -> tuple[Any, Any]:
    """Return a network and its optimiser."""
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    layers: list[Any] = []
    for before, after in pairwise(WIDTHS):
        layers += [nn.Linear(before, after), nn.ReLU()]
    network = DistributedDataParallel(nn.Sequential(*layers))
    return network, torch.optim.SGD(network.parameters(), 1e-3)


def block() -> tuple[float, ...]:
    """Return the median seconds of each of ``KINDS`` of steps. Runs in a rank."""
    from torch import distributed

    reduced, idle, _ = _made
    seconds = []
    for trained in (reduced, idle):
        distributed.barrier()
        seconds.append(median(_timed(trained) for _ in range(STEPS)))
    distributed.barrier()
    with reduced[0].no_sync():
        seconds.append(median(_timed(reduced) for _ in range(STEPS)))
    return tuple(seconds)


def _timed(trained: tuple[Any, Any]) -> float:
    begin = time.perf_counter()
    _step(trained)
    return time.perf_counter() - begin


def _step(trained: tuple[Any, Any]) -> None:
    network, optimiser = trained
    x = _made[2]
    optimiser.zero_grad()
    network(x).pow(2).mean().backward()
    optimiser.step()


def _start(rounds: int) -> tuple[int, dict[str, list[list[float]]]]:
    """Start both backends; return how many parameters there are, and the blocks of each."""
    from tests.backend.teams import team

    blocks: dict[str, list[list[float]]] = {name: [] for name in BACKENDS}
    with team(BACKENDS[0], 2) as ours, team(BACKENDS[1], 2) as gloo:
        teams = {BACKENDS[0]: ours, BACKENDS[1]: gloo}
        parameters = [made.run("bench.ddp.prepare")[0] for made in teams.values()]
        for turn in range(rounds):
            for name in BACKENDS if turn % 2 else reversed(BACKENDS):
                found = teams[name].run("bench.ddp.block")
                blocks[name].append([max(kind) for kind in zip(*found, strict=True)])
    return parameters[0], blocks


def _medians(rows: list[list[float]]) -> list[float]:
    return [median(column) for column in zip(*rows, strict=True)]


def _over(blocks: dict[str, list[list[float]]], base: int) -> dict[str, Any]:
    """Return by how much a step takes longer than one of another kind, and ours of gloo's."""
    longer = {name: [times[0] - times[base] for times in some] for name, some in blocks.items()}
    shares = [mine / its for mine, its in zip(*longer.values(), strict=True)]
    return {
        "seconds": {name: median(some) for name, some in longer.items()},
        "of gloo's": {"median": median(shares), "least": min(shares), "largest": max(shares)},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(prog="python -m bench.ddp", description=__doc__)
    parser.add_argument("--starts", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=5, help="of each start of the processes")
    parser.add_argument("--output", type=Path, default=RESULTS / "ddp.json")
    chosen = parser.parse_args(arguments)
    os.environ.update(KEEPS_MEMORY)
    starts = [_start(chosen.rounds) for _ in range(chosen.starts)]
    parameters = starts[0][0]
    # Where memory lies makes more of a difference than anything else: so the median of each start.
    blocks = {name: [_medians(found[name]) for _, found in starts] for name in BACKENDS}
    figures = {
        "parameters": parameters,
        "goal": GOAL,
        "seconds of a step": {
            name: dict(zip(KINDS, _medians(some), strict=True)) for name, some in blocks.items()
        },
        "not hidden": _over(blocks, KINDS.index("no communication")),
        "with buckets": _over(blocks, KINDS.index("no buckets")),
    }
    save(chosen.output, {"figures": figures, "starts": blocks})
    sys.stdout.write(f"{json.dumps(figures, indent=1)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
