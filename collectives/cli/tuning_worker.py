# SPDX-License-Identifier: Apache-2.0
"""One rank of `collbench tune` and `collbench explain`."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from collectives import Communicator, init
from collectives.cli.worker import pin_to_core, reported, say
from collectives.environment import place
from collectives.tuning.guidelines import measured
from collectives.tuning.kept import found_table
from collectives.tuning.table import TuningWarning


@dataclass(frozen=True)
class Tuning:
    """What the ranks are asked to do: race, use a table, and explain."""

    module: ClassVar[str] = "collectives.cli.tuning_worker"

    kinds: list[str]
    sizes: list[int] | None
    seconds: float  # 0: nothing is raced
    table: str | None  # where it is taken from
    explained: list[int]  # bytes of the vectors to explain
    pin: bool
    guidelines: bool = False  # measure them instead

    def as_json(self) -> str:
        """Write it for the command line."""
        return json.dumps(asdict(self))


def work(wanted: Tuning) -> None:
    """Do it; rank 0 reports what came out."""
    rank = place().rank
    if wanted.pin:
        pin_to_core(rank)
    with _told(rank), init() as comm:
        if wanted.guidelines:
            found = measured(comm)
            if rank == 0:
                say(guidelines=[[g.rule, g.nbytes, g.ratio, g.low, g.high] for g in found])
        elif wanted.seconds > 0:
            _race(comm, wanted)
        elif wanted.table is not None:
            comm.use_table(wanted.table)
        if rank == 0:
            _explain(comm, wanted)


@contextmanager
def _told(rank: int) -> Iterator[None]:
    """Report what rank 0 is warned of, and go on; the others are told the same."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, TuningWarning):
            say(warning=str(message))
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always" if rank == 0 else "ignore", TuningWarning)
        warnings.showwarning = show
        yield


def _race(comm: Communicator, wanted: Tuning) -> None:
    table = comm.tune(wanted.seconds, kinds=wanted.kinds or None, sizes=wanted.sizes, again=True)
    if comm.rank == 0:
        whole = not wanted.kinds and wanted.sizes is None
        kept = _kept(table.machine) if whole else None
        say(
            table=table.to_json(),
            kept=None if kept is None else str(kept),
        )


def _kept(machine: str) -> Path | None:
    try:
        return found_table(machine)
    except OSError:  # which a warning has said
        return None


def _explain(comm: Communicator, wanted: Tuning) -> None:
    for nbytes in wanted.explained:
        for kind in wanted.kinds:
            found = comm.explain(kind, nbytes)
            say(text=str(found), explanation=asdict(found))


if __name__ == "__main__":
    sys.exit(reported(lambda: work(Tuning(**json.loads(sys.argv[1])))))
