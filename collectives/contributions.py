# SPDX-License-Identifier: Apache-2.0
"""Sums of several contributions of each rank that depend on neither grouping nor order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.arrays import (
    NAMES,
    Array,
    Operand,
    delivered,
    fresh,
    itemsize,
    operand,
    output,
    repack,
)
from collectives.caller import Caller
from collectives.errors import InvalidArgumentError
from collectives.names import OPS, choose_from, how


class Contributions(Caller):
    """What all ranks hand in is one heap of contributions, whoever brought which."""

    def exact_sum(
        self,
        x: Array | Sequence[Array],
        out: Array | None = None,
        *,
        op: str = "sum",
        algorithm: str | None = None,
        mode: str | None = None,
        timeout: float | None = None,
    ) -> Array:
        """Sum contributions of all ranks exactly and round once; every rank gets the same bits.

        ``x`` of shape (k, ...), or a sequence of k arrays of one shape and dtype, is k
        contributions of this rank; k may differ between ranks, and is 0 for an array of shape
        (0, ...). All are floating-point or complex. The result has the shape of one contribution,
        in ``out`` or in a new array; ``x`` is left as it was.

        The bits depend on the contributions alone: neither on the number of ranks nor on who hands
        in which. ``op="avg"`` divides by the number of all contributions, before the one rounding;
        of none at all the result is 0, as their sum is.
        Infinities and NaNs are those of a sum; a zero is +0. Among 8 ranks 48 bytes travel for an
        element of float32, 288 of float64, 16 of float16: docs/arithmetic.md.
        """
        choose_from(op, ("sum", "avg"), "exact_sum: op")
        options = how("allreduce", algorithm, mode, timeout)
        given = _contributions(x)
        like = given[0]
        stacked = not isinstance(x, list | tuple)
        shape = like.shape[1:] if stacked else like.shape
        elements, own = math.prod(shape), like.shape[0] if stacked else len(given)
        each = ffi.new("size_t *")
        check(lib.coll_exact_limbs(like.dtype, self.size, each))
        target = fresh(like, shape) if out is None else _target(out, like, shape)
        words = f"exact_sum of {elements} {NAMES[like.dtype]} ({op})"
        later = not self._plain

        def run(_: str) -> Array:
            limbs = np.zeros(elements * each[0] + 1, np.int64)
            place = ffi.cast("int64_t *", limbs.ctypes.data)
            for contribution in given:
                if later:  # calls before this one may have written to what is strided
                    repack(contribution)
                _add(contribution, elements, self.size, place)
            limbs[-1] = own
            both = operand(limbs, "exact_sum")
            request, _kept = self._request(
                "allreduce", both, both, options, OPS["sum"], 0, None, None, words
            )
            self._call("exact_sum", lib.coll_run, request)
            count = max(int(limbs[-1]), 1) if op == "avg" else 1
            rounded = (like.dtype, self.size, target.pointer, place, count, elements)
            check(lib.coll_exact_round(*rounded))
            return delivered(target)

        return self._alone("exact_sum", run, async_op=False)


def _contributions(x: Array | Sequence[Array]) -> list[Operand]:
    """Return the arrays of this rank, of one shape and dtype; a stacked one as it is."""
    if not isinstance(x, list | tuple):
        stack = operand(x, "exact_sum: x")
        if not stack.shape:
            raise InvalidArgumentError(
                "exact_sum: x has no axis of contributions: give an array of shape (k, ...), or a "
                "list of arrays"
            )
        return [stack]
    if not x:
        raise InvalidArgumentError(
            "exact_sum: x is empty, so shape and dtype are not known: a rank without "
            "contributions gives an array of shape (0, ...)"
        )
    given = [operand(one, f"exact_sum: x[{i}]") for i, one in enumerate(x)]
    for i, one in enumerate(given):
        if (one.shape, one.dtype) != (given[0].shape, given[0].dtype):
            raise InvalidArgumentError(
                f"exact_sum: x[{i}] is {NAMES[one.dtype]} of shape {one.shape}, x[0] "
                f"{NAMES[given[0].dtype]} of shape {given[0].shape}: contributions are alike"
            )
    return given


def _target(out: Array, like: Operand, shape: tuple[int, ...]) -> Operand:
    target = output(out, "exact_sum: out")
    if (target.shape, target.dtype) != (shape, like.dtype):
        raise InvalidArgumentError(
            f"exact_sum: out is {NAMES[target.dtype]} of shape {target.shape}, a contribution "
            f"{NAMES[like.dtype]} of shape {shape}"
        )
    return target


def _add(given: Operand, elements: int, ranks: int, limbs: object) -> None:
    """Add an array of one or more contributions to limbs."""
    start = ffi.cast("char *", given.pointer)
    many = given.elements // elements if elements else 0
    for i in range(many):
        at = start + i * elements * itemsize(given)
        check(lib.coll_exact_add(given.dtype, ranks, limbs, at, elements))
