# SPDX-License-Identifier: Apache-2.0
"""What a communicator can do about its choices: tune, take a table, and say what it would run."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from collectives.caller import Caller
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.names import choose_from, integer

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.tuning.table import TunedTable


class Tunable(Caller):
    """Measured choices of a communicator."""

    def tune(
        self,
        budget_s: float = 10.0,
        *,
        kinds: Sequence[str] | None = None,
        sizes: Sequence[int] | None = None,
    ) -> TunedTable:
        """Race all plans that calls could run, and use the fastest from now on.

        Every rank must call it, with the same arguments; it takes about ``budget_s`` seconds, and
        whoever shares the machine is measured as well. ``kinds`` are collectives (the six that are
        used most), ``sizes`` bytes of vectors in ascending order. Returns the table, the same on
        all ranks, to be saved and given to :meth:`use_table` of later communicators. What is not
        measured, and where the time did not suffice, is chosen as before.

        Raises:
            InvalidArgumentError: there is no such collective or size, or no time.
        """
        from collectives._ffi import lib, text
        from collectives.tuning import tuner
        from collectives.tuning.machine import fingerprint
        from collectives.tuning.table import TunedTable

        comm = cast("Communicator", self)
        named = tuple(tuner.KINDS if kinds is None else (_kind(kind) for kind in kinds))
        usual = tuner.SHARED_SIZES if comm.transport == "memory" else tuner.WIRE_SIZES
        lengths = tuple(usual if sizes is None else _sizes(sizes))
        if not isinstance(budget_s, (int, float)) or not 0 < budget_s < 1e6:
            raise InvalidArgumentError(f"tune: budget_s is {budget_s!r}: give seconds, above 0")
        with comm.dup() as apart:
            cells = list(tuner.tuned(apart, named, lengths, budget_s))
            where = fingerprint(apart)
        choices = tuner.lines([cell for cell in cells if cell.standings], comm.size)
        table = TunedTable(comm.size, where, text(lib.coll_version()), tuple(choices))
        self.use_table(table)
        return table

    def use_table(self, table: TunedTable | str | os.PathLike[str] | None) -> bool:
        """Choose by a table from now on: one of :meth:`tune`, or the path of one that was saved.

        Every rank must call it; that of rank 0 counts, the others may pass None. With None on rank 0
        the library chooses by itself again. Returns whether a table is in use: where it cannot be
        read, is of a newer version, or of another machine or number of ranks, all ranks get a
        TuningWarning that says so, and the library chooses.
        """
        from collectives.tuning.installed import install
        from collectives.tuning.table import TuningWarning

        found, why = self._shared_table(table)
        if why:
            warnings.warn(f"{why}: the library chooses by itself", TuningWarning, stacklevel=2)
        install(cast("Communicator", self), found.choices if found is not None else ())
        return found is not None

    def _shared_table(
        self, table: TunedTable | str | os.PathLike[str] | None
    ) -> tuple[TunedTable | None, str]:
        """Return the table of rank 0 on all ranks, and why there is none."""
        from collectives.tuning.machine import fingerprint
        from collectives.tuning.table import table_in

        comm = cast("Communicator", self)
        here = fingerprint(comm)
        words = b""
        if self.rank == 0:
            words = _offered(table, here, self.size)
        length = np.array([len(words)])
        comm.broadcast(length, root=0)
        content = np.zeros(int(length[0]), np.uint8)
        if self.rank == 0:
            content[:] = np.frombuffer(words, np.uint8)
        comm.broadcast(content, root=0)
        offered = content.tobytes()
        if offered[:1] != b"{":
            return None, offered.decode("utf-8")
        return table_in(offered, "the table of rank 0"), ""


def _offered(table: Any, here: str, ranks: int) -> bytes:
    """Return a table as JSON, or why there is none; nothing: none is wanted."""
    from collectives.tuning.table import TunedTable

    if table is None:
        return b""
    try:
        given = table if isinstance(table, TunedTable) else TunedTable.load(table)
    except (CollectiveError, OSError, TypeError) as error:
        return f"tuned table: {error}".encode()
    if given.ranks != ranks:
        return f"the tuned table is for {given.ranks} ranks, not for {ranks}".encode()
    if given.machine != here:
        return f"the tuned table is of another machine ({given.machine}, here {here})".encode()
    return json.dumps(given.as_json()).encode()


def _kind(kind: str) -> str:
    from collectives.names import KINDS

    return choose_from(kind, (name for name in KINDS if name not in ("scan", "exscan")), "tune:")


def _sizes(sizes: Sequence[int]) -> Sequence[int]:
    numbers = [integer(size) for size in sizes]
    known = [number for number in numbers if number is not None and 0 < number <= 1 << 32]
    if not numbers or len(known) < len(numbers) or known != sorted(set(known)):
        raise InvalidArgumentError(
            f"tune: sizes are {sizes!r:.60}: give bytes of vectors, from 1 on, in ascending order"
        )
    return known
