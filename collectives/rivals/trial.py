# SPDX-License-Identifier: Apache-2.0
"""Our call and those of NCCL against each other, in turns, on memory of their own: who is faster.

What a call took on the slowest rank counts, which all ranks know from one allreduce, so they decide
alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from collectives._ffi import check, ffi, lib
from collectives.arrays import Operand
from collectives.errors import CollectiveError
from collectives.gpu_arrays import Place
from collectives.gpu_memory import allocated
from collectives.gpu_streams import as_pointer
from collectives.rivals.fitting import bytes_of
from collectives.rivals.talk import all_agree, largest

if TYPE_CHECKING:
    from collectives.caller import Caller

OURS = "ours"
SECONDS = 0.1  # for the rounds of a class of calls
LEAST, MOST = 3, 15  # of them, however long they take
_ALIKE = 0.02  # relative difference that is none: then ours runs

# Makes a call on these arrays; False: NCCL could not, and this rank has not made it.
Run = Callable[[Operand, Operand | None], bool]


class NcclFailedError(Exception):
    """A way of NCCL could not make a call on some rank; all ranks get this."""

    def __init__(self, way: str) -> None:
        """Of which way."""
        super().__init__(way)
        self.way = way


@dataclass(frozen=True)
class Decision:
    """Who runs a class of calls, "ours" or a way of NCCL, and why.

    ``seconds`` are medians of all that were raced, over so many ``rounds``, of vectors of
    ``nbytes``; none where nothing was measured.
    """

    by: str
    why: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    rounds: int = 0
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
    runs: Mapping[str, Run],
    nbytes: int,
    words: str,
) -> Decision:
    """Measure and decide. Every rank must call it, with the same ``words``; "ours" is one of them.

    Raises NcclFailedError, on all ranks alike.
    """
    try:
        own = _scratch(place, *sides)
    except CollectiveError:
        own = None
    if not all_agree(comm, own is not None, words) or own is None:
        return Decision(OURS, "there was no memory on the GPU to measure with, on some rank")

    def sample(way: str) -> float:
        return _sample(comm, place, runs[way], way, own, words)

    ways = list(runs)
    warm = np.array([[sample(way) for way in ways] for _ in range(2)])
    largest(comm, warm, words)
    rounds = int(np.clip(SECONDS / max(float(warm[1].sum()), 1e-9), LEAST, MOST))
    taken = np.zeros((rounds, len(ways)))
    for number, row in enumerate(taken):
        for turn in range(len(ways)):
            which = (number + turn) % len(ways)
            row[which] = sample(ways[which])
    largest(comm, taken, words)
    by, why = _fastest(dict(zip(ways, taken.T, strict=True)))
    return Decision(
        by=by,
        why=why,
        seconds=dict(zip(ways, np.median(taken, axis=0).tolist(), strict=True)),
        rounds=rounds,
        nbytes=nbytes,
        spent=float(warm.sum() + taken.sum()),
    )


def _fastest(taken: Mapping[str, npt.NDArray[np.float64]]) -> tuple[str, str]:
    """Return who runs such calls, and why, by what each took in the same rounds."""
    ratios = {way: float(np.median(each / taken[OURS])) for way, each in taken.items()}
    rival = min((way for way in ratios if way != OURS), key=lambda way: ratios[way])
    if abs(ratios[rival] - 1) <= _ALIKE:
        return OURS, "they are alike"
    by = rival if ratios[rival] < 1 else OURS
    return by, f"{by} was faster"


def _sample(
    comm: Caller,
    place: Place,
    run: Run,
    way: str,
    sides: tuple[Operand, Operand | None],
    words: str,
) -> float:
    """Return the seconds of a call, until it is done on the GPU."""
    _wait(comm, place)
    all_agree(comm, True, words)
    begin = time.perf_counter()
    made = run(*sides)
    # Where a rank has not made its part, the others would wait on the GPU for ever. That is asked
    # of all ways, so that all take the same time for it. Who failed at once waits here for those
    # that wait for it in a call of ours.
    if not all_agree(comm, made, words, 2 * comm._handle.timeout):
        raise NcclFailedError(way)
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
    held = allocated(place.device, bytes_of(side))
    return side._replace(pointer=held, array=held, origin=held, packed=None, stream=place.stream)
