# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.soak``: random collectives against NumPy, until something is wrong.

``--seconds`` goes on with new seeds; ``--seed`` replays one run, as a failure's last line says.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time

from tests.soak.program import in_threads

CALLS = 1500
SIZES = (2, 3, 4, 5, 8)


def run(how: str, ranks: int, seed: int, number: int) -> str | None:
    """Make one run; return what went wrong."""
    if how == "threads":
        try:
            in_threads(ranks, seed, number)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None
    command = [sys.executable, "-m", "collectives.launch", "-n", str(ranks), sys.executable, "-m"]
    done = subprocess.run(
        [*command, "tests.soak.program", str(seed), str(number)], capture_output=True, text=True
    )
    return None if done.returncode == 0 else done.stdout + done.stderr


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--how", choices=("threads", "processes"))
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--seconds", type=float, default=0, help="go on for so long")
    wish = parser.parse_args()
    end, done, first = time.monotonic() + wish.seconds, 0, random.randrange(2**31)
    for turn in range(10**9):
        how = wish.how or ("threads", "processes")[turn % 2]
        ranks = wish.ranks or SIZES[turn // 2 % len(SIZES)]
        seed = first + turn if wish.seed is None else wish.seed
        wrong = run(how, ranks, seed, wish.calls)
        if wrong is not None:
            print(wrong)
            print(
                f"replay: python -m tests.soak --how {how} --ranks {ranks} --seed {seed} "
                f"--calls {wish.calls}"
            )
            return 1
        done += wish.calls
        print(f"{done} collectives right (seed {seed}, {ranks} {how})", flush=True)
        if time.monotonic() >= end:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
