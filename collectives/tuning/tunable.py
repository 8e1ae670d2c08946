# SPDX-License-Identifier: Apache-2.0
"""What a communicator can do about its choices: tune, refine, wish, and say what it would run."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, cast, overload

from collectives._ffi import ffi, lib
from collectives.errors import InvalidArgumentError
from collectives.names import choose_from, integer
from collectives.tuning.choosing import Choosing

if TYPE_CHECKING:
    from collectives.communicator import Communicator
    from collectives.machine_costs import MachineCosts
    from collectives.rivals.explained import GpuExplanation
    from collectives.topology.value import Topology
    from collectives.tuning.choosing import Wish
    from collectives.tuning.explanation import Explanation
    from collectives.tuning.table import TunedTable

# Of a budget, from which on links are measured: 1 Gbit/s takes 0.3 s for each of some pairs.
_LINKS_FROM = 10.0
_OF_RACES = 0.9  # of the budget: the last race may take longer than it should


class Tunable(Choosing):
    """Measured choices of a communicator, and wishes."""

    def tune(
        self,
        budget_s: float = 10.0,
        *,
        kinds: Sequence[str] | None = None,
        sizes: Sequence[int] | None = None,
        again: bool = False,
    ) -> TunedTable:
        """Race all plans that calls could run, once for each kind of machine, and use the fastest.

        Every rank must call it, with the same arguments. The first time it takes about ``budget_s``
        seconds, and whoever shares the machine is measured as well. The table is kept in the cache
        of rank 0's user (COLLECTIVES_CACHE), where later calls for as many ranks on such machines
        find it within milliseconds. ``again=True`` races all the same; with more ``budget_s`` than
        it had, it goes on with what there was no time for. ``kinds`` are collectives (the six that
        are used most), ``sizes`` bytes of vectors in ascending order: where they are given, it
        races and keeps nothing. Returns the table, the same on all ranks, to be saved and given to
        :meth:`use_table` elsewhere. What is not measured, and where the time did not suffice, is
        chosen as before. One rank alone has nothing to race.

        What is wished for by COLLECTIVES_ALGORITHM is not raced, as it runs whatever is faster.

        Raises:
            InvalidArgumentError: there is no such collective or size, or no time, or the ranks do
                not ask for the same, or it is called within :meth:`force` or :meth:`group`.
        """
        from collectives.tuning.asked import asked_kinds, asked_seconds, asked_sizes
        from collectives.tuning.forced import ALGORITHM, wished_kinds
        from collectives.tuning.machine import fingerprint
        from collectives.words import check_equal

        comm = cast("Communicator", self)
        if self._wishes:
            raise InvalidArgumentError("tune: leave the block of force() first")
        self._check_free("tune")
        wished = wished_kinds(os.environ.get(ALGORITHM, ""))
        named = None if kinds is None else tuple(asked_kinds(kinds))
        lengths = None if sizes is None else tuple(asked_sizes(sizes))
        budget = asked_seconds(budget_s)
        asked = repr((named, lengths, budget, bool(again), wished))
        check_equal(comm, "tune", asked)
        self._machine = fingerprint(comm)
        whole = named is None and lengths is None and not wished
        known = self._take_kept() if whole and not again else None
        if known is not None and not self._lacks(known, budget):
            return known
        table = self._race(named, lengths, wished, budget, known)
        if whole and self.rank == 0:
            _keep(table, self._costs)
        return table

    def _race(
        self,
        kinds: Sequence[str] | None,
        sizes: Sequence[int] | None,
        wished: Sequence[str],
        budget: float,
        known: TunedTable | None,
    ) -> TunedTable:
        """Race all but what is wished for, and choose by what came of it from now on.

        What is ``known`` is not raced again, and has taken its part of the budget.
        """
        from collectives._ffi import lib, text
        from collectives.tuning import tuner
        from collectives.tuning.going_on import cells_of, kept_races
        from collectives.tuning.installed import install
        from collectives.tuning.lines import lines
        from collectives.tuning.table import TunedTable
        from collectives.tuning.wanted import KINDS, sizes_of

        comm = cast("Communicator", self)
        begin = time.perf_counter()
        spared = 0.0 if known is None else known.budget_s
        named = [kind for kind in kinds or KINDS if kind not in wished]
        with comm.dup() as apart:
            install(apart, ())
            costs: MachineCosts | Topology | None = None
            if apart.transport == "memory" or budget - spared >= _LINKS_FROM:
                costs = self._probe(apart, budget - spared)
            left = _OF_RACES * (budget - spared) - (time.perf_counter() - begin)
            lengths = sizes or sizes_of(apart.transport)
            raced = tuner.tuned(apart, named, lengths, left, costs, cells_of(known))
        table = TunedTable(
            ranks=comm.size,
            machine=self._machine,
            library=text(lib.coll_version()),
            choices=tuple(lines(raced, comm.size)),
            budget_s=budget,
            races=kept_races(raced),
        )
        self._measured, self._cells = table.choices, tuple(raced)
        self._predicted = False
        self._install()
        return table

    def _lacks(self, known: TunedTable, budget: float) -> bool:
        """Whether there is time for races that a kept table lacks."""
        from collectives.tuning.wanted import KINDS, sizes_of, was_cut_short

        return was_cut_short(known, budget, KINDS, sizes_of(cast("Communicator", self).transport))

    def refine(self, budget_s: float = 0.1) -> None:
        """Refine the library's choices by the times of this program's own calls, while it runs.

        Where nothing was measured, allreduce, reduce_scatter, allgather and alltoall of each size
        (by powers of two) take turns, after their first 26 calls, with up to four other plans that
        the cost model finds promising. Rank 0 times them, and what is clearly faster twice stays:
        all ranks take each change in the same call, without a call for it. ``budget_s``: seconds
        that plans which turn out slower may cost in all; 0: nothing more is tried. Local, and it
        does nothing on other ranks than 0, among more than 16, or for one alone. Sums of floats may
        differ in their last bits from call to call meanwhile, unless ``reproducible=``. Tables and
        wishes count for more; a group, a ``dup()`` too, begins with the library's rules.

        Raises:
            InvalidArgumentError: the budget is not a number of seconds.
            UnsupportedError: the ranks do not share memory.
        """
        from collectives.machine_costs import native_of
        from collectives.tuning.asked import asked_seconds

        budget = asked_seconds(budget_s, "refine", zero=True)
        costs = ffi.NULL if self._costs is None else native_of(self._costs)
        self._call("refine", lambda native: lib.coll_refine(native, budget, costs))

    def force(self, **algorithms: str) -> AbstractContextManager[None]:
        """Run these algorithms within a ``with`` block, where calls leave them open.

        ``comm.force(allreduce="ring", broadcast="chain")``; "nccl" and "mixed" are for arrays on
        GPUs, whose calls go our way where there is no NCCL for them. Every rank must enter and
        leave the block between the same two calls. An operation that needs another summation tree
        goes its own way, as ever. COLLECTIVES_ALGORITHM counts for more. Of several blocks the one
        that was entered last counts, in whichever order they are left. What is returned can be used
        again.

        Raises:
            InvalidArgumentError: there is no such collective or algorithm (on entering the block).
            UnsupportedError: an algorithm is not defined for this number of ranks.
        """
        from collectives.tuning.forced import Forced

        return Forced(self, algorithms)

    def _wish(self, algorithms: Mapping[str, str]) -> Wish:
        """Choose by these from now on; return what :meth:`_take_back` takes."""
        from collectives.tuning.forced import wished

        shared = cast("Communicator", self).transport == "memory"
        made = {kind: wished(kind, name, self.size, shared) for kind, name in algorithms.items()}
        self._wished.append(made)
        try:
            self._install()
        except BaseException:
            self._forget(made)
            raise
        return made

    def _take_back(self, wish: Wish) -> None:
        """Choose without a wish, whatever else was wished for meanwhile."""
        self._forget(wish)
        if not cast("Communicator", self).closed:
            self._install()

    def _forget(self, wish: Wish) -> None:
        self._wished = [other for other in self._wished if other is not wish]

    @overload
    def explain(self, kind: str, nbytes: int = ..., *, dtype: str = ...) -> Explanation: ...
    @overload
    def explain(
        self, kind: str, nbytes: int = ..., *, device: Literal["cuda"], dtype: str = ...
    ) -> GpuExplanation: ...
    def explain(
        self, kind: str, nbytes: int = 1 << 20, *, device: str = "cpu", dtype: str = "float32"
    ) -> Explanation | GpuExplanation:
        """Say what a collective on a vector of so many bytes runs, and why nothing else. Local.

        A barrier has no bytes, whatever is given. Elements are not narrow floats: what is converted
        to be reduced, two ranks of far cores reduce in two shots from 64 KiB to 1 MiB. With
        ``device="cuda"``: whether NCCL runs it, of arrays of this ``dtype`` on GPUs.

        Raises:
            InvalidArgumentError: there is no such collective, device or (with "cuda") dtype, or
                ``nbytes`` is no length.
        """
        from collectives.names import KINDS
        from collectives.topology.checked import shown
        from collectives.tuning.explanation import explained
        from collectives.tuning.going_on import cells_of

        choose_from(kind, KINDS, "explain: collective")
        length = integer(nbytes)
        if length is None or not 0 <= length < 1 << 62:
            raise InvalidArgumentError(f"explain: nbytes is {shown(nbytes)}: give a length")
        comm = cast("Communicator", self)
        if choose_from(device, ("cpu", "cuda"), "explain: device") == "cuda":
            from collectives.rivals import explained as on_gpus

            return on_gpus.explained(comm, kind, length, dtype)
        if kind == "barrier":
            length = 0
        cells = self._cells or cells_of(self._given)
        wish = self._wishes.get(kind)
        return explained(comm, kind, length, cells, wish is not None and not wish.way)


def _keep(table: TunedTable, costs: MachineCosts | None) -> None:
    """Keep a table for later runs, or warn."""
    from collectives.tuning.kept import CACHE, NOWHERE, keep
    from collectives.tuning.table import TuningWarning

    try:
        keep(table, costs)
    except OSError as error:
        warnings.warn(
            f"the tuned table, or what the machine costs, is not kept for later runs: {error}; "
            f"set {CACHE} to a folder that can be written, or to '{NOWHERE}'",
            TuningWarning,
            stacklevel=3,
        )
