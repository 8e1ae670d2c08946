# SPDX-License-Identifier: Apache-2.0
"""Calls that are launched together: small allreduces of a group share one message."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives.arrays import Operand, itemsize, repack
from collectives.overlaps import Memory
from collectives.pending import Pending

# Above so many bytes a copy into the common buffer costs more than a call of its own.
FUSED_BYTES = 64 << 10
BUFFER_BYTES = 1 << 20


@dataclass
class Deferred:
    """One call that waits for the end of its group. ``key`` None: it is made on its own."""

    name: str
    run: Callable[[str], Any]  # makes the call; takes what all ranks must agree on besides
    key: tuple[Any, ...] | None
    source: Operand | None
    target: Operand | None
    pending: Pending | None  # None: whoever called waits for it
    label: str = ""  # its place in the structure that it is part of, as "x['bias']"

    @property
    def elements(self) -> int:
        """How many it hands in."""
        return 0 if self.source is None else self.source.elements


class Written:
    """The memory that the calls of a batch write."""

    def __init__(self) -> None:
        self._memory = Memory()

    def used_by(self, call: Deferred) -> bool:
        """Whether a call reads or writes some of it."""
        sides = [side for side in (call.source, call.target) if side is not None]
        if call.source is call.target:
            del sides[1:]
        return any(self._memory.shared_with(side) for side in sides)

    def add(self, call: Deferred) -> None:
        """Add what a call writes."""
        if call.target is not None:
            self._memory.add(call.target)


def batches(calls: Sequence[Deferred]) -> Iterator[list[Deferred]]:
    """Yield the calls in the order in which they are made, those that share a buffer together.

    All sources of a batch are read before any result is written, so it ends where a call uses
    what one before it writes. A call that is made alone keeps its place among the others.

    What is put together depends on kind of call, dtype, operation, options, lengths, and on which
    arrays overlap. Where these differ between ranks the batches do, and :func:`agreed` of them.
    """
    batch: list[Deferred] = []
    written, size = Written(), 0
    for call in calls:
        nbytes = 0 if call.source is None else call.elements * itemsize(call.source)
        small = call.key is not None and nbytes <= FUSED_BYTES
        joins = batch and small and batch[0].key == call.key and size + nbytes <= BUFFER_BYTES
        if batch and (not joins or written.used_by(call)):
            yield batch
            batch, written, size = [], Written(), 0
        if not small:
            yield [call]
            continue
        batch.append(call)
        written.add(call)
        size += nbytes
    if batch:
        yield batch


def overlapping(calls: Sequence[Deferred]) -> Deferred | None:
    """Return the first call that uses memory which one before it writes."""
    written = Written()
    for call in calls:
        if written.used_by(call):
            return call
        written.add(call)
    return None


def agreed(batch: Sequence[Deferred]) -> str:
    """Return what all ranks must agree on in a batch: the count of its call is only the sum."""
    if len(batch) == 1:
        return batch[0].label
    if not any(call.label for call in batch):
        return "arrays of " + ", ".join(str(call.elements) for call in batch)
    return ", ".join(f"{call.label or 'an array'} of {call.elements}" for call in batch)


def fused(batch: Sequence[Deferred], allreduce: Callable[[Any], Any]) -> None:
    """Reduce all arrays of a batch in one call, and put the results where they belong."""
    for call in batch:
        if call.source is not None:
            repack(call.source)
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


def _flat(array: Operand | None) -> Any:
    assert array is not None
    return array.array.reshape(-1)  # contiguous: a view, of NumPy and of torch
