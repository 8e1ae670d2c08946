# SPDX-License-Identifier: Apache-2.0
"""A rank of ``bench.hosts.start``: when it called init(), was through, and had its first result."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import collectives as cl


def main() -> None:
    """Begin, call once, and print RANK ENTERED JOINED CALLED: seconds of the monotonic clock."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        import torch  # noqa: F401  as programs under torchrun do
    entered = time.monotonic()
    comm = cl.init()
    joined = time.monotonic()
    total = comm.allreduce(np.full(1, comm.rank, np.float32))
    called = time.monotonic()
    if total[0] != comm.size * (comm.size - 1) // 2:
        raise SystemExit(f"rank {comm.rank}: the sum is {total[0]}")
    # In one piece: ranks share the file.
    os.write(sys.stdout.fileno(), f"{comm.rank} {entered} {joined} {called}\n".encode())
    comm.close()


if __name__ == "__main__":
    main()
