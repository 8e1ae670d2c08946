# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.sparse``: allreduce of sparse vectors, beside Gloo, MPICH and dense ones."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bench.peers.libraries import OURS
from bench.peers.teams import TeamError
from bench.peers.venvs import VenvError
from bench.record import RESULTS, save
from bench.sparse.cells import AUTO, DENSE_ARRAY, FIXED, MPI_WAYS, PLANS, Entry, Record
from bench.sparse.real import REAL
from bench.sparse.report import line, summary
from bench.sparse.run import Wish, measure
from bench.sparse.supports import SUPPORTS, Problem, real_problem

DENSITIES = (0.00001, 0.0001, 0.001, 0.01, 0.05, 0.2, 1.0)
PEERS = ("gloo", "mpich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A wrong result is 1, a failure 2."""
    chosen = _parser().parse_args(arguments)
    problems = _problems(chosen)
    entries = [Entry(OURS, way) for way in (AUTO, *(chosen.ways or FIXED), DENSE_ARRAY)]
    for library in chosen.libraries:
        ways = ("all_reduce",) if library == "gloo" else MPI_WAYS
        entries += [Entry(library, way) for way in ways]
    wish = Wish(problems, entries, chosen.rounds, chosen.mbit if chosen.hosts else 0.0)
    records: list[Record] = []
    steps: dict[str, float] = {}
    failed = 0

    def keep(sentence: str) -> None:
        """Tell how far it is, and save that much."""
        _say(sentence)
        _save(chosen, wish, records, steps)

    try:
        measure(wish, records, steps, keep)
    except (TeamError, VenvError, OSError, RuntimeError) as error:
        sys.stderr.write(f"bench.sparse: {error}\n")
        failed = 2
    except KeyboardInterrupt:
        failed = 130
    figures = _save(chosen, wish, records, steps)
    for record in records:
        print(line(record))
    print(figures)
    return failed or int(any(record.wrong for record in records))


def _problems(chosen: argparse.Namespace) -> list[Problem]:
    found = []
    for ranks, support in product(chosen.ranks, chosen.supports):
        if support in REAL:
            found.append(real_problem(support, ranks))
            continue
        for length, density in product(chosen.lengths, chosen.densities):
            found.append(Problem(support, int(length), density, ranks))
    return found


def _save(
    chosen: argparse.Namespace, wish: Wish, records: Sequence[Record], steps: dict[str, float]
) -> dict[str, Any]:
    """Write the file of results; return its figures."""
    figures = summary(records, steps, wish.mbit)
    name = "sparse_hosts.json" if chosen.hosts else "sparse.json"
    content = {"mbit": wish.mbit, "step_s": steps, "figures": figures}
    save(chosen.output or RESULTS / name, {**content, "cells": [r.json() for r in records]})
    return figures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.sparse", description=__doc__)
    parser.add_argument("--hosts", action="store_true", help="shaped hosts of one rank each: root")
    parser.add_argument("--mbit", type=float, default=1000.0, help="of each link (1000)")
    parser.add_argument("--ranks", type=int, nargs="*", default=[4], help="(4)")
    parser.add_argument(
        "--supports", nargs="*", choices=SUPPORTS, default=["uniform", "skewed", *REAL]
    )
    parser.add_argument("--lengths", type=float, nargs="*", default=[1e6], help="elements (1e6)")
    parser.add_argument("--densities", type=float, nargs="*", default=list(DENSITIES))
    parser.add_argument(
        "--ways", nargs="*", choices=(*FIXED, *PLANS), help="of ours (all but plans)"
    )
    parser.add_argument("--libraries", nargs="*", default=list(PEERS), help="(gloo mpich)")
    parser.add_argument("--rounds", type=int, default=5, help="of each problem (5)")
    parser.add_argument(
        "--output", type=Path, help="(bench/results/sparse.json, sparse_hosts.json)"
    )
    return parser


def _say(sentence: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")


if __name__ == "__main__":
    raise SystemExit(main())
