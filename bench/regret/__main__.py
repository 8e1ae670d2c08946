# SPDX-License-Identifier: Apache-2.0
"""Regret of the choice: ``make regret``, or ``python -m bench.regret --ranks 2 --hosts 4``.

Time of what a call runs over that of the best plan there is, for collectives, sizes (those that
were tuned, and held-out ones) and numbers of ranks, on this machine or on shaped hosts with one
rank each. Everything runs twice: what is best is found in one run, and raced against the choice in
another, in interleaved pairs. Jobs that were measured before are kept, but for those of the same
number of ranks. Then the page is written (``bench.regret.page``).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.hosts.verdicts import positive
from bench.record import RESULTS, machine, save
from bench.regret import jobs
from bench.regret.document import DocumentError, load, merged, teams
from bench.regret.figures import HELD_OUT_RANKS, held_out_ranks, summary
from bench.regret.page import write
from collectives.tuning.wanted import KINDS, SHARED_SIZES, WIRE_SIZES
from tests.hosts.hosts import MOST as MOST_HOSTS
from tests.hosts.tools import missing

RANKS = (2, 3, 4, 5, 8)
HELD_OUT = (24, 400, 2500, 7000, 50_000, 180_000, 500_000, 2 << 20, 5_000_000, 20 << 20)
HELD_OUT_WIRE = (400, 40_000, 500_000, 2 << 20)
BUDGET, WIRE_BUDGET = 10.0, 20.0  # seconds of tune()
MBIT = 1000.0  # of a link


class Terminated(BaseException):
    """A SIGTERM has come: what has been begun is cleared away, as after a Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep, and write the page. A failure is 2, a Ctrl-C 130, a SIGTERM 143."""
    chosen = _parser().parse_args(arguments)
    if not chosen.ranks and chosen.hosts is None:
        chosen.ranks = list(RANKS)
    wanted = [("ranks", ranks) for ranks in chosen.ranks]
    if chosen.hosts is not None:
        wanted.append(("hosts", chosen.hosts))
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        if chosen.hosts is not None and (reason := missing()):
            raise jobs.JobError(reason)
        if chosen.output.exists():
            load(chosen.output)  # before minutes are spent
        for place, size in wanted:
            measure(chosen, place, size)
        if not chosen.no_page:
            print(write(load(chosen.output), chosen.output.parent))
    except (DocumentError, jobs.JobError, OSError, RuntimeError) as error:
        sys.stderr.write(f"bench.regret: {error}\n")
        return 2
    except (KeyboardInterrupt, Terminated) as error:
        sys.stderr.write(f"bench.regret: interrupted; {chosen.output} has the jobs that ended\n")
        return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _terminate(*_: object) -> None:
    raise Terminated


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.regret", description=__doc__)
    known = " ".join(map(str, RANKS))
    parser.add_argument(
        "--ranks", type=positive, nargs="*", default=[], help=f"({known}; none beside --hosts)"
    )
    parser.add_argument("--hosts", type=_hosts, help="shaped hosts of one rank each; needs root")
    parser.add_argument("--mbit", type=float, default=MBIT, help=f"of a host's link ({MBIT:g})")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--sizes", type=positive, nargs="+", help="that tune() races (its usual)")
    parser.add_argument("--held-out", type=positive, nargs="*", help="sizes that it does not see")
    parser.add_argument(
        "--held-out-ranks",
        type=positive,
        nargs="*",
        default=list(HELD_OUT_RANKS),
        help="numbers of ranks for which there is no tune() (3 5)",
    )
    parser.add_argument(
        "--budget", type=float, help=f"seconds of tune() ({BUDGET:g}; hosts {WIRE_BUDGET:g})"
    )
    parser.add_argument("--cell", type=float, default=0.5, help="seconds of a cell's run A (0.5)")
    parser.add_argument(
        "--limit",
        type=float,
        default=400.0,
        help="seconds after which no cell begins, of each number of ranks; left out are the "
        "longest vectors (400)",
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "regret.json")
    parser.add_argument("--no-page", action="store_true", help="write no page")
    return parser


def _hosts(text: str) -> int:
    number = positive(text)
    if not 2 <= number <= MOST_HOSTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 2 to {MOST_HOSTS}")
    return number


def asked(chosen: argparse.Namespace, place: str, size: int) -> dict[str, Any]:
    """Return what the ranks of a job are asked for."""
    here = place == "ranks"
    usual, held_out = (SHARED_SIZES, HELD_OUT) if here else (WIRE_SIZES, HELD_OUT_WIRE)
    tuned = sorted(set(usual if chosen.sizes is None else chosen.sizes))
    others = set(held_out if chosen.held_out is None else chosen.held_out)
    budget = chosen.budget if chosen.budget is not None else BUDGET if here else WIRE_BUDGET
    return {
        "kinds": chosen.kinds,
        "tuned": tuned,
        "held_out": sorted(others - set(tuned)),
        "budget": 0.0 if here and size in chosen.held_out_ranks else budget,
        "cell": chosen.cell,
        "limit": chosen.limit,
    }


def measure(chosen: argparse.Namespace, place: str, size: int) -> None:
    """Measure one job, print its figures, and keep it beside the others of the file."""
    job, here = asked(chosen, place, size), machine()  # with its load before that of the job
    if place == "ranks":
        found = jobs.on_machine(size, job)
    else:
        found = jobs.on_shaped(size, chosen.mbit, job)
    found = {"asked": job, "machine": here, **found}
    whole = merged(chosen.output, place, size, found)
    of_all = teams(whole)
    for team in of_all:
        whole[team.place][str(team.size)]["summary"] = summary(team.rows)
    whole["held out ranks"] = held_out_ranks(of_all)
    save(chosen.output, whole)
    print(f"{size} {place}: {json.dumps(whole[place][str(size)]['summary'])}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
