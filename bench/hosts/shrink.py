# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts.shrink``: how long survivors of a killed rank need to go on.

Ranks on four hosts, which are namespaces of this machine, exchange without end; one is killed. What
counts is the time of ``shrink()`` on the slowest of the others, until each has its new
communicator, whose first allreduce is checked.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.hosts.goals import HOSTS
from bench.hosts.records import Spread
from bench.hosts.run import say
from bench.hosts.verdicts import Goal, Row, failed, finish, options, positive
from tests.hosts.jobs import Job, jobs
from tests.hosts.tools import missing

PROGRAM = "bench.hosts.shrink"
SHRUNK = Goal(2.0, most=True)


def once(job: Job, victim: int) -> tuple[float, int]:
    """Kill a rank; return the seconds of the slowest survivor, and how many found it wrong."""
    with job.running("failing.shrinks") as run:
        run.reached("met")
        time.sleep(0.3)
        run.signal(victim, signal.SIGKILL)
        found = run.results(victim)
        total = sum(range(job.n)) - victim
        right = (job.n - 1, total, 0)
        wrong = sum((one["size"], one["total"], one["wrong"]) != right for one in found)
        return max(one["took"] for one in found), wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. With --strict a missed goal is 1; a failure is 2."""
    parser = options(PROGRAM, __doc__, "shrink.json")
    parser.add_argument(
        "--each", type=positive, nargs="+", default=[1, 4, 16], help="ranks on each host (1 4 16)"
    )
    chosen = parser.parse_args(arguments)
    if reason := missing():
        return failed(PROGRAM, reason)
    rows = []
    try:
        for each in chosen.each:
            with tempfile.TemporaryDirectory() as folder, jobs(HOSTS, Path(folder), each) as made:
                found = [once(made[1], HOSTS * each - 1) for _ in range(chosen.rounds)]
            what = f"{HOSTS * each} ranks on {HOSTS} hosts: s of shrink(), the slowest survivor"
            rows.append(
                Row(
                    what,
                    Spread.of([seconds for seconds, _ in found]),
                    SHRUNK,
                    wrong=sum(wrong for _, wrong in found),
                )
            )
            say(what)
    except (AssertionError, OSError, RuntimeError) as error:
        return failed(PROGRAM, error)
    return finish(chosen, "How soon the living go on", rows, {})


if __name__ == "__main__":
    sys.exit(main())
