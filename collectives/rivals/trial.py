# SPDX-License-Identifier: Apache-2.0
"""Our call and NCCL's against each other, in turns, on memory of their own: who is faster.

What a call took on the slowest rank counts, which all ranks know from one allreduce, so they decide
alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.arrays import Operand
from collectives.errors import CollectiveError
from collectives.gpu_arrays import Place
from collectives.gpu_streams import as_pointer
from collectives.rivals.fitting import bytes_of
from collectives.rivals.talk import all_agree, largest

if TYPE_CHECKING:
    from collectives.caller import Caller

SECONDS = 0.1  # for the pairs of a class of calls
LEAST, MOST = 3, 15  # of them, however long they take
_ALIKE = 0.02  # relative difference that is none: then ours runs

# Makes a call on these arrays; False: NCCL could not, and this rank has not made it.
Run = Callable[[Operand, Operand | None], bool]


class NcclFailedError(Exception):
    """NCCL could not make a call on some rank; all ranks get this."""


@dataclass(frozen=True)
class Decision:
    """Whether NCCL runs a class of calls, and why.

    ``ours`` and ``nccl`` are medians of seconds, over so many ``pairs``, of vectors of ``nbytes``;
    0 where nothing was measured.
    """

    by_nccl: bool
    why: str
    ours: float = 0.0
    nccl: float = 0.0
    pairs: int = 0
    nbytes: int = 0
    spent: float = 0.0  # seconds, of the slowest rank


def is_captured(place: Place) -> bool:
    """Whether the stream is being captured into a graph: nothing can be measured on it then."""
    captured = ffi.new("int32_t *")
    check(lib.coll_gpu_captured(place.device, as_pointer(place.stream), captured))
    return bool(captured[0])


def trial(
    comm: Caller,
    place: Place,
    sides: tuple[Operand, Operand | None],
    ours: Run,
    theirs: Run,
    nbytes: int,
    words: str,
) -> Decision:
    """Measure and decide. Every rank must call it, with the same ``words``.

    Raises NcclFailedError, on all ranks alike.
    """
    try:
        own = _scratch(place, *sides)
    except CollectiveError:
        own = None
    if not all_agree(comm, own is not None, words) or own is None:
        return Decision(False, "there was no memory on the GPU to measure with, on some rank")
    runs = (ours, theirs)
    warm = np.array([[_sample(comm, place, run, own, words) for run in runs] for _ in range(2)])
    largest(comm, warm, words)
    pairs = int(np.clip(SECONDS / max(float(warm[1].sum()), 1e-9), LEAST, MOST))
    taken = np.zeros((pairs, 2))
    for number, row in enumerate(taken):
        for which in (0, 1) if number % 2 else (1, 0):
            row[which] = _sample(comm, place, runs[which], own, words)
    largest(comm, taken, words)
    ratio = float(np.median(taken[:, 1] / taken[:, 0]))
    faster = "NCCL" if ratio < 1 - _ALIKE else "ours"
    return Decision(
        by_nccl=faster == "NCCL",
        why=f"{faster} was faster" if abs(ratio - 1) > _ALIKE else "they are alike",
        ours=float(np.median(taken[:, 0])),
        nccl=float(np.median(taken[:, 1])),
        pairs=pairs,
        nbytes=nbytes,
        spent=float(warm.sum() + taken.sum()),
    )


def _sample(
    comm: Caller, place: Place, run: Run, sides: tuple[Operand, Operand | None], words: str
) -> float:
    """Return the seconds of a call, until it is done on the GPU."""
    _wait(comm, place)
    all_agree(comm, True, words)
    begin = time.perf_counter()
    made = run(*sides)
    # Where a rank has not made its part, the others would wait on the GPU for ever. That is asked
    # of both, so that both take the same time for it.
    if not all_agree(comm, made, words):
        raise NcclFailedError
    _wait(comm, place)
    return time.perf_counter() - begin


def _wait(comm: Caller, place: Place) -> None:
    """Wait until the stream of the call is done."""
    comm._handle.call("trial", lib.coll_gpu_wait, place.device, as_pointer(place.stream))


def _scratch(
    place: Place, source: Operand, target: Operand | None
) -> tuple[Operand, Operand | None]:
    """Return arrays of zeros like those of a call, in place where these are."""
    own = _like(place, source)
    if target is None or target.pointer == source.pointer:
        return own, None if target is None else own
    return own, _like(place, target)


def _like(place: Place, side: Operand) -> Operand:
    memory: Any = ffi.new("void **")
    check(lib.coll_gpu_allocate(place.device, max(bytes_of(side), 1), memory))
    device = place.device
    held = ffi.gc(memory[0], lambda address: lib.coll_gpu_free(device, address))
    return side._replace(pointer=held, array=held, origin=held, packed=None, stream=place.stream)
