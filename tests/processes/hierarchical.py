# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_hierarchical` do."""

from __future__ import annotations

import json

import collectives as cl
from tests import sweep

KINDS = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce", "barrier")


def everything(levels: str) -> list[str]:
    """Check every hierarchical collective in some modes; return what was wrong."""
    comm = cl.init(timeout=30)
    wrong: list[str] = []
    for kind in KINDS:
        cl.product(kind, json.loads(levels), name="hosts")
        for mode in (None, "staged", "inline"):
            for count in (0, 1, 3, 1003, 40_001):
                for root in range(comm.size if kind in ("broadcast", "reduce") else 1):
                    found = sweep.once(comm, kind, count, root=root, algorithm="hosts", mode=mode)
                    wrong += [f"{kind} {mode} n={count} root={root}: {found}"] if found else []
    return wrong
