# SPDX-License-Identifier: Apache-2.0
"""One rank of collbench: measures what its parent asks for, and reports in lines of JSON.

Started as ``python -m collectives.cli.worker SPEC``. Rank 0 reports rows and progress on standard
output; a rank that fails reports why.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from collectives import init
from collectives.environment import place
from collectives.exact import Workload
from collectives.measure import Contender, Effort, measure


@dataclass(frozen=True)
class Spec:
    """What the ranks are asked to do. `seconds` are for all sizes together."""

    module: ClassVar[str] = "collectives.cli.worker"

    kind: str
    sizes: list[int]
    dtype: str
    op: str
    root: int
    algorithms: list[str | None]
    mode: str | None
    seconds: float
    iterations: int | None
    pin: bool
    trace: str | None = None
    density: float | None = None

    def as_json(self) -> str:
        """Write it for the command line."""
        return json.dumps(asdict(self))


def pin_to_core(rank: int) -> None:
    """Bind this process to one of the cores that it may use, so that ranks do not wander."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})


def say(**event: Any) -> None:
    """Report one event to the parent, at once."""
    os.write(1, json.dumps(event).encode() + b"\n")


def work(spec: Spec) -> None:
    """Measure every size and say what came out."""
    rank = place().rank
    if spec.pin:
        pin_to_core(rank)  # before init(), which looks at who shares a core with whom
    effort = Effort(spec.seconds / len(spec.sizes), spec.iterations)
    contenders = [Contender(name, spec.mode) for name in spec.algorithms]
    with init() as comm, comm.trace(spec.trace) if spec.trace else nullcontext():
        for size in spec.sizes:
            load = Workload(spec.kind, size, spec.dtype, spec.op, spec.root, spec.density)
            tick = (lambda: say(step=1)) if rank == 0 else None
            rows = measure(comm, load, contenders, effort, tick=tick)
            if rank == 0:
                say(rows=[row.as_json() for row in rows])


def reported(work: Callable[[], None]) -> int:
    """Do the work of one rank, which says why it fails; return its exit code."""
    try:
        work()
    except KeyboardInterrupt:
        return 130  # the parent says so
    except Exception as error:
        say(failed=f"{type(error).__name__}: {error}")
        return 1
    return 0


def main() -> int:
    """Run one rank; return its exit code."""
    return reported(lambda: work(Spec(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    sys.exit(main())
