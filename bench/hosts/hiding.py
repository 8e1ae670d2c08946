# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts.hiding``: how much of an allreduce between hosts hides behind NumPy.

One rank on each shaped host. A round measures transfers alone, products of matrices alone, and
transfers that are begun (``async_op=True``), computed beside and waited for. The products are as
many as take about the time of the transfer. Hidden is what both together take less than one after
the other, as a share of the shorter one: 1 where nothing is left of it. All hosts share the cores
of this machine, and a transfer needs cores as well: how busy it alone keeps them is told too.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.hosts.goals import MBIT, M
from bench.hosts.records import Spread, bound, payload
from bench.hosts.run import links, say
from bench.hosts.teams import HostTeam
from bench.hosts.verdicts import Goal, Row, failed, finish, options, positive
from bench.peers.cells import Cell
from bench.peers.libraries import OURS, TeamName
from bench.peers.teams import TeamError
from bench.wire.judge import MOST
from tests.hosts import Hosts
from tests.hosts.tools import missing

PROGRAM = "bench.hosts.hiding"
GOAL = Goal(0.8)
BLOCK = 64 * M  # bytes of vectors in a block
FEW = 20  # products of the first trial
TRIALS = 3


@dataclass
class HidingTeam(HostTeam):
    """Ranks that transfer, compute, or both."""

    module: str = "bench.hosts.ranks.hiding"

    def vectors(self, nbytes: int) -> None:
        """Make vectors of so many bytes the present ones."""
        self._ask({"order": "prepare", "nbytes": nbytes})

    def block(self, transfer: bool, products: int, calls: int) -> tuple[float, float, int]:
        """Return seconds of a call, from the first begin to the last end; how busy; what is wrong.

        Busy is the share of this machine's cores, by anybody, the kernel's network work included.
        """
        order = {"order": "block", "transfer": transfer, "products": products, "calls": calls}
        answers = [message for message, _ in self._ask(order)]
        seconds = max(one["last"] for one in answers) - min(one["first"] for one in answers)
        return seconds / calls, answers[0]["busy"], sum(one["wrong"] for one in answers)


@dataclass(frozen=True)
class Turn:
    """Seconds of a call in one round. `counted`: bytes on the links over the least there can be.

    `busy`: the share of this machine's cores in the transfer alone.
    """

    transfer: float
    compute: float
    both: float
    counted: float
    busy: float

    @property
    def hidden(self) -> float:
        """The share of the shorter one that is hidden behind the other."""
        saved = self.transfer + self.compute - self.both
        return saved / min(self.transfer, self.compute)


@dataclass
class Hiding:
    """What was measured of a vector. `products`: matrices multiplied beside one transfer."""

    cell: Cell
    mbit: float
    products: int = 0
    turns: list[Turn] = field(default_factory=list)
    wrong: int = 0

    def share(self, turn: Turn) -> float:
        """Return the share of the lower bound in the time of the transfer alone."""
        return bound(self.cell, self.mbit) / turn.transfer

    def valid(self) -> list[Turn]:
        """Return the rounds that count: no more came than a link carries."""
        return [turn for turn in self.turns if self.share(turn) <= MOST]

    def void(self) -> str | None:
        """Return why nothing counts."""
        if any(turn.counted < 1.0 for turn in self.turns):
            return "fewer bytes on the links than the lower bound of the payload"
        if self.turns and not self.valid():
            return f"every round is above {MOST} of the link: what the bucket held"
        return None

    def json(self) -> dict[str, Any]:
        """Return it as plain values."""
        turns = [{**asdict(turn), "hidden": turn.hidden} for turn in self.turns]
        return {**asdict(self.cell), "products": self.products, "turns": turns}


def judge(hiding: Hiding) -> list[Row]:
    """Return what is hidden, and what it consists of."""
    cell, turns = hiding.cell, hiding.valid()
    title = f"{cell.ranks} hosts, {cell.nbytes // M} MiB"
    hidden = Spread.of([turn.hidden for turn in turns])
    rows = [Row(f"{title}: hidden", hidden, GOAL, hiding.void(), hiding.wrong)]
    for name in ("transfer", "compute", "both"):
        rows.append(Row(f"{title}: s, {name}", Spread.of([getattr(one, name) for one in turns])))
    rows.append(Row(f"{title}: share of the link", Spread.of([hiding.share(t) for t in turns])))
    rows.append(Row(f"{title}: cores busy, transfer", Spread.of([t.busy for t in turns])))
    rows.append(Row(f"{title}: bytes over the bound", Spread.of([t.counted for t in turns])))
    return rows


def calibrated(seconds_of: Callable[[int], float], wanted: float) -> int:
    """Return how many products take about `wanted` seconds, where all ranks compute."""
    products = FEW
    for _ in range(TRIALS):
        products = max(round(products * wanted / seconds_of(products)), 1)
    return products


def measure(hiding: Hiding, hosts: Hosts, team: HidingTeam, rounds: int) -> None:
    """Measure a vector in rounds; what goes first changes."""
    nbytes = hiding.cell.nbytes
    calls = max(BLOCK // nbytes, 1)
    team.vectors(nbytes)
    transfer = team.block(True, 0, calls)[0]
    hiding.products = calibrated(lambda products: team.block(False, products, 1)[0], transfer)
    modes = {"transfer": (True, 0), "compute": (False, 1), "both": (True, 1)}
    order = list(modes)
    for turn in range(rounds):
        at, times, busy, sent = turn % len(order), dict[str, float](), dict[str, float](), 0
        for name in order[at:] + order[:at]:
            moves, computes = modes[name]
            with ExitStack() as stack:
                traffic = [stack.enter_context(host.counted()) for host in hosts]
                times[name], busy[name], wrong = team.block(
                    moves, computes * hiding.products, calls
                )
            hiding.wrong += wrong
            if moves:
                sent += sum(one.sent_bytes for one in traffic)
        # In two of the three modes, and once more before each block.
        counted = sent / (2 * (calls + 1) * len(hosts) * payload(hiding.cell))
        hiding.turns.append(Turn(**times, counted=counted, busy=busy["transfer"]))


def on_hosts(
    count: int, chosen: Any, say: Callable[[str], None]
) -> tuple[list[Hiding], dict[str, Any]]:
    """Measure all vectors on so many hosts; return also how the links were shaped."""
    found = []
    with Hosts(count, mbit=chosen.mbit) as hosts, tempfile.TemporaryDirectory() as folder:
        team = HidingTeam(TeamName(OURS, "hiding"), count, hosts=list(hosts))
        try:
            team.start(Path(sys.executable), Path(folder))
            team.meet()
            for mib in chosen.mib:
                hiding = Hiding(Cell("allreduce", "float32", count, mib * M), chosen.mbit)
                measure(hiding, hosts, team, chosen.rounds)
                found.append(hiding)
                say(f"{hiding.cell}: {chosen.rounds} rounds, {hiding.products} products")
        finally:
            team.close()
        return found, links(hosts, chosen.mbit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A wrong result or a void row, or with --strict a missed goal, is 1; a failure is 2."""
    parser = options(PROGRAM, __doc__, "hiding.json")
    parser.add_argument("--hosts", type=positive, nargs="+", default=(2, 4), help="(2 4)")
    parser.add_argument("--mib", type=positive, nargs="+", default=(16, 64), help="vectors (16 64)")
    parser.add_argument("--mbit", type=float, default=MBIT, help=f"of each link ({MBIT:g})")
    chosen = parser.parse_args(arguments)
    if min(chosen.hosts) < 2:
        parser.error("--hosts must be 2 or more")
    if reason := missing():
        return failed(PROGRAM, reason)
    found, shaped = list[Hiding](), dict[str, Any]()
    try:
        for count in chosen.hosts:
            more, shaped = on_hosts(count, chosen, say)
            found += more
    except (TeamError, OSError, RuntimeError) as error:
        return failed(PROGRAM, error)
    rows = [row for hiding in found for row in judge(hiding)]
    title = f"allreduce beside NumPy, links of {chosen.mbit:g} Mbit/s"
    document = {
        "links": shaped,
        "vectors": [hiding.json() for hiding in found],
    }
    return finish(chosen, title, rows, document)


if __name__ == "__main__":
    sys.exit(main())
