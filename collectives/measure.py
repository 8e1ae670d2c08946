# SPDX-License-Identifier: Apache-2.0
"""How long a collective takes: the timing core of collbench and of ``bench/``.

Every call is timed on its own: inputs are rewritten before it and results are read and checked
after it, both outside the clock, because buffers that nobody touches stay in one core's cache and
the figures lie. A barrier lines the ranks up, and a call takes as long as its slowest rank.
Contenders for the same vector take turns in short blocks, in alternating order, so that a machine
that changes under the measurement changes for all of them. The ranks agree on the number of calls
through the communicator, never by their own clocks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from collectives.communicator import Communicator
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.exact import REDUCING, ROOTED, Buffers, Workload
from collectives.exact_sparse import SparseBuffers
from collectives.last import bus_share

AnyBuffers: TypeAlias = Buffers | SparseBuffers
Durations = npt.NDArray[np.float64]

NEAR_NS = 120.0  # one-way cache-line latency below which two cores count as near
LEAST_CALLS = 5
MOST_CALLS = 20_000


@dataclass(frozen=True)
class Contender:
    """One way to do a workload. ``None`` leaves the choice to the library."""

    algorithm: str | None = None
    mode: str | None = None


@dataclass(frozen=True)
class Effort:
    """How much to measure: `seconds` for all contenders together, or exactly `iterations` each."""

    seconds: float = 0.2
    iterations: int | None = None
    blocks: int = 4
    warm_up: int = 3


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are microseconds, bandwidths GB/s (1e9 bytes per second)."""

    kind: str
    size: int
    count: int
    dtype: str
    op: str
    root: int
    ranks: int
    algorithm: str
    mode: str
    calls: int = 0
    p50: float = math.nan
    p99: float = math.nan
    least: float = math.nan
    algbw: float = math.nan
    busbw: float = math.nan
    wrong: int = 0
    placement: str | None = None
    refused: str | None = None
    blocks: tuple[float, ...] = ()  # the medians of blocks of calls
    density: float | None = None  # of sparse vectors; sizes are then those of dense ones

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON, which has no NaN."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Row:
        """Read what ``as_json`` wrote."""
        floats = {"p50", "p99", "least", "algbw", "busbw"}
        absent = {key: math.nan for key in floats if values[key] is None}
        return cls(**values | absent | {"blocks": tuple(values.get("blocks", ()))})


Probe = Callable[[], float]


@dataclass
class _Samples:
    """What one contender has shown so far on this rank. `pace` is seconds per turn, all in all."""

    contender: Contender
    call: Callable[[], None]
    pace: float = math.inf
    spent: float = 0.0
    durations: list[Durations] = field(default_factory=list)
    wrong: int = 0
    lines: list[float] = field(default_factory=list)
    refused: str | None = None


def percentile(values: Durations, share: float) -> float:
    """Return the smallest value that at least `share` (0 ... 1) of `values` do not exceed."""
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    return float(ordered[max(math.ceil(share * len(ordered)) - 1, 0)])


def bandwidths(kind: str, nbytes: int, seconds: float, ranks: int) -> tuple[float, float]:
    """Return (algbw, busbw) in GB/s as nccl-tests defines them for `nbytes` as in its size column.

    busbw is what the busiest link must have carried: it can be held against the hardware whatever
    the number of ranks. Scans, which nccl-tests lacks, count as a vector that travels once.
    """
    if kind == "barrier" or not seconds > 0:
        return math.nan, math.nan
    algbw = nbytes / seconds / 1e9
    return algbw, algbw * bus_share(kind, ranks)


def placement(lines: Sequence[float]) -> str | None:
    """Name the state of the machine from probed line latencies (nanoseconds)."""
    if not lines:
        return None
    near = [line < NEAR_NS for line in lines]
    if all(near):
        return "near"
    return "mixed" if any(near) else "far"


def bind(comm: Communicator, buffers: AnyBuffers, contender: Contender) -> Callable[[], None]:
    """Return the call to be timed, with everything decided beforehand."""
    work = buffers.workload
    options: dict[str, Any] = {}
    if contender.algorithm is not None:
        options["algorithm"] = contender.algorithm
    if contender.mode is not None:
        options["mode"] = contender.mode
    if work.kind in REDUCING:
        options["op"] = work.op
    if work.kind in ROOTED:
        options["root"] = work.root
    collective = getattr(comm, work.kind)
    if isinstance(buffers, SparseBuffers):
        return lambda: setattr(buffers, "out", collective(buffers.x, **options))
    x, out = buffers.x, buffers.out
    if work.kind == "barrier":
        return lambda: collective(**options)
    handed = None if work.kind == "scatter" and comm.rank != work.root else x
    if out is x or (work.kind == "gather" and comm.rank != work.root):
        return lambda: collective(x, **options)
    return lambda: collective(handed, out, **options)


def timed(
    comm: Communicator, buffers: AnyBuffers, call: Callable[[], None], calls: int, turn: int
) -> tuple[Durations, int]:
    """Time `calls` calls one by one; return this rank's seconds and its count of wrong elements."""
    durations = np.empty(calls)
    wrong = 0
    clock, barrier, fill, check = time.perf_counter, comm.barrier, buffers.fill, buffers.wrong
    for i in range(calls):
        fill(turn + i)
        barrier()
        begin = clock()
        call()
        durations[i] = clock() - begin
        wrong += check(turn + i)
    return durations, wrong


def measure(
    comm: Communicator,
    workload: Workload,
    contenders: Sequence[Contender],
    effort: Effort | None = None,
    *,
    probe: Probe | None = None,
    tick: Callable[[], None] | None = None,
) -> list[Row]:
    """Measure all `contenders` on one workload; every rank calls it with the same arguments.

    `probe` returns the one-way line latency in nanoseconds; rank 0 calls it around every block
    while the others sleep, and rows are tagged near or far by it. `tick` is called once per block.
    Returns the rows on every rank. A contender that the library refuses gives a row that says so.
    """
    effort = effort or Effort()
    kind: type[AnyBuffers] = Buffers if workload.density is None else SparseBuffers
    buffers = kind(workload, comm.rank, comm.size)
    samples = [_Samples(c, bind(comm, buffers, c)) for c in contenders]
    turn = 0
    for sample in samples:
        turn = _warm_up(comm, buffers, sample, effort.warm_up, turn)
    share = effort.seconds / max(len(samples), 1)
    for block in range(effort.blocks):
        for sample in samples if block % 2 == 0 else reversed(samples):
            if sample.refused is None:
                calls = _agreed_calls(comm, sample, effort, block, share)
                turn = _block(comm, buffers, sample, calls, turn, probe)
            if tick is not None:
                tick()
    return [_row(comm, buffers, sample) for sample in samples]


def _warm_up(
    comm: Communicator, buffers: AnyBuffers, sample: _Samples, calls: int, turn: int
) -> int:
    """Make the first calls, which count only as estimates and checks."""
    for _ in range(max(calls, 1)):
        begin = time.perf_counter()
        try:
            _, wrong = timed(comm, buffers, sample.call, 1, turn)
        except (UnsupportedError, InvalidArgumentError) as refusal:
            # The argument is the same on all ranks, and so is the refusal: nothing was sent.
            sample.refused = str(refusal)
            return turn
        sample.pace = min(sample.pace, time.perf_counter() - begin)
        sample.wrong += wrong
        turn += 1
    return turn


def _agreed_calls(
    comm: Communicator, sample: _Samples, effort: Effort, block: int, share: float
) -> int:
    """Return how many calls this block has: rank 0 decides, by what the last block took."""
    if effort.iterations is not None:
        done = effort.iterations * block // effort.blocks
        return effort.iterations * (block + 1) // effort.blocks - done
    time_left = (share - sample.spent) / (effort.blocks - block)
    fitting = int(time_left / max(sample.pace, 1e-7))
    least = -(-LEAST_CALLS // effort.blocks)
    agreed = np.array([min(max(fitting, least), MOST_CALLS // effort.blocks)], np.int64)
    comm.broadcast(agreed, root=0)
    return int(agreed[0])


def _block(
    comm: Communicator,
    buffers: AnyBuffers,
    sample: _Samples,
    calls: int,
    turn: int,
    probe: Probe | None,
) -> int:
    """Time one block of calls."""
    if calls == 0:
        return turn
    if probe is not None and comm.rank == 0:
        sample.lines.append(probe())
    begin = time.perf_counter()
    durations, wrong = timed(comm, buffers, sample.call, calls, turn)
    took = time.perf_counter() - begin
    sample.durations.append(durations)
    sample.wrong += wrong
    sample.spent += took
    sample.pace = took / calls
    if probe is not None:
        comm.barrier()  # the others must not run into the probe
        if comm.rank == 0:
            sample.lines.append(probe())
    return turn + calls


def _row(comm: Communicator, buffers: AnyBuffers, sample: _Samples) -> Row:
    """Join the ranks' samples: the slowest rank's time of each call, the sum of wrong elements."""
    work, ranks = buffers.workload, comm.size
    row: dict[str, Any] = {
        "kind": work.kind,
        "size": work.size(ranks) if work.kind != "barrier" else 0,
        "count": work.count(ranks),
        "dtype": work.dtype,
        "op": work.op if work.kind in REDUCING else "none",
        "root": work.root if work.kind in ROOTED else -1,
        "ranks": ranks,
        "algorithm": sample.contender.algorithm or "auto",
        "mode": sample.contender.mode or "auto",
        "density": work.density,
    }
    if sample.refused is not None:
        return Row(**row, refused=sample.refused)
    slowest: Durations = np.concatenate([*sample.durations, np.empty(0)])
    if len(slowest):
        comm.allreduce(slowest, op="max")
    ends = np.cumsum([len(block) for block in sample.durations])
    blocks = np.split(slowest, ends[:-1]) if len(slowest) else []
    wrong = np.array([sample.wrong], np.int64)
    comm.allreduce(wrong, op="sum")
    middle = percentile(slowest, 0.5)
    algbw, busbw = bandwidths(work.kind, row["size"], middle, ranks)
    return Row(
        **row,
        calls=len(slowest),
        p50=middle * 1e6,
        p99=percentile(slowest, 0.99) * 1e6,
        least=percentile(slowest, 0.0) * 1e6,
        algbw=algbw,
        busbw=busbw,
        wrong=int(wrong[0]),
        placement=placement(sample.lines),
        blocks=tuple(percentile(block, 0.5) * 1e6 for block in blocks),
    )
