# SPDX-License-Identifier: Apache-2.0
"""Tables that rank 0 alone has found: it announces them, and all ranks take them in one call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from collectives._ffi import lib
from collectives.errors import CollectiveError
from collectives.tuning.installed import native_lines
from collectives.tuning.kept import found_table
from collectives.tuning.machine import one_host
from collectives.tuning.table import Choice, TunedTable, TuningWarning

if TYPE_CHECKING:
    from collectives.communicator import Communicator

MOST = 256  # lines of an announcement (native/transport/segment.h)


def announce(comm: Communicator, choices: Sequence[Choice], cores: int = 0) -> None:
    """Let all ranks take these choices, in the same call, soon. Of rank 0; the others go on.

    ``cores``: only if the ranks have so many of the first 64 between them; 0: however many.
    """
    lines = native_lines(choices)
    comm._call("announce", lambda native: lib.coll_announce(native, lines, len(choices), cores))


def announce_kept(comm: Communicator) -> None:
    """Announce the table of earlier runs for as many ranks on such a machine, if there is one.

    Of rank 0, while the others may not have begun: what it cannot know, which cores these may use,
    is compared when all have made a call.
    """
    own = len(os.sched_getaffinity(0))
    for cores in dict.fromkeys((own, min(comm.size, os.cpu_count() or 1))):
        try:
            path = found_table(one_host(comm.transport, comm.size, cores))
        except OSError:
            continue  # whoever asks for it is told: use_kept_table()
        table = None if path is None else _read(path)
        if table is not None and table.ranks == comm.size and len(table.choices) <= MOST:
            announce(comm, table.choices, cores)
            return


def _read(path: Path) -> TunedTable | None:
    """Return the table of a file, or warn: it was there for such programs, and is of no use."""
    try:
        return TunedTable.load(path)
    except (CollectiveError, OSError) as error:
        why = f"tuned table: {error}: the library chooses by itself"
        warnings.warn(why, TuningWarning, stacklevel=6)  # of init()
        return None
