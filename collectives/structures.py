# SPDX-License-Identifier: Apache-2.0
"""A collective of a structure of arrays: a call for each, launched together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from collectives.errors import InvalidArgumentError
from collectives.fusion import abandon, overlapping
from collectives.pending import Pending, Whole
from collectives.sparse.conversion import is_sparse
from collectives.trees import leaves, rebuilt

if TYPE_CHECKING:
    from collectives.caller import Caller


def for_each(comm: Caller, name: str, tree: Any, make: Callable[..., Any], async_op: bool) -> Any:
    """Make a call for every array of a structure, together; return the same structure.

    What is wrong with one of them is told before any is made.
    """
    arrays_of, results = leaves(name, tree), []
    outermost = comm._collected() is None
    with comm.group():
        calls = comm._collected()
        assert calls is not None
        before = len(calls)
        try:
            for label, leaf in arrays_of:
                if not async_op and not outermost and is_sparse(leaf):
                    raise InvalidArgumentError(
                        f"{name}: {label} is sparse, and its result, a new array, is not there "
                        "before the end of the group: pass async_op=True"
                    )
                results.append(make(leaf, async_op=async_op or is_sparse(leaf)))
                calls[-1].label = label
            if name == "allreduce" and (again := overlapping(calls[before:])):
                raise InvalidArgumentError(
                    f"allreduce: {again.label} shares memory with an array before it in the "
                    "structure, and would be reduced twice: pass it once"
                )
        except BaseException as error:
            abandon(calls[before:], error)
            del calls[before:]  # of a group around this call
            raise
    if not async_op:
        ended = (result.wait() if isinstance(result, Pending) else result for result in results)
        return rebuilt(tree, ended)
    return Whole(name, results, lambda values: rebuilt(tree, iter(values)))
