# SPDX-License-Identifier: Apache-2.0
"""The main job, ``make bench``: real ranks reduce real gradients, checked, then timed.

Four ranks train examples/digits.py; then collbench measures every algorithm of allreduce on the
sizes of its gradients.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bench.record import ROOT
from examples.digits import SHAPES

RANKS = 4
# The ranks are the parallelism: without this each would start a thread per core for its matrices.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def gradient_bytes() -> list[int]:
    """Return the sizes of the arrays that one step reduces, in bytes, increasing."""
    return sorted(int(np.prod(shape)) * np.dtype(np.float64).itemsize for shape in SHAPES)


def heading(text: str) -> None:
    """Print what comes next."""
    bold = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold[0]}{text}{bold[1]}\n", flush=True)


def run(module: str, *arguments: str) -> None:
    """Run a module of ours; its failure is ours."""
    command = [sys.executable, "-m", module, *arguments]
    code = subprocess.run(command, cwd=ROOT, env=ONE_THREAD | os.environ, check=False).returncode
    if code:
        sys.stderr.write(f"bench: {module} {' '.join(arguments)} ended with exit code {code}\n")
        sys.exit(1)


def main() -> None:
    """Train, measure, plot."""
    parser = argparse.ArgumentParser(prog="python -m bench.main_job", description=__doc__)
    parser.add_argument("--epochs", type=int, default=15, help="of training (15)")
    parser.add_argument("--budget", type=float, default=20, help="seconds for the table (20)")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench")
    chosen = parser.parse_args()
    output = chosen.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    heading(f"1. {RANKS} ranks train a network on handwritten digits; every step is checked")
    epochs = ("--epochs", str(chosen.epochs))
    run("collectives.launch", "-n", str(RANKS), str(ROOT / "examples" / "digits.py"), *epochs)
    heading("2. every algorithm on the sizes of its gradients; every result is checked")
    sizes = ",".join(str(size) for size in gradient_bytes())
    what = ("-n", str(RANKS), "--sizes", sizes, "--dtype", "float64", "--algorithms", "all")
    files = ("--json", str(output / "gradients.json"), "--plot", str(output / "gradients.png"))
    run("collectives.cli", "allreduce", *what, "--budget", str(chosen.budget), *files)
    heading(f"plot: {output / 'gradients.png'}   ({time.perf_counter() - begin:.0f} s in all)")


if __name__ == "__main__":
    main()
