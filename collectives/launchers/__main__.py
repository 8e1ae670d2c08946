# SPDX-License-Identifier: Apache-2.0
"""``mpiexec -n 3 python -m collectives.launchers``: who each rank is, and what it got from all.

Each rank prints one line. Where it says "got 0 1 2", the ranks can exchange values.
"""

from __future__ import annotations

import os
import sys

from collectives.errors import CollectiveError
from collectives.launchers.detect import detect, open_directory
from collectives.launchers.directory import Deadline
from collectives.launchers.launch import Launch

_PATIENCE = 60.0  # seconds


def exchanged(launch: Launch, deadline: Deadline) -> str:
    """Return the ranks of all, as each of them has told."""
    if launch.size == 1:
        return "0"
    directory = open_directory(launch, deadline)
    # Longer than one value of PMI, and with bytes that its protocols give a meaning.
    own = f"{launch.rank}".encode() + b"\n; =" * 300
    directory.put(f"hello.{launch.rank}", own, deadline)
    directory.fence(deadline)
    got = [directory.get(f"hello.{rank}", deadline) for rank in range(launch.size)]
    directory.fence(deadline)
    wrong = [rank for rank, value in enumerate(got) if value[-1200:] != b"\n; =" * 300]
    return f"damaged values of {wrong}" if wrong else " ".join(v[:-1200].decode() for v in got)


def main() -> int:
    """Print the line. Returns the exit status."""
    try:
        launch = detect()
        if launch.directory == "none" and launch.launcher == "collrun":
            values = "nothing: they meet in memory"
        else:
            values = exchanged(launch, Deadline(_PATIENCE))
    except CollectiveError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    line = (
        f"rank {launch.rank} of {launch.size}, launcher {launch.launcher} ({launch.how}), "
        f"local rank {launch.local_rank}, hosts {launch.hosts}, directory {launch.directory}, "
        f"got {values}\n"
    )
    os.write(1, line.encode())  # at once: several ranks may write to one pipe
    return 0


if __name__ == "__main__":
    sys.exit(main())
