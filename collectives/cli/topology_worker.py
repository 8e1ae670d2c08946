# SPDX-License-Identifier: Apache-2.0
"""One rank of `collbench topo`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import ClassVar

from collectives import init
from collectives.cli.worker import reported, say
from collectives.topology.files import text_of


@dataclass(frozen=True)
class Look:
    """What the ranks are asked to do."""

    module: ClassVar[str] = "collectives.cli.topology_worker"

    measure: bool

    def as_json(self) -> str:
        """Write it for the command line."""
        return json.dumps(asdict(self))


def work(wanted: Look) -> None:
    """Look; rank 0 reports."""
    with init() as comm:
        found = comm.topology(measure=wanted.measure)
        if comm.rank == 0:
            say(topology=text_of(found))


if __name__ == "__main__":
    sys.exit(reported(lambda: work(Look(**json.loads(sys.argv[1])))))
