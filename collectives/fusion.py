# SPDX-License-Identifier: Apache-2.0
"""Calls that are launched together: small allreduces of a group share one message."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives.arrays import Operand, itemsize, repack
from collectives.names import Options
from collectives.overlaps import Memory, apart, span
from collectives.pending import Pending

# Above so many bytes a copy into the common buffer costs more than a call of its own.
FUSED_BYTES = 64 << 10
BUFFER_BYTES = 1 << 20


@dataclass(slots=True)
class Deferred:
    """One call that waits for the end of its group. ``key`` None: it is made on its own."""

    name: str
    run: Callable[[str], Any]  # makes the call; takes what all ranks must agree on besides
    key: tuple[Any, ...] | None
    source: Operand | None
    target: Operand | None
    pending: Pending | None  # None: whoever called waits for it
    label: str = ""  # its place in the structure that it is part of, as "x['bias']"
    source_span: tuple[int, int] = (0, 0)  # in memory, where it may share a message
    target_span: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Look where its arrays lie; of those on a GPU, too, which are made on their own."""
        if self.source is None or self.target is None:
            return
        if self.key is not None or self.target.device >= 0:
            self.source_span = span(self.source)
            same = self.target is self.source
            self.target_span = self.source_span if same else span(self.target)


class Written:
    """The memory that the calls of a batch write. ``apart``: no two of the calls share any."""

    def __init__(self, apart: bool) -> None:
        self._apart = apart
        self._memory = Memory()

    def used_by(self, call: Deferred) -> bool:
        """Whether a call reads or writes some of it."""
        if self._apart:
            return False
        shared_with = self._memory.shared_with
        source, target = call.source, call.target
        if source is not None and shared_with(source, *call.source_span):
            return True
        return (
            target is not source and target is not None and shared_with(target, *call.target_span)
        )

    def add(self, call: Deferred) -> None:
        """Add what a call writes."""
        if call.target is not None and not self._apart:
            self._memory.add(call.target, *call.target_span)


def batches(calls: Sequence[Deferred]) -> Iterator[list[Deferred]]:
    """Yield the calls in the order in which they are made, those that share a buffer together.

    All sources of a batch are read before any result is written, so it ends where a call uses
    what one before it writes. A call that is made alone keeps its place among the others.

    What is put together depends on kind of call, dtype, operation, options, lengths, and on which
    arrays overlap. Where these differ between ranks the batches do, and :func:`agreed` of them.
    """
    batch: list[Deferred] = []
    share_nothing = _apart(calls)
    written, size = Written(share_nothing), 0
    for call in calls:
        source, nbytes = call.source, 0
        if source is not None and call.key is not None:
            nbytes = source.elements * itemsize(source)
        small = call.key is not None and nbytes <= FUSED_BYTES
        joins = batch and small and batch[0].key == call.key and size + nbytes <= BUFFER_BYTES
        if batch and (not joins or written.used_by(call)):
            yield batch
            batch, written, size = [], Written(share_nothing), 0
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
    written = Written(_apart(calls))
    for call in calls:
        if written.used_by(call):
            return call
        written.add(call)
    return None


def _apart(calls: Sequence[Deferred]) -> bool:
    spans = [call.target_span for call in calls]
    spans += [call.source_span for call in calls if call.source is not call.target]
    return apart(spans)


def agreed(batch: Sequence[Deferred]) -> str:
    """Return what all ranks must agree on in a batch: the count of its call is only the sum."""
    if len(batch) == 1:
        return batch[0].label
    lengths = [0 if call.source is None else call.source.elements for call in batch]
    if not any(call.label for call in batch):
        return "arrays of " + ", ".join(map(str, lengths))
    labels = [call.label or "an array" for call in batch]
    return ", ".join(f"{label} of {n}" for label, n in zip(labels, lengths, strict=True))


def fused(batch: Sequence[Deferred], allreduce: Callable[[Any], Any]) -> None:
    """Reduce all arrays of a batch in one call, and put the results where they belong."""
    for call in batch:
        if call.source is not None and call.source.packed is not None:
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


def fusion_key(
    kind: str, source: Operand | None, target: Operand | None, op: int, options: Options
) -> tuple[Any, ...] | None:
    """Return what calls have in common that may share a message, None for one that may not."""
    if kind != "allreduce" or source is None or target is None:
        return None
    if source.device >= 0 or target.device >= 0:  # one buffer for all is memory of the host
        return None
    if type(source.array) is not type(target.array):  # results are copied out of one buffer
        return None
    return (type(source.array), source.dtype, op, options)


def abandon(calls: Sequence[Deferred], why: BaseException) -> None:
    """End the handles of calls that will not be made."""
    for call in calls:
        if call.pending is not None:
            call.pending.abandon(why)
