# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_packed` do."""

from __future__ import annotations

import collectives as cl
from tests import sweep
from tests.python.graphs import dgx1

KINDS = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")


def everything() -> list[str]:
    """Check every collective that trees are packed for; return what was wrong."""
    comm = cl.init(timeout=30)
    wrong: list[str] = []
    for kind in KINDS:
        cl.pack(dgx1(*range(comm.size)), kind=kind)
        for mode in (None, "inline"):
            for count in (0, 3, 40_001):
                for root in (0, comm.size - 1) if kind in ("broadcast", "reduce") else (0,):
                    found = sweep.once(comm, kind, count, root=root, algorithm="pack", mode=mode)
                    wrong += [f"{kind} {mode} n={count} root={root}: {found}"] if found else []
    return wrong
