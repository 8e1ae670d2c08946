# SPDX-License-Identifier: Apache-2.0
"""Plans against each other: interleaved, in pairs, until one has won or they are alike.

Every candidate is a persistent call, so that nothing is chosen, planned or bound between two of
them. What counts is the time from the first rank's begin to the last one's end, which all know from
one allreduce: so they decide alike. Of ranks that take turns on a core the last one may find all
done when it begins, and its own time says nothing. Nor does it between machines, where that time
begins when a rank has left a barrier, one sooner than another (``clocks`` make theirs one).

Short calls between machines count alone and in rows, as the geometric mean of both: programs have
both, and a tree that is the fastest alone may take twice as long as a chain where the next call
begins before the last one has left all hosts. Within a machine short calls run in rows, as one
alone takes no longer than to look at a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from collectives.clocks import seconds_to_rank_0
from collectives.errors import UnsupportedError
from collectives.intervals import of_median
from collectives.tuning.installed import install
from collectives.tuning.table import Choice

if TYPE_CHECKING:
    from collectives.communicator import Communicator

Seconds = npt.NDArray[np.float64]
PARTED = ("reduce_scatter", "allgather", "gather", "scatter", "alltoall")
ALIKE = 0.02  # relative difference that is none
_BATCH = 20e-6  # seconds of back-to-back calls that one sample takes at least
_MOST_CALLS = 64  # in a sample
_WARM = 3  # rounds that only tell how many calls make a sample: the first calls of all are slow
_SURE = 3.0  # standard deviations: one of some dozen candidates lies beyond two of them by chance
_FEW = 14  # pairs; of fewer no such interval is known,
_UNSURE = 0.05  # and each of them must show so much more
_ROW = 6  # calls between machines that follow one another at once
_TOUCHED = 64 << 10  # bytes from which on buffers are written between calls, as programs do


@dataclass(frozen=True)
class Standing:
    """A candidate and the median of its seconds per call, over ``samples`` rounds."""

    choice: Choice
    seconds: float
    samples: int


class Runner:
    """A candidate that is ready to run: its buffers are shared with the others of the race."""

    def __init__(
        self, comm: Communicator, choice: Choice, buffers: Buffers, table: Sequence[Choice] | None
    ) -> None:
        """Prepare it; every rank must. Raises UnsupportedError where it cannot run.

        With a ``table`` it runs what that chooses, which need not be ``choice``.
        """
        self.choice = choice
        alone = [Choice(choice.kind, 0, *_how(choice)), _far(choice)]
        install(comm, alone if table is None else table)
        self.call: Callable[[], Any] = buffers.persistent(comm)

    def run(self, calls: int) -> tuple[float, float]:
        """Return when so many calls began and ended, in seconds."""
        call = self.call
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        return begin, time.perf_counter()


def _how(choice: Choice) -> tuple[str, str, int, int]:
    return choice.algorithm, choice.mode, choice.lag, choice.tile_bytes


def _far(choice: Choice) -> Choice:
    return Choice(choice.kind, 0, *_how(choice), far=True)


class Buffers:
    """Arrays of zeros for one kind of collective on a vector of so many bytes."""

    def __init__(self, kind: str, nbytes: int, p: int) -> None:
        """Allocate them: whole float32 elements, the same on each rank."""
        self.kind = kind
        self.large = nbytes >= _TOUCHED
        whole = max(nbytes // 4, 1)
        part = max(whole // p, 1)
        ins, outs = {
            "reduce_scatter": (part * p, part),
            "allgather": (part, part * p),
            "gather": (part, part * p),
            "scatter": (part * p, part),
            "alltoall": (part * p, part * p),
        }.get(kind, (whole, whole))
        self.x = np.zeros(ins, np.float32)
        self.out = self.x if kind not in PARTED else np.zeros(outs, np.float32)

    def persistent(self, comm: Communicator) -> Callable[[], Any]:
        """Return a persistent call on them."""
        make = getattr(comm.persistent, self.kind)
        call: Callable[[], Any]
        if self.kind == "barrier":
            call = make()
        elif self.kind == "gather":
            call = make(self.x, self.out) if comm.rank == 0 else make(self.x)
        elif self.kind == "scatter":
            call = make(self.x, self.out) if comm.rank == 0 else make(None, self.out)
        elif self.out is self.x:
            call = make(self.x)
        else:
            call = make(self.x, self.out)
        return call

    def touch(self) -> None:
        """Write what is handed in and read what came out, as a program does between calls."""
        if self.large:
            self.x.fill(0)
            if self.out is not self.x:
                self.out.max()


def runners(comm: Communicator, choices: Sequence[Choice], buffers: Buffers) -> list[Runner]:
    """Return those of the candidates that can run."""
    made = []
    for choice in choices:
        try:
            made.append(Runner(comm, choice, buffers, None))
        except UnsupportedError:
            continue  # on all ranks alike: nothing was sent
    install(comm, [])
    return made


class Race:
    """Runners on one vector. All ranks go through the same rounds and take the same decisions."""

    def __init__(
        self,
        comm: Communicator,
        entered: Sequence[Runner],
        buffers: Buffers,
        favourite: Runner | None = None,
        *,
        alone: bool = False,
    ) -> None:
        """Begin with all of them; the first calls, which are slow, do not count.

        ``alone``: calls in rows do not count.

        The ``favourite`` runs to the end, and has won unless another one is faster beyond doubt: of
        many that are alike, the one that seems the fastest is so by chance.
        """
        self.comm, self.buffers, self.favourite = comm, buffers, favourite
        self.entered, self.running = list(entered), list(entered)
        self.samples: dict[int, list[float]] = {id(runner): [] for runner in entered}
        self.spent = 0.0
        self._to_rank_0 = seconds_to_rank_0(comm)
        self._calls = 1
        self._rows = not alone and not buffers.large and comm.transport != "memory"
        self._turn = np.random.default_rng(7)  # the same on all ranks
        for _ in range(1 if buffers.large else _WARM):
            self.rounds(1, self._calls)
            self._calls = self._batch()
            for taken in self.samples.values():
                taken.clear()

    def rounds(self, count: int, calls: int | None = None) -> None:
        """Run every candidate once per round, in an order drawn by lot."""
        each = (self._calls if calls is None else calls, *([_ROW] if self._rows else []))
        spans = np.zeros((count, len(self.running) + 1, len(each), 2))  # begins, negative, and ends
        begin = time.perf_counter()
        for row in spans:
            for i in self._turn.permutation(len(self.running)):
                for way, number in enumerate(each):
                    self.buffers.touch()
                    self.comm.barrier()
                    began, ended = self.running[i].run(number)
                    row[i, way] = (-(began + self._to_rank_0), ended + self._to_rank_0)
        spans[-1, -1, 0, 1] = time.perf_counter() - begin
        self.comm.allreduce(spans, op="max")
        taken = spans.sum(axis=-1)
        self.spent += float(taken[-1, -1, 0])
        per_call = np.exp(np.log(taken[:, :-1] / each).mean(axis=-1))
        for i, runner in enumerate(self.running):
            self.samples[id(runner)].extend(per_call[:, i].tolist())

    def _batch(self) -> int:
        fastest = min(min(self.samples[id(runner)]) for runner in self.running)
        return 1 if self.buffers.large else int(np.clip(_BATCH / fastest, 1, _MOST_CALLS))

    def keep_within(self, factor: float, most: int) -> None:
        """Drop what is slower than ``factor`` times the fastest, or not of the ``most`` first."""
        order = sorted(self.running, key=self.median)
        limit = factor * self.median(order[0])
        stay = [runner for runner in order[:most] if self.median(runner) <= limit]
        stay += [r for r in self.running if r is self.favourite and r not in stay]
        self.running = stay

    def median(self, runner: Runner) -> float:
        """Return the median of a candidate's seconds per call."""
        return float(np.median(self.samples[id(runner)]))

    def decided(self) -> bool:
        """Tell whether the first differs from each other one, or is as good as the same.

        Whether it beats the favourite must be as clear as :meth:`standings` wants it.
        """
        order = sorted(self.running, key=self.median)
        return all(
            (_settled if other is self.favourite else separate)(self.pairs(order[0], other))
            for other in order[1:]
        )

    def pairs(self, one: Runner, other: Runner) -> Seconds:
        """Return how many times as long another one takes as this one, round by round, as logs."""
        a, b = self.samples[id(one)], self.samples[id(other)]
        n = min(len(a), len(b))
        ratios: Seconds = np.log(np.array(b[-n:]) / np.array(a[-n:]))
        return ratios

    def standings(self) -> list[Standing]:
        """Return those that are left, who has won first, and then those that dropped out."""
        left = {id(runner) for runner in self.running}
        order = sorted(self.entered, key=lambda r: (id(r) not in left, self.median(r)))
        favourite = self.favourite
        if favourite is not None and not clearly_above(self.pairs(order[0], favourite)):
            order.sort(key=lambda r: r is not favourite)
        return [Standing(r.choice, self.median(r), len(self.samples[id(r)])) for r in order]


def clearly_above(logs: Seconds) -> bool:
    """Tell whether pairs differ upwards, beyond doubt and by more than ``ALIKE``."""
    low = of_median(logs, _SURE)[0] if len(logs) >= _FEW else float(np.min(logs)) - _UNSURE
    return low > ALIKE


def _settled(logs: Seconds) -> bool:
    return clearly_above(logs) or of_median(logs, _SURE)[1] < ALIKE


def separate(logs: Seconds) -> bool:
    """Tell whether pairs differ beyond doubt, or beyond doubt by less than ``ALIKE``."""
    low, high = of_median(logs)
    return low > 0 or high < 0 or (low > -ALIKE and high < ALIKE)
