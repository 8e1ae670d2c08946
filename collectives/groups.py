# SPDX-License-Identifier: Apache-2.0
"""Groups of the ranks of a communicator: split, subgroup, dup and mesh."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from collectives._ffi import ffi, lib
from collectives.caller import NOTHING, Caller
from collectives.errors import InvalidArgumentError
from collectives.handle import Handle
from collectives.names import MOST_RANKS, checked_seconds, choose_from, integer

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_MOST_KEY = 2**63 - 1  # the native layer holds colors and keys in 64 bits


class Groups(Caller):
    """New communicators among some of the ranks, made without a new meeting.

    All ranks call the same of these methods, in one order with their collectives. The new
    communicator takes over the time-out, and else stands for itself: it may be closed later or
    earlier than the one that it came from, an abort of one does not reach the other, and calls on
    several of them may be under way at once, each from a thread of its own. A rank that dies is
    reported by every group that it was in, as the rank that it had there.

    A group whose ranks are all of one machine shares its memory, if each of them can: ``transport``
    says ``"memory"``, also where this communicator spans several machines.

    Where a group cannot be made on one rank (no memory), all ranks get that error, and the
    communicator works on.
    """

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        """Return the communicator of all ranks that pass the same ``color``; None for None.

        In it ranks are in the order of their ``key``, and where keys are equal, in the order that
        they have here. ``color`` is 0 or more.
        """
        number: int = lib.COLL_NO_COLOR
        if color is not None:
            number = _checked("split: color", color, 0, "0 or more, or None to be in no group")
        order = _checked("split: key", key, -_MOST_KEY, "an integer below 2**63")
        return self._form("split", lib.coll_split, number, order)

    def subgroup(self, ranks: Sequence[int]) -> Communicator | None:
        """Return the communicator of these ranks, in this order; None where this is none of them.

        All ranks of this communicator pass the same list.
        """
        members = _integers("subgroup: ranks", ranks)
        for rank in members:
            if not 0 <= rank < self.size:
                raise InvalidArgumentError(
                    f"subgroup: {rank} in {ranks!r} is none of the ranks 0 to {self.size - 1}"
                )
        if len(set(members)) < len(members):
            raise InvalidArgumentError(f"subgroup: {ranks!r} names a rank twice")
        native = ffi.new("int32_t[]", members)
        return self._form("subgroup", lib.coll_subgroup, native, len(members))

    def dup(self) -> Communicator:
        """Return another communicator of the same ranks, whose calls are independent.

        It chooses by the same table (:meth:`tune`) for a start.
        """
        made = self._form("dup", lib.coll_dup)
        assert made is not None
        made._inherit(cast("Communicator", self))
        return made

    def shrink(self, *, timeout: float | None = None) -> Communicator:
        """Return a communicator of the ranks that live, in their order.

        For after a failure, or :meth:`revoke`; a communicator that still works is ended by it on
        all ranks. Every rank that lives calls it, once, and is waited for; they agree on who that
        is: nobody whose process or machine is gone, or who closed. This one is then to be closed::

            try:
                comm.allreduce(x)
            except cl.CollectiveError:
                comm = comm.shrink()

        Raises CollectiveTimeoutError, which names a rank that lives and did not come, after
        ``timeout`` seconds (None: the communicator's), and PeerLostError where the others took this
        rank for lost.
        """
        seconds = 0.0 if timeout is None else checked_seconds("shrink: timeout", timeout)
        made = self._form("shrink", lib.coll_shrink, seconds)
        assert made is not None
        return made

    def mesh(self, shape: Sequence[int], names: Sequence[str]) -> Mesh:
        """Lay the ranks out in a mesh; return a communicator along each of its axes.

        ``shape`` gives the ranks along each axis; their product is ``size``. Ranks are in
        row-major order: rank r lies where element r of ``numpy.arange(size).reshape(shape)``
        does. ``names`` gives each axis a name of its own::

            mesh = comm.mesh((2, 4), ("dp", "tp"))
            mesh["tp"].allreduce(x)     # among the 4 ranks of this row
        """
        lengths = _integers("mesh: shape", shape)
        if not lengths or min(lengths) < 1 or math.prod(lengths) != self.size:
            raise InvalidArgumentError(
                f"mesh: shape is {shape!r}: give lengths of 1 or more whose product is "
                f"{self.size}, the number of ranks"
            )
        axes = _axis_names(names, len(lengths))
        native = ffi.new("int32_t[]", lengths)
        along: dict[str, Communicator] = {}
        with ExitStack() as undo:
            for axis, name in enumerate(axes):
                label = name.encode("utf-8", "backslashreplace")
                made = self._form("mesh", lib.coll_axis, native, len(lengths), axis, label)
                assert made is not None
                undo.callback(made.close)
                along[name] = made
            undo.pop_all()
        return Mesh(along)

    def _form(
        self,
        name: str,
        function: Callable[..., int],
        *arguments: Any,
        call: Callable[..., None] | None = None,
    ) -> Communicator | None:
        """Form a group natively; own what comes of it, whatever interrupts this rank.

        ``call``: of a handle, within the turn of another call.
        """
        made = ffi.new("coll_comm **")
        try:
            (call or self._call)(name, function, *arguments, made)
            if made[0] == NOTHING:
                return None
            handle, tracer = Handle(made[0]), self._handle.tracer
            if tracer is not None and handle.tracer is None:
                tracer.opened(handle)
            return cast("Communicator", type(self)(handle))
        except BaseException:
            if made[0] != NOTHING:
                lib.coll_close(made[0])
            raise


class Mesh:
    """The communicators of one rank along the axes of a mesh; see :meth:`Communicator.mesh`.

    ``mesh[name]`` is the communicator of the ranks that differ from this one along that axis only.
    """

    def __init__(self, along: dict[str, Communicator]) -> None:
        """Take over a communicator for each axis."""
        self._along = along

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(self._along)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks lie along each axis."""
        return tuple(comm.size for comm in self._along.values())

    @property
    def coordinates(self) -> tuple[int, ...]:
        """Where this rank lies: its place along each axis."""
        return tuple(comm.rank for comm in self._along.values())

    def __getitem__(self, name: str) -> Communicator:
        """Return the communicator along an axis."""
        return self._along[choose_from(name, self._along, "mesh: axis")]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the axes."""
        return iter(self._along)

    def __len__(self) -> int:
        """Return the number of axes."""
        return len(self._along)

    def __repr__(self) -> str:
        """Tell the shape and where this rank lies."""
        axes = ", ".join(f"{name}={comm.size}" for name, comm in self._along.items())
        return f"<Mesh {axes}: this rank at {self.coordinates}>"

    def close(self) -> None:
        """Close the communicators along all axes."""
        with ExitStack() as all_of_them:
            for comm in self._along.values():
                all_of_them.callback(comm.close)

    def __enter__(self) -> Mesh:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; tell the other ranks first when the block raised."""
        if error is None:
            self.close()
        else:
            for comm in self._along.values():
                comm.__exit__(kind, error, trace)


def _checked(what: str, value: object, least: int, wanted: str) -> int:
    number = integer(value)
    if number is None or not least <= number <= _MOST_KEY:
        raise InvalidArgumentError(f"{what} is {value!r}: give {wanted}")
    return number


def _integers(what: str, values: Sequence[int]) -> list[int]:
    """Return a sequence of integers that fit 32 bits."""
    try:
        given = [integer(value) for value in values]
    except TypeError:  # not a sequence
        given = [None]
    numbers = [n for n in given if n is not None and -MOST_RANKS <= n <= MOST_RANKS]
    if len(numbers) < len(given):
        raise InvalidArgumentError(f"{what} is {values!r}: give a list of integers")
    return numbers


def _axis_names(names: Sequence[str], count: int) -> list[str]:
    """Return the names of the axes: one each, and no two alike."""
    try:
        given = [names] if isinstance(names, str) else list(names)
    except TypeError:  # not a sequence
        given = []
    legal = all(isinstance(name, str) and name and "\0" not in name for name in given)
    if not legal or not len(set(given)) == len(given) == count:
        raise InvalidArgumentError(
            f"mesh: names is {names!r}: give {count} different names, one for each axis"
        )
    return given
