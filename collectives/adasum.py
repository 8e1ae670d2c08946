# SPDX-License-Identifier: Apache-2.0
"""Adasum: what gradients agree on is averaged, what they do not is added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collectives import arrays
from collectives._ffi import lib
from collectives.arrays import Array, operand
from collectives.checks import in_place_target
from collectives.errors import InvalidArgumentError
from collectives.names import checked_seconds

if TYPE_CHECKING:
    from collectives.caller import Caller


def adasum(
    comm: Caller,
    x: Array,
    out: Array | None,
    timeout: float | None,
    refused: dict[str, Any],
    *,
    async_op: bool,
) -> Array:
    """Combine ``x`` of all ranks two by two: ``allreduce(x, op="adasum")``.

    Maleki, Musuvathi, Mytkowicz, Saarikivi, Xu, Eksarevskiy, Ekanayake & Barsoum, "Scaling
    Distributed Training with Adaptive Summation", MLSys'21. Of two vectors a and b it is
    (1 - ab/2aa) a + (1 - ab/2bb) b: their sum where they are orthogonal, their mean where they are
    equal. Neighbours are combined first, then pairs of pairs; where the number of ranks is no power
    of two, the first pairs of neighbours beforehand. ``refused``: options that may not be given.
    """
    for name, value in refused.items():
        if value is not None and value is not False:
            raise InvalidArgumentError(f'allreduce: {name} is not there for op="adasum"')
    source = operand(x, "allreduce: x")
    target = in_place_target("allreduce", source, out)
    seconds = 0.0 if timeout is None else checked_seconds("allreduce: timeout", timeout)

    def start(native: Any) -> int:
        arguments = (source.pointer, target.pointer, source.elements, source.dtype, seconds)
        return int(lib.coll_adasum(native, *arguments))

    later = async_op or not comm._plain

    def run(_: str) -> Array:
        if later:  # calls before this one may have written to what is strided
            arrays.repack(source)
        comm._handle.call("adasum", start)
        return arrays.delivered(target)

    return comm._alone("adasum", run, async_op)
