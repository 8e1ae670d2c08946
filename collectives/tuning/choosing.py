# SPDX-License-Identifier: Apache-2.0
"""What a communicator chooses by: a table, measured, kept, given or predicted, and wishes."""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from collectives.caller import Caller
from collectives.errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

    from collectives.communicator import Communicator
    from collectives.machine_costs import MachineCosts
    from collectives.topology.value import Topology
    from collectives.tuning.forced import Wished
    from collectives.tuning.table import Choice, TunedTable
    from collectives.tuning.tuner import Cell

    Wish: TypeAlias = dict[str, Wished]  # of a block of force(), by collective


class Choosing(Caller):
    """A communicator with a table of choices."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Begin with the choices of the library."""
        super().__init__(*arguments, **options)
        self._measured: tuple[Choice, ...] = ()  # what was measured,
        self._cells: tuple[Cell, ...] = ()  # and the races that decided,
        self._given: TunedTable | None = None  # which one that was given tells
        self._predicted = False  # nothing was measured: the cost model says so
        self._machine = ""  # where: by what tables are kept
        self._costs: MachineCosts | None = None  # of the machine, as probed by tune(),
        self._links: Topology | None = None  # and between machines
        self._warned_of_costs = False  # those that are kept are of no use
        self._wished: list[Wish] = []  # of the blocks of force() around this, the innermost last

    def use_table(self, table: TunedTable | str | os.PathLike[str] | None) -> bool:
        """Choose by a table from now on: one of :meth:`tune`, or the path of one that was saved.

        Every rank must call it; that of rank 0 counts, the others may pass None. With None on
        rank 0 the library chooses by itself again. Returns whether a table is in use: where it
        cannot be read, is of a newer version, or of another machine or number of ranks, all ranks
        get a TuningWarning that says so, and the library chooses.
        """
        from collectives.tuning.machine import fingerprint

        self._check_free("use_table")
        self._machine = fingerprint(cast("Communicator", self))
        return self._use(table) is not None

    def use_model(self, budget_s: float = 2.0) -> TunedTable:
        """Choose by the cost model from now on: what is predicted to be the fastest here.

        For machines on which nobody has measured, as those with many more cores than the rules of
        the library have seen, and where a race is too long. Every rank must call it, with the same
        arguments. Ranks that share memory first measure what their machine costs; between machines
        the links, as :meth:`topology` does. Then each rank predicts its share of the collectives
        and sizes that :meth:`tune` races, and of longer vectors, the shortest first, until about
        ``budget_s`` seconds are over: of many ranks a plan may take seconds. What there was no time
        for, other collectives, and what goes by hierarchies between hosts are left to the library.
        Returns the table, the same on all ranks, which is not kept. For one rank alone it is empty.

        Raises:
            InvalidArgumentError: the budget is none, or not that of the other ranks, or it is
                called within :meth:`force` or :meth:`group`.
            UnsupportedError: bytes go by UCX, whose links are not measured.
        """
        from collectives.tuning.asked import asked_seconds
        from collectives.tuning.by_model import table_by_model
        from collectives.tuning.machine import fingerprint
        from collectives.words import check_equal

        comm = cast("Communicator", self)
        if self._wishes:
            raise InvalidArgumentError("use_model: leave the block of force() first")
        self._check_free("use_model")
        if comm.transport == "ucx":
            raise UnsupportedError(
                "use_model: bytes go by UCX between these machines, whose links are not measured: "
                "tune() races, and needs no model"
            )
        budget = asked_seconds(budget_s, "use_model")
        until = time.perf_counter() + budget
        check_equal(comm, "use_model", repr(budget))
        self._machine = fingerprint(comm)
        self._use(None)  # the rules say what is left to them
        with comm.dup() as apart:
            found = self._probe(apart, budget)
        table = self._use(table_by_model(comm, found, self._machine, until))
        assert table is not None
        return table

    def _probe(self, apart: Communicator, budget: float) -> MachineCosts | Topology | None:
        """Measure what the model goes by on a ``dup()`` without a table, and keep it."""
        from collectives.machine_costs import MachineCosts
        from collectives.tuning.known_costs import probed

        found = probed(apart, budget)
        if isinstance(found, MachineCosts):
            self._costs = found
        elif found is not None:
            self._links = found
        return found

    def _check_free(self, name: str) -> None:
        """Refuse what has to have its results at once."""
        if self._deferred is not None:
            raise InvalidArgumentError(f"{name}: leave the block of group() first")

    def _use(
        self,
        table: TunedTable | str | os.PathLike[str] | OSError | None,
        instead: str = "the library chooses by itself",
        level: int = 3,
    ) -> TunedTable | None:
        """Take the table of rank 0, which must be of this machine; None: there is none.

        An OSError in its place is why nobody knows whether there is one.
        ``instead`` of one that is not used, as a warning says, ``level`` calls above.
        """
        from collectives.tuning.shared import shared_table
        from collectives.tuning.table import TuningWarning

        found, why = shared_table(cast("Communicator", self), table, self._machine)
        self._measured, self._cells = (found.choices if found is not None else ()), ()
        self._given, self._predicted = found, found is not None and found.predicted
        try:
            self._install()
        except InvalidArgumentError as error:  # of all ranks alike
            self._given = None
            self._measured, found, why = (), None, f"the tuned table is not used: {error}"
            self._install()
        if why:
            warnings.warn(f"{why}: {instead}", TuningWarning, stacklevel=level)
        return found

    def _inherit(self, other: Choosing) -> None:
        """Choose as another communicator of the same ranks does."""
        self._measured, self._cells, self._given = other._measured, other._cells, other._given
        self._costs, self._links, self._machine = other._costs, other._links, other._machine
        self._predicted = other._predicted
        if self._measured:
            self._install()

    def use_kept_table(self) -> TunedTable | None:
        """Use the table that :meth:`tune` has kept for as many ranks on such machines, if it has.

        Every rank must call it; rank 0's cache counts (COLLECTIVES_CACHE). Returns the table, or
        None: there is none, and the library chooses as before. A table that is damaged or of
        another version is told of by a ``TuningWarning``, and not used.

        Raises:
            InvalidArgumentError: it is called within :meth:`force` or :meth:`group`.
        """
        from collectives.tuning.machine import fingerprint

        if self._wishes:
            raise InvalidArgumentError("use_kept_table: leave the block of force() first")
        self._check_free("use_kept_table")
        self._machine = fingerprint(cast("Communicator", self))
        return self._take_kept("the library chooses by itself", alone=True)

    def _take_kept(self, instead: str = "all race again", alone: bool = False) -> TunedTable | None:
        """Use the table that rank 0's user has kept for such a machine, if there is one.

        ``alone``: nothing is kept afterwards, which would tell of a folder that is out of reach.
        """
        from collectives.tuning.kept import found_table

        found: Path | OSError | None = None
        if self.rank == 0:
            try:
                found = found_table(self._machine)
            except OSError as error:  # the others are waiting for what rank 0 says
                found = error if alone else None
        return self._use(found, instead, 4)

    @property
    def _wishes(self) -> Wish:
        """What is wished for now, by collective."""
        return {kind: wished for wish in self._wished for kind, wished in wish.items()}

    @property
    def _known_costs(self) -> MachineCosts:
        """What the machine costs these ranks, as far as anybody knows."""
        from collectives.tuning.known_costs import known_costs

        return known_costs(cast("Communicator", self))

    @property
    def _choices(self) -> list[Choice]:
        """What is in use: wishes, and of other collectives what was measured."""
        wishes = self._wishes
        wished = [choice for wish in wishes.values() for choice in wish.lines]
        forced = {kind for kind, wish in wishes.items() if not wish.way}
        return wished + [choice for choice in self._measured if choice.kind not in forced]

    def _install(self) -> None:
        from collectives.tuning.installed import install

        install(cast("Communicator", self), self._choices)
