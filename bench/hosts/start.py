# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts.start``: how long a job takes to begin, by each channel there is.

Native: 256 processes of a C program, dealt to hosts that differ in name, from the start of the
first until the last has joined. The C interface leaves the exchange of doors to its user: it is a
folder, the store that rank 0 keeps (``master``), or the launcher's own (PMI, MPICH's mpiexec).
Python: ``init()`` on hosts of namespaces, from the entry of the last rank: the same, and torchrun's
store where torch is installed. The first call, which connects, is told apart.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.hosts import jobs
from bench.hosts.goals import HOSTS
from bench.hosts.jobs import Launch, Start, StartError
from bench.hosts.records import Spread
from bench.hosts.run import say
from bench.hosts.verdicts import Goal, Row, failed, finish, options, positive
from bench.limits.program import ProgramError, build
from bench.peers.libraries import LIBRARIES
from bench.peers.venvs import VenvError, python_of
from tests.hosts import Hosts
from tests.hosts.tools import missing

PROGRAM = "bench.hosts.start"
NATIVE, PYTHON = "native", "init()"
STARTED, INIT = Goal(5.0, most=True), Goal(3.0, most=True)
ASKED_RANKS = 256  # of native processes, for the goal
CHANNELS = ("folder", "master", "pmi", "torch")
PORT = 29_555
PRESET = "release"

Kind = tuple[str, str, int]  # NATIVE or PYTHON, channel, ranks


def judge(kind: Kind, starts: Sequence[Start]) -> list[Row]:
    """Hold the starts of one kind against its goals."""
    what, channel, ranks = kind
    title = f"{what}, {channel}, {ranks} ranks"

    def row(text: str, name: str, goal: Goal | None) -> Row:
        return Row(f"{title}: {text}", Spread.of([getattr(one, name) for one in starts]), goal)

    asked = STARTED if what == NATIVE and ranks >= ASKED_RANKS else None
    return [
        row("s, from the first process to the last rank's joining", "started", asked),
        row("s, from the last rank's entry", "init", INIT),
        row("s, the first call", "first", None),
    ]


@contextmanager
def launches(chosen: Any, mpich: Path | None) -> Iterator[dict[Kind, Launch]]:
    """Give what there is to start."""
    found: dict[Kind, Launch] = {}
    if chosen.ranks:
        program, hosts = build(PRESET, "coll_start", folder="hosts"), min(HOSTS, chosen.ranks)
        if "folder" in chosen.channels:
            launch = jobs.native_in_folder(program, chosen.ranks, hosts)
            found[NATIVE, "folder", chosen.ranks] = launch
        if "master" in chosen.channels:
            launch = jobs.native_by_master(program, chosen.ranks, hosts, PORT)
            found[NATIVE, "master", chosen.ranks] = launch
        if mpich is not None:
            launch = jobs.native_by_pmi(program, chosen.ranks, hosts, mpich)
            found[NATIVE, "pmi", chosen.ranks] = launch
    if not chosen.each:
        yield found
        return
    with Hosts(HOSTS) as hosts_made:
        hosts_list, each = list(hosts_made), chosen.each
        ranks = len(hosts_list) * each
        if "folder" in chosen.channels:
            found[PYTHON, "folder", ranks] = jobs.python_in_folder(hosts_list, each)
        if "master" in chosen.channels:
            found[PYTHON, "master", ranks] = jobs.python_by_master(hosts_list, each, PORT)
        if mpich is not None:
            found[PYTHON, "pmi", ranks] = jobs.python_by_pmi(hosts_list, each, mpich)
        if "torch" in chosen.channels and find_spec("torch") is not None:
            found[PYTHON, "torch", ranks] = jobs.python_by_torch(hosts_list, each, PORT)
        yield found


def measure(chosen: Any, mpich: Path | None, say: Callable[[str], None]) -> dict[Kind, list[Start]]:
    """Start every kind of job once in each round."""
    starts: dict[Kind, list[Start]] = {}
    with launches(chosen, mpich) as found, tempfile.TemporaryDirectory() as folder:
        for turn in range(chosen.rounds):
            for number, (kind, launch) in enumerate(found.items()):
                where = Path(folder) / f"{turn}-{number}"
                starts.setdefault(kind, []).append(jobs.once(launch, kind[2], where))
            say(f"round {turn + 1} of {chosen.rounds}")
    return starts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. With --strict a missed goal is 1; a failure is 2."""
    parser = options(PROGRAM, __doc__, "start.json")
    parser.add_argument(
        "--ranks", type=_count, default=ASKED_RANKS, help="native processes (256); 0: none"
    )
    parser.add_argument(
        "--each", type=_count, default=4, help=f"Python ranks on each of {HOSTS} hosts (4); 0: none"
    )
    parser.add_argument("--channels", nargs="+", choices=CHANNELS, default=list(CHANNELS))
    chosen = parser.parse_args(arguments)
    if chosen.each and (reason := missing()):
        return failed(PROGRAM, f"{reason} --each 0 leaves hosts out")
    try:
        mpich = python_of(LIBRARIES["mpich"]) if "pmi" in chosen.channels else None
        starts = measure(chosen, mpich, say)
    except (StartError, ProgramError, VenvError, OSError, RuntimeError) as error:
        return failed(PROGRAM, error)
    if "torch" in chosen.channels and find_spec("torch") is None:
        say("torch is not installed (make test-extras does that): its store is left out")
    rows = [row for kind, several in starts.items() for row in judge(kind, several)]
    document = {
        "jobs": [
            {
                "what": what,
                "channel": channel,
                "ranks": ranks,
                "starts": [asdict(s) for s in several],
            }
            for (what, channel, ranks), several in starts.items()
        ]
    }
    return finish(chosen, "How jobs begin, in seconds", rows, document)


def _count(text: str) -> int:
    return 0 if text == "0" else positive(text)


if __name__ == "__main__":
    sys.exit(main())
