# SPDX-License-Identifier: Apache-2.0
"""The collectives that move parts of unequal length: allgatherv, gatherv, scatterv, alltoallv."""

from __future__ import annotations

import time
from collections.abc import Sequence

from collectives import quick_parts
from collectives._ffi import ffi
from collectives.arrays import DTYPES, Array, Operand
from collectives.caller import Caller, collective
from collectives.checks import (
    apart_target,
    checked_counts,
    checked_length,
    checked_room,
    checked_table,
    in_elements,
    received,
)
from collectives.errors import InvalidArgumentError
from collectives.gpu_arrays import anywhere
from collectives.lengths import UNKNOWN, exchanged, joined
from collectives.names import AUTOMATIC, KINDS, Options, checked_root, how

_ALLGATHER = KINDS["allgather"]
_INT64 = DTYPES["int64"]


class Parts(Caller):
    """Movements whose parts are as long as each rank likes, along the first axis."""

    @quick_parts.allgatherv
    def allgatherv(
        self,
        x: Array,
        counts: Sequence[int] | None = None,
        out: Array | None = None,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Join parts of unequal length along the first axis, in rank order, on every rank.

        ``x`` of shape (counts[rank], ...) gives (sum(counts), ...), in ``out`` or in a new array;
        ``x`` may be rank r's own part of ``out``. ``counts[r]`` is the length of rank r's ``x``
        along its first axis, 0 allowed. All ranks pass the same counts, or none: then they tell
        each other in one more small collective, ``out`` must not overlap ``x``, and where an
        ``out`` has another length than the result all ranks raise the same MismatchError, after
        which the communicator works on.
        """
        options = how("allgather", algorithm, mode, timeout)
        source = anywhere(x, "allgatherv: x")
        lengths, options = self._lengths("allgatherv", source, counts, out, options)
        elements = in_elements("allgatherv", lengths, source)
        shape = (sum(lengths), *source.shape[1:])
        target = apart_target("allgatherv", source, out, [shape])
        return self._begin(
            "allgatherv", "allgather", source, target, options, counts=elements, async_op=async_op
        )

    @quick_parts.gatherv
    def gatherv(
        self,
        x: Array,
        counts: Sequence[int] | None = None,
        out: Array | None = None,
        *,
        root: int = 0,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array | None:
        """Join parts of unequal length along the first axis, in rank order, on rank ``root``.

        There it is as allgatherv, ``counts`` and what it does without them included. The other
        ranks get None: their ``out`` is left as it was.
        """
        options = how("gather", algorithm, mode, timeout)
        source = anywhere(x, "gatherv: x")
        place = checked_root("gatherv", root, self.size)
        here = self.rank == place
        lengths, options = self._lengths("gatherv", source, counts, out if here else None, options)
        elements = in_elements("gatherv", lengths, source)
        shape = (sum(lengths), *source.shape[1:])
        target = apart_target("gatherv", source, out, [shape]) if here else None
        return self._begin(
            "gatherv",
            "gather",
            source,
            target,
            options,
            root=place,
            counts=elements,
            async_op=async_op,
        )

    @quick_parts.scatterv
    def scatterv(
        self,
        x: Array | None,
        counts: Sequence[int],
        out: Array | None = None,
        *,
        root: int = 0,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Give rank r a part, of length ``counts[r]``, of the first axis of rank ``root``'s ``x``.

        The root's ``x`` of shape (sum(counts), ...) gives (counts[rank], ...). All ranks pass the
        same counts, one length per rank, 0 allowed. Where ``x`` and ``out`` are needed, and what
        is returned, is as with scatter.
        """
        options = how("scatter", algorithm, mode, timeout)
        place = checked_root("scatterv", root, self.size)
        lengths = checked_counts("scatterv: counts", counts, self.size)
        own = lengths[self.rank]
        if self.rank == place:
            source = anywhere(x, "scatterv: x")
            checked_length("scatterv", source, sum(lengths), "the sum of counts")
            target = apart_target("scatterv", source, out, [(own, *source.shape[1:])])
        else:
            source = None
            target = received("scatterv", x, out, self.rank, place)
            given = "x" if out is None else "out"
            checked_length("scatterv", target, own, f"counts[{self.rank}]", given)
        elements = in_elements("scatterv", lengths, target)
        return self._begin(
            "scatterv",
            "scatter",
            source,
            target,
            options,
            root=place,
            counts=elements,
            async_op=async_op,
        )

    @quick_parts.alltoallv
    def alltoallv(
        self,
        x: Array,
        send_counts: Sequence[int] | Sequence[Sequence[int]],
        recv_counts: Sequence[int] | None = None,
        out: Array | None = None,
        *,
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Array:
        """Exchange blocks of unequal length: each rank hands one to every rank, itself included.

        ``x`` holds the blocks for rank 0, 1, ... one after the other along its first axis; block r
        has length ``send_counts[r]``, 0 allowed. The result holds the blocks from rank 0, 1, ...,
        of shape (sum of their lengths, ...), in ``out`` or in a new array.

        The lengths of all ranks' blocks are found in one more small collective, and what does not
        fit is told to all ranks alike: where ``recv_counts[r]`` is not what rank r sends, or an
        ``out`` is of another length than what arrives, all raise the same MismatchError, after
        which the communicator works on. ``out`` must not overlap ``x``. To save that collective,
        all ranks pass the same whole table as ``send_counts``: ``size`` rows of ``size``
        lengths, row s of what rank s sends.
        """
        options = how("alltoall", algorithm, mode, timeout)
        source = anywhere(x, "alltoallv: x")
        table, options = self._table(source, send_counts, recv_counts, out, options)
        elements = in_elements("alltoallv", [n for row in table for n in row], source)
        shape = (sum(row[self.rank] for row in table), *source.shape[1:])
        target = apart_target("alltoallv", source, out, [shape])
        return self._begin(
            "alltoallv", "alltoall", source, target, options, counts=elements, async_op=async_op
        )

    def _lengths(
        self,
        call: str,
        source: Operand,
        counts: Sequence[int] | None,
        out: Array | None,
        options: Options,
    ) -> tuple[list[int], Options]:
        """Return the lengths of all ranks' parts, given or asked for, and what is left of time."""
        if counts is not None:
            lengths = checked_counts(f"{call}: counts", counts, self.size)
            checked_length(call, source, lengths[self.rank], f"counts[{self.rank}]")
            return lengths, options
        if not source.shape:
            raise InvalidArgumentError(f"{call}: x is a number, without an axis: pass x.reshape(1)")
        room = checked_room(call, source, out)
        rows, options = self._tell(call, [source.shape[0], room], options)
        return joined(call, rows), options

    def _table(
        self,
        source: Operand,
        send_counts: object,
        recv_counts: object,
        out: Array | None,
        options: Options,
    ) -> tuple[list[list[int]], Options]:
        """Return the lengths of all blocks, ``[sender][receiver]``, and what is left of time."""
        p, rank = self.size, self.rank
        table = checked_table("alltoallv: send_counts", send_counts, p)
        if table is None:
            row = checked_counts("alltoallv: send_counts", send_counts, p)
        else:
            row = table[rank]
        checked_length("alltoallv", source, sum(row), "the sum of send_counts")
        expected = [UNKNOWN] * p
        if recv_counts is not None:
            expected = checked_counts("alltoallv: recv_counts", recv_counts, p)
        if table is None:
            room = checked_room("alltoallv", source, out)
            rows, options = self._tell("alltoallv", [*row, *expected, room], options)
            return exchanged("alltoallv", rows), options
        arriving = [sent[rank] for sent in table]
        if recv_counts is not None and expected != arriving:
            raise InvalidArgumentError(
                f"alltoallv: recv_counts is {expected}, but column {rank} of send_counts is "
                f"{arriving}: leave recv_counts out"
            )
        return table, options

    def _tell(
        self, call: str, words: Sequence[int], options: Options
    ) -> tuple[list[list[int]], Options]:
        """Give all ranks each other's words; return them by rank, and what is left of time."""
        seconds = options[2]
        start, n = time.monotonic(), len(words)
        mine, everybodys = ffi.new("int64_t[]", list(words)), ffi.new("int64_t[]", self.size * n)
        self._call(
            call, collective, _ALLGATHER, mine, everybodys, n, _INT64, 0, 0,
            *AUTOMATIC[:2], seconds,
        )  # fmt: skip
        if seconds > 0:
            seconds = max(seconds - (time.monotonic() - start), 1e-3)
        found = ffi.unpack(everybodys, self.size * n)
        rows = [found[r * n : (r + 1) * n] for r in range(self.size)]
        return rows, (*options[:2], seconds, *options[3:])
