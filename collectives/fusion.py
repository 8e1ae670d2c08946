# SPDX-License-Identifier: Apache-2.0
"""Calls that are launched together: small allreduces of a group share one message."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives.arrays import Operand
from collectives.pending import Pending

# Above so many bytes a copy into the common buffer costs more than a call of its own.
FUSED_BYTES = 64 << 10
BUFFER_BYTES = 1 << 20


@dataclass
class Deferred:
    """One call that waits for the end of its group. ``key`` None: it is made on its own."""

    name: str
    run: Callable[[], Any]
    key: tuple[Any, ...] | None
    source: Operand | None
    target: Operand | None
    pending: Pending | None  # None: whoever called waits for it


def batches(calls: Sequence[Deferred]) -> Iterator[list[Deferred]]:
    """Yield the calls in the order in which they are made, those that share a buffer together.

    What is put together depends on values that are equal on all ranks: kind of call, dtype,
    operation, options and lengths. A call that is made alone keeps its place among the others.
    """
    batch: list[Deferred] = []
    size = 0
    for call in calls:
        nbytes = 0 if call.source is None else call.source.elements * itemsize(call.source)
        fits = (
            call.key is not None
            and nbytes <= FUSED_BYTES
            and (not batch or (batch[0].key == call.key and size + nbytes <= BUFFER_BYTES))
        )
        if not fits and batch:
            yield batch
            batch, size = [], 0
        if call.key is None or nbytes > FUSED_BYTES:
            yield [call]
            continue
        batch.append(call)
        size += nbytes
    if batch:
        yield batch


def fused(batch: Sequence[Deferred], allreduce: Callable[[Any], Any]) -> None:
    """Reduce all arrays of a batch in one call, and put the results where they belong."""
    sources = [_flat(call.source) for call in batch]
    if isinstance(sources[0], np.ndarray):
        buffer = np.concatenate(sources)
    else:
        buffer = sys.modules["torch"].cat(sources)
    allreduce(buffer)
    start = 0
    for call in batch:
        target = _flat(call.target)
        target[...] = buffer[start : start + len(target)]
        start += len(target)


def itemsize(array: Operand) -> int:
    """Bytes of an element."""
    return int(
        array.array.itemsize if isinstance(array.array, np.ndarray) else array.array.element_size()
    )


def _flat(array: Operand | None) -> Any:
    assert array is not None
    return array.array.reshape(-1)  # contiguous: a view, of NumPy and of torch


def leaves(tree: Any) -> list[Any]:
    """Return the arrays of a structure of lists, tuples and dicts, in order."""
    if isinstance(tree, dict):
        return [leaf for key in tree for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def rebuilt(tree: Any, results: Iterator[Any]) -> Any:
    """Return the same structure with results in the places of its arrays."""
    if isinstance(tree, dict):
        return {key: rebuilt(part, results) for key, part in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(rebuilt(part, results) for part in tree))
    if isinstance(tree, list | tuple):
        return type(tree)(rebuilt(part, results) for part in tree)
    return next(results)


def is_tree(x: Any) -> bool:
    """Whether ``x`` is a structure of arrays and not an array."""
    return isinstance(x, list | tuple | dict)
