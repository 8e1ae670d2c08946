# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.wire``: a raw duplex exchange over a shaped link, in Mbit/s each way."""

from __future__ import annotations

import argparse
import sys

from bench.wire.exchange import exchange
from tests.hosts import Hosts

MIB = 1 << 20


def main() -> int:
    """Print what the link carries; 1 where the run is void."""
    parser = argparse.ArgumentParser(prog="python -m bench.wire", description=__doc__)
    parser.add_argument("--mbit", type=float, default=1000.0, help="rate of the link")
    parser.add_argument("--mib", type=int, default=64, help="size of a block")
    parser.add_argument("--blocks", type=int, default=5, help="blocks that are measured")
    chosen = parser.parse_args()
    with Hosts(2, mbit=chosen.mbit) as hosts:
        shape = hosts[0].shapes()[0]
        assert shape is not None
        print(
            f"{chosen.mbit:g} Mbit/s, bucket {shape.bucket} bytes, queue {shape.queue_ms} ms, "
            f"reno; {chosen.blocks} blocks of {chosen.mib} MiB both ways, the median, after one"
        )
        ways = exchange(hosts[0], hosts[1], chosen.mib * MIB, chosen.blocks)
    for way in ways:
        print(way.sentence(chosen.mbit))
    return 1 if any(way.void(chosen.mbit) for way in ways) else 0


if __name__ == "__main__":
    sys.exit(main())
