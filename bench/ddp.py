# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.ddp``: what a step of DistributedDataParallel waits for communication.

A network of ten million parameters, two ranks. What is not hidden is the time of a step over that
of the same step without communication (``no_sync``); blocks of this library and of gloo alternate,
and each begins with a barrier.
"""

from __future__ import annotations

import argparse
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
BACKENDS = ("collectives", "gloo")
GOAL = 1 / 3

_made: Any = None


def prepare() -> int:
    """Make the network and warm it up; return how many parameters it has. Runs in a rank."""
    global _made
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    layers: list[Any] = []
    for before, after in pairwise(WIDTHS):
        layers += [nn.Linear(before, after), nn.ReLU()]
    network = DistributedDataParallel(nn.Sequential(*layers))
    x = torch.randn(BATCH, WIDTHS[0])
    _made = network, torch.optim.SGD(network.parameters(), 1e-3), x
    for _ in range(3):
        _step()
    return sum(parameter.numel() for parameter in network.parameters())


def block() -> tuple[float, float]:
    """Return the median seconds of a step, and of one without communication. Runs in a rank."""
    from torch import distributed

    network = _made[0]
    distributed.barrier()
    together = [_timed() for _ in range(STEPS)]
    distributed.barrier()
    with network.no_sync():
        alone = [_timed() for _ in range(STEPS)]
    return median(together), median(alone)


def _timed() -> float:
    begin = time.perf_counter()
    _step()
    return time.perf_counter() - begin


def _step() -> None:
    network, optimiser, x = _made
    optimiser.zero_grad()
    network(x).pow(2).mean().backward()
    optimiser.step()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and save."""
    from tests.backend.teams import team

    parser = argparse.ArgumentParser(prog="python -m bench.ddp", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULTS / "ddp.json")
    chosen = parser.parse_args(arguments)
    blocks: dict[str, list[tuple[float, float]]] = {name: [] for name in BACKENDS}
    with team(BACKENDS[0], 2) as ours, team(BACKENDS[1], 2) as gloo:
        teams = {BACKENDS[0]: ours, BACKENDS[1]: gloo}
        parameters = {name: made.run("bench.ddp.prepare")[0] for name, made in teams.items()}
        for turn in range(chosen.rounds):
            for name in BACKENDS if turn % 2 else reversed(BACKENDS):
                found = teams[name].run("bench.ddp.block")
                blocks[name].append((max(f[0] for f in found), max(f[1] for f in found)))
    exposed = {name: [both - alone for both, alone in some] for name, some in blocks.items()}
    shares = [mine / its for mine, its in zip(*exposed.values(), strict=True)]
    figures = {
        "parameters": parameters[BACKENDS[0]],
        "seconds not hidden": {name: median(some) for name, some in exposed.items()},
        "of gloo's": {"median": median(shares), "least": min(shares), "largest": max(shares)},
        "goal": GOAL,
    }
    save(chosen.output, {"figures": figures, "blocks": blocks})
    for name, some in blocks.items():
        both, alone = (median(column) for column in zip(*some, strict=True))
        sys.stdout.write(f"{name}: a step {both * 1e3:.1f} ms, without {alone * 1e3:.1f} ms\n")
    sys.stdout.write(f"{figures}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
