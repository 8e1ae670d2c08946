# SPDX-License-Identifier: Apache-2.0
"""Sums at indices that stay the same: these travel once, later values only."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collectives._ffi import ffi, lib
from collectives.arrays import NAMES, Array, Operand, delivered, operand, output, repack
from collectives.errors import InvalidArgumentError
from collectives.names import checked_seconds, integer, op_code
from collectives.plain_calls import run_plain_plan
from collectives.sparse.conversion import is_sparse
from collectives.sparse.vector import INDEX_DTYPES, MOST_ELEMENTS

if TYPE_CHECKING:
    import numpy.typing as npt

    from collectives.caller import Caller
    from collectives.last import LastCall


# By coll_sparse_plan_way.
WAYS = ("kylix", "owners", "direct")


class PlanTaken(NamedTuple):
    """What a call of a plan took."""

    algorithm: str
    nbytes: int
    messages: int
    rounds: int
    seconds: float
    sequence: int

    def told(self) -> LastCall:
        """Return what ``comm.last`` says of it."""
        from collectives.last import LastCall

        return LastCall(
            kind="plan.reduce",
            mode="messages",
            busbw=math.nan,
            waiting=math.nan,
            **self._asdict(),
        )


def taken_of(short: Any) -> PlanTaken:
    """Return what a call in C's short way took."""
    return PlanTaken(
        WAYS[short.way],
        int(short.bytes),
        int(short.messages),
        int(short.rounds),
        float(short.seconds),
        int(short.sequence),
    )


class SparsePlan:
    """What the ranks remember of one another's indices: :meth:`Communicator.sparse_plan`.

    Zhao & Canny, "Kylix: A Sparse Allreduce for Commodity Clusters", ICPP'14; where no degrees are
    given, and ranks are few, each index belongs to a rank that gives it.

    Attributes:
        length: Elements of the vector.
        given: How many values this rank hands in.
        asked: How many sums it gets.
    """

    def __init__(self, comm: Caller, native: Any, length: int, given: int, asked: int) -> None:
        """Take over a native plan. Users call ``comm.sparse_plan``."""
        self._comm, self._native = comm, native
        self._address = int(ffi.cast("uintptr_t", native))
        self.length, self.given, self.asked = length, given, asked

    def reduce(
        self,
        values: Array,
        out: Array | None = None,
        *,
        op: str = "sum",
        timeout: float | None = None,
        async_op: bool = False,
    ) -> Any:
        """Return the sums over all ranks at the indices that this rank has asked for.

        ``values`` has ``given`` elements, in the order of the indices that were given; the result
        has ``asked`` of the same dtype, in that of those that were asked for: ``out``, else a new
        array. Where no rank has given a value the sum is zero. ``op="avg"`` divides by the number
        of ranks.

        All ranks call it, with the same dtype and operation: else all get MismatchError.
        """
        if type(values) is np.ndarray and timeout is None and async_op is False:
            found = self._plain_sum(values, out, op)
            if found is not None:
                return found
        source = operand(values, "plan.reduce: values")
        if source.elements != self.given:
            raise InvalidArgumentError(
                f"plan.reduce: values has {source.elements} elements, but the plan was made for "
                f"{self.given} indices"
            )
        target = self._target(source, out)
        seconds = 0.0 if timeout is None else checked_seconds("plan.reduce: timeout", timeout)
        code = op_code("plan.reduce", op)

        def start(native: Any) -> int:
            return int(
                lib.coll_sparse_plan_reduce(
                    native, self._native, source.pointer, target.pointer, source.dtype, code,
                    seconds,
                )
            )  # fmt: skip

        later = async_op or not self._comm._plain

        def run(_: str) -> Any:
            if later:  # calls before this one may have written to what is strided
                repack(source)
            handle, begin = self._comm._handle, time.perf_counter()
            handle.call("plan.reduce", start)
            seconds = time.perf_counter() - begin
            handle.last_taken = PlanTaken(self.way, *self._counts(), seconds, handle.sequence)
            return delivered(target)

        return self._comm._alone("plan.reduce", run, async_op)

    def _plain_sum(self, values: Any, out: Any, op: str) -> Any:
        """Make the call if it is a usual one, and return its result; else None (plain_plan.c)."""
        comm = self._comm
        if not comm._plain or type(op) is not str or op != "sum":
            return None
        sums = np.empty(self.asked, values.dtype) if out is None else out
        found = run_plain_plan(comm._door, self._address, values, sums, self.given, self.asked)
        if found > 0:
            comm._handle.told("plan.reduce", found)
        return sums if found == 0 else None

    @property
    def sent(self) -> tuple[int, int]:
        """Bytes and messages that this rank has sent in the last call."""
        return self._counts()[:2]

    @property
    def way(self) -> str:
        """How values go: "kylix", "owners" or "direct" (docs/sparse.md), the same on all ranks."""
        way = ffi.new("int32_t *")
        lib.coll_sparse_plan_how(self._native, way)
        return WAYS[way[0]]

    def _counts(self) -> tuple[int, int, int]:
        found, rounds = ffi.new("uint64_t[2]"), ffi.new("int32_t *")
        lib.coll_sparse_plan_sent(self._native, found, found + 1, rounds)
        return int(found[0]), int(found[1]), int(rounds[0])

    def _target(self, source: Operand, out: Array | None) -> Operand:
        if out is None:
            array = source.array
            fresh = array.new_empty(self.asked) if hasattr(array, "new_empty") else None
            return operand(np.empty(self.asked, array.dtype) if fresh is None else fresh, "out")
        target = output(out, "plan.reduce: out")
        if target.elements != self.asked or target.dtype != source.dtype:
            raise InvalidArgumentError(
                f"plan.reduce: out has {target.elements} elements of {NAMES[target.dtype]}: it "
                f"must have {self.asked} of {NAMES[source.dtype]}, as values"
            )
        return target


def make_plan(
    comm: Caller,
    given: npt.ArrayLike,
    asked: npt.ArrayLike | None,
    length: int,
    degrees: Sequence[int] | None,
    timeout: float | None,
) -> SparsePlan:
    """Make the plan of ``comm.sparse_plan``."""
    here = _indices(given, "out_indices")
    there = here if asked is None else _indices(asked, "in_indices")
    if _is_none(given):
        here = _indices(np.empty(0, there.array.dtype), "out_indices")
    elif _is_none(asked):
        there = _indices(np.empty(0, here.array.dtype), "in_indices")
    if there.dtype != here.dtype:
        raise InvalidArgumentError(
            f"sparse_plan: out_indices are {NAMES[here.dtype]}, in_indices {NAMES[there.dtype]}: "
            "pass both in one dtype"
        )
    request = ffi.new("coll_sparse_indices *")
    request.size = ffi.sizeof("coll_sparse_indices")
    elements = integer(length)
    if elements is None or not 0 <= elements <= MOST_ELEMENTS:
        raise InvalidArgumentError(f"sparse_plan: a vector cannot have {length!r} elements")
    request.length, request.index_dtype = elements, here.dtype
    request.given, request.given_count = here.pointer, here.elements
    if asked is not None:
        # A list of none is not the absence of a list.
        request.asked = there.pointer if there.elements else request
        request.asked_count = there.elements
    layers = ffi.NULL if degrees is None else ffi.new("int32_t[]", _widths(degrees))
    request.degrees, request.layers = layers, 0 if degrees is None else len(layers)
    request.timeout = 0 if timeout is None else checked_seconds("sparse_plan: timeout", timeout)
    place = ffi.new("coll_sparse_plan **")

    def start(native: Any) -> int:
        for side in (here, there):  # calls before this one may have written to what is strided
            repack(side)
        return int(lib.coll_sparse_plan_make(native, request, place))

    comm._call("sparse_plan", start)
    native = ffi.gc(place[0], lib.coll_sparse_plan_free)
    return SparsePlan(comm, native, int(request.length), here.elements, there.elements)


def _widths(degrees: Sequence[int]) -> list[int]:
    found = [integer(degree) for degree in degrees] if isinstance(degrees, Iterable) else [None]
    if not found or any(width is None or not 0 < width < 1 << 31 for width in found):
        raise InvalidArgumentError(
            f"sparse_plan: degrees are {degrees!r:.80}: give the width of each layer, 1 or more"
        )
    return [width for width in found if width is not None]


def _is_none(given: npt.ArrayLike | None) -> bool:
    """Return whether it is a list of none, which has no dtype: NumPy makes floats of it."""
    return isinstance(given, list | tuple) and len(given) == 0


def _indices(given: npt.ArrayLike, name: str) -> Operand:
    """Resolve one of the lists; ``name`` is the argument that it is."""
    what = f"sparse_plan: {name}"
    if is_sparse(given):
        raise InvalidArgumentError(f"{what} is a sparse array: pass its indices alone")
    try:
        array = given if hasattr(given, "__dlpack__") else np.asarray(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{what} is no list of indices: {error}") from None
    if _is_none(given):
        array = np.empty(0, np.int64)
    if isinstance(array, np.ndarray) and array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{what}: elements of dtype {array.dtype} are no integers")
    found = operand(array, what)
    if found.dtype not in INDEX_DTYPES:
        raise InvalidArgumentError(f"{what}: {NAMES[found.dtype]} are no integers")
    if len(found.shape) != 1:
        raise InvalidArgumentError(f"{what} must have one dimension, not {len(found.shape)}")
    return found
