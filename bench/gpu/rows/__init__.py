# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: a module each, whose ``figures`` measures them, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.gpu.figures import Figure
from bench.gpu.rows import dense, merging, nccl, selection, small, steps
from bench.gpu.state import Bench

ROWS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "small": small.figures,
    "steps": steps.figures,
    "selection": selection.figures,
    "merging": merging.figures,
    "dense": dense.figures,  # last: it takes what time is left
    "nccl": nccl.figures,
}
ALONE = ("nccl",)  # not measured unless they are asked for: nccl.py says why
