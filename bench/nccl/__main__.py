# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.nccl``: libnccl.so.2 beside the C interface, and groups beside single calls.

Builds and runs coll_nccl, in which both ways of a row take turns, prints ratios within a round
(their median and a 95 % interval of it), and writes bench/results/nccl.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.limits.program import ProgramError, build
from bench.nccl.figures import LEAST_FUSED, Figure, Round, of_calls, of_groups, read
from bench.record import RESULTS, save

READY = "COLL_NCCL"  # environment variable: a coll_nccl that is built already
TIMEOUT_S = 300.0

# Ranks, whether over TCP, how much faster a group of 100 calls is to be.
GROUPS = ((2, False, 1.0), (2, True, LEAST_FUSED), (4, False, LEAST_FUSED), (4, True, LEAST_FUSED))


def rounds_of(program: Path, what: str, ranks: int, rounds: int, tcp: bool) -> list[Round]:
    """Run coll_nccl."""
    command = [str(program), what, str(ranks), str(rounds)]
    env = os.environ | {"NCCL_SHM_DISABLE": "1" if tcp else "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=env
    )
    if done.returncode:
        raise ProgramError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return read(done.stdout)


def measured(rounds: int) -> list[Figure]:
    """Measure all rows."""
    program = Path(os.environ.get(READY) or build("release", "coll_nccl", folder="nccl"))
    found = of_calls("allreduce, 2 ranks", rounds_of(program, "calls", 2, rounds, tcp=False))
    for ranks, tcp, least in GROUPS:
        row = f"group of 100, {ranks} ranks, {'tcp' if tcp else 'memory'}"
        found.append(of_groups(row, rounds_of(program, "groups", ranks, rounds, tcp), least))
    return found


def shown(figure: Figure) -> str:
    """Return a line for the screen."""
    first, second = figure.ns
    interval = "" if figure.low is None else f" [{figure.low:.2f}, {figure.high:.2f}]"
    verdict = "met" if figure.met else "missed"
    return (
        f"{figure.row:32} {figure.key:9} {first:12.0f} ns {second:12.0f} ns "
        f"{figure.ratio:7.2f}{interval}  {figure.goal}: {verdict}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; with --strict a missed goal is exit code 1. No figures: 2."""
    parser = argparse.ArgumentParser(prog="python -m bench.nccl", description=__doc__)
    parser.add_argument("--rounds", type=int, default=31, help="of each row (31)")
    parser.add_argument("--output", type=Path, default=RESULTS / "nccl.json")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error("--rounds must be 1 or more")
    try:
        found = measured(chosen.rounds)
    except (ProgramError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"bench.nccl: {error}\n")
        return 2
    save(chosen.output, {"rows": [figure.as_json() for figure in found]})
    print("\n".join(map(shown, found)))
    print(f"{sum(it.met for it in found)} of {len(found)} goals met; {chosen.output}")
    return 1 if chosen.strict and not all(it.met for it in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
