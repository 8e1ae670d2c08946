# SPDX-License-Identifier: Apache-2.0
"""What a communicator can do about its choices: tune, take a table, and say what it would run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from collectives.caller import Caller
from collectives.errors import InvalidArgumentError
from collectives.names import choose_from, integer

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.machine_costs import MachineCosts
    from collectives.tuning.explanation import Explanation
    from collectives.tuning.table import Choice, TunedTable
    from collectives.tuning.tuner import Cell


_PROBE = 0.2  # seconds, of what the machine costs


class Tunable(Caller):
    """Measured choices of a communicator."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Begin with the choices of the library."""
        super().__init__(*arguments, **options)
        self._measured: tuple[Choice, ...] = ()  # what was measured,
        self._cells: tuple[Cell, ...] = ()  # and the races that decided
        self._costs: MachineCosts | None = None  # of the machine, as probed by tune()
        self._wishes: dict[str, list[Choice]] = {}  # within force(), by collective

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

        What is wished for by COLLECTIVES_ALGORITHM is not raced, as it runs whatever is faster.

        Raises:
            InvalidArgumentError: there is no such collective or size, or no time, or it is called
                within :meth:`force`.
        """
        from collectives._ffi import lib, text
        from collectives.machine_probe import measured_costs
        from collectives.tuning import tuner
        from collectives.tuning.forced import ALGORITHM, wished_kinds
        from collectives.tuning.machine import fingerprint
        from collectives.tuning.table import TunedTable

        comm = cast("Communicator", self)
        if self._wishes:
            raise InvalidArgumentError("tune: leave the block of force() first")
        wished = wished_kinds(os.environ.get(ALGORITHM, ""))
        named = tuple(kind for kind in _kinds(kinds, tuner.KINDS) if kind not in wished)
        usual = tuner.SHARED_SIZES if comm.transport == "memory" else tuner.WIRE_SIZES
        lengths = tuple(usual if sizes is None else _sizes(sizes))
        budget = _seconds(budget_s)
        with comm.dup() as apart:
            if apart.transport == "memory" and apart.size > 1:
                self._costs = measured_costs(apart, min(_PROBE, budget / 20))
            cells = list(tuner.tuned(apart, named, lengths, budget))
            where = fingerprint(apart)
        raced = [cell for cell in cells if cell.standings]
        choices = tuner.lines(raced, comm.size)
        table = TunedTable(comm.size, where, text(lib.coll_version()), tuple(choices))
        self._measured, self._cells = table.choices, tuple(raced)
        self._install()
        return table

    def use_table(self, table: TunedTable | str | os.PathLike[str] | None) -> bool:
        """Choose by a table from now on: one of :meth:`tune`, or the path of one that was saved.

        Every rank must call it; that of rank 0 counts, the others may pass None. With None on
        rank 0 the library chooses by itself again. Returns whether a table is in use: where it
        cannot be read, is of a newer version, or of another machine or number of ranks, all ranks
        get a TuningWarning that says so, and the library chooses.
        """
        from collectives.tuning.table import TuningWarning

        found, why = self._shared_table(table)
        self._measured, self._cells = (found.choices if found is not None else ()), ()
        try:
            self._install()
        except InvalidArgumentError as error:  # of all ranks alike
            self._measured, found, why = (), None, f"the tuned table is not used: {error}"
            self._install()
        if why:
            warnings.warn(f"{why}: the library chooses by itself", TuningWarning, stacklevel=2)
        return found is not None

    @contextmanager
    def force(self, **algorithms: str) -> Iterator[None]:
        """Run these algorithms within a ``with`` block, where calls leave them open.

        ``comm.force(allreduce="ring", broadcast="chain")``. Every rank must enter and leave the
        block between the same two calls. An operation that needs another summation tree goes its
        own way, as ever. COLLECTIVES_ALGORITHM counts for more.

        Raises:
            InvalidArgumentError: there is no such collective or algorithm.
            UnsupportedError: an algorithm is not defined for this number of ranks.
        """
        from collectives.tuning.forced import lines_of

        shared = cast("Communicator", self).transport == "memory"
        before = self._wishes
        wished = {
            kind: lines_of(kind, name, self.size, shared) for kind, name in algorithms.items()
        }
        self._wishes = {**before, **wished}
        self._install()
        try:
            yield
        finally:
            self._wishes = before
            if not cast("Communicator", self).closed:
                self._install()

    def explain(self, kind: str, nbytes: int = 1 << 20) -> Explanation:
        """Say what a collective on a vector of so many bytes runs, and why nothing else. Local.

        Raises:
            InvalidArgumentError: there is no such collective, or ``nbytes`` is no length.
        """
        from collectives.names import KINDS
        from collectives.tuning.explanation import explained

        choose_from(kind, KINDS, "explain: collective")
        length = integer(nbytes)
        if length is None or not 0 <= length < 1 << 62:
            raise InvalidArgumentError(f"explain: nbytes is {nbytes!r:.40}: give a length")
        comm = cast("Communicator", self)
        return explained(comm, kind, length, self._cells, kind in self._wishes)

    @property
    def _choices(self) -> list[Choice]:
        """What is in use: wishes, and of other collectives what was measured."""
        wished = [choice for lines in self._wishes.values() for choice in lines]
        return wished + [choice for choice in self._measured if choice.kind not in self._wishes]

    def _install(self) -> None:
        from collectives.tuning.installed import install

        install(cast("Communicator", self), self._choices)

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
    """Return a table as JSON, or why there is none; nothing: none is wanted. It never raises.

    The others are waiting for what rank 0 says.
    """
    import json  # as little as possible comes with the package

    from collectives.tuning.table import TunedTable, table_in

    if table is None:
        return b""
    try:
        given = table if isinstance(table, TunedTable) else TunedTable.load(table)
        words = json.dumps(given.as_json()).encode()
        table_in(words, "the tuned table")
    except Exception as error:
        return f"tuned table: {error}".encode("utf-8", "backslashreplace")
    if given.ranks != ranks:
        return f"the tuned table is for {given.ranks} ranks, not for {ranks}".encode()
    if given.machine != here:
        where = f"{given.machine!a:.80}"
        return f"the tuned table is of another machine ({where}, here {here!r})".encode()
    return words


def _kinds(kinds: Any, usual: Sequence[str]) -> Sequence[str]:
    from collectives.names import KINDS

    if kinds is None:
        return usual
    raced = [name for name in KINDS if name not in ("scan", "exscan")]
    try:
        named = [kinds] if isinstance(kinds, str) else list(kinds)
    except TypeError:
        raise InvalidArgumentError(f"tune: kinds is {kinds!r:.60}: give their names") from None
    return [choose_from(kind, raced, "tune: collective") for kind in named]


def _seconds(budget_s: Any) -> float:
    try:
        seconds = float(budget_s)
    except (TypeError, ValueError, OverflowError):
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise InvalidArgumentError(f"tune: budget_s is {budget_s!r:.40}: give seconds, above 0")
    return seconds


def _sizes(sizes: Sequence[int]) -> Sequence[int]:
    try:
        numbers = [integer(size) for size in sizes]
    except TypeError:
        numbers = []
    known = [number for number in numbers if number is not None and 0 < number <= 1 << 32]
    if not numbers or len(known) < len(numbers) or known != sorted(set(known)):
        raise InvalidArgumentError(
            f"tune: sizes are {sizes!r:.60}: give bytes of vectors, from 1 on, in ascending order"
        )
    return known
