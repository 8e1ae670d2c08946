# SPDX-License-Identifier: Apache-2.0
"""What was measured through torch.distributed, as docs/torch.md has it: read from bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

from bench.peers.cells import PLACEMENTS, Cell, Record
from bench.peers.libraries import OURS, TeamName
from bench.peers.report import Results
from collectives.cli.sizes import format_size
from scripts.markdown import table
from scripts.measured import LEAST_ROUNDS, machine_words, three_digits

OUR_WAY, THEIRS = TeamName(OURS, "torch"), TeamName("gloo", "torch")
SIZES = (8, 2 << 10, 128 << 10, 2 << 20, 32 << 20)


class Class(NamedTuple):
    """Calls of which a mean is told: of a kind, of dtypes that begin so, of sizes from to."""

    words: str
    kind: str
    dtype: str
    least: int
    most: int
    goal: float


_LARGEST = 1 << 40
CLASSES = (
    Class("all_reduce of at most 4 KiB", "allreduce", "float32", 0, 4 << 10, 10),
    Class("all_reduce of 64 KiB and more", "allreduce", "float32", 64 << 10, _LARGEST, 3),
    Class("all_reduce of bfloat16", "allreduce", "bfloat16", 0, _LARGEST, 5),
    Class("reduce_scatter_tensor", "reduce_scatter", "", 0, _LARGEST, 4),
    Class("all_gather_into_tensor", "allgather", "", 0, _LARGEST, 3),
)


def through_torch(folder: Path) -> str:
    """Return the times of calls through torch beside gloo's, and what a step of DDP waits for."""
    found = Results.read([folder / "torch.json"])
    rows = [
        _row(record, place)
        for record in sorted(found.records, key=lambda record: record.cell)
        for place in PLACEMENTS
        if record.cell.nbytes in SIZES and _rounds(record, place) >= LEAST_ROUNDS
    ]
    heads = ["call", "collectives", "gloo", "gloo's time over ours [95 %]"]
    run = machine_words(found.machine)
    text = (
        f"`make bench-torch`, {run}. Median microseconds of a call through torch.distributed, two "
        "ranks of one machine, one core each, both backends interleaved in one run, at least "
        f"{LEAST_ROUNDS} rounds; near and far: whether the two cores share a cache at that moment. "
        "Means are over sizes and placements, whose number is in brackets."
    )
    means = table(
        ["calls", "goal", "gloo's time over ours, geometric mean", "least"],
        [_mean(kind, found) for kind in CLASSES],
        numbers=(1, 2, 3),
    )
    words = f"{_calls(folder / 'torch_call.json')} {_steps(folder / 'ddp.json')}"
    return f"{means}\n\n{table(heads, rows, numbers=(1, 2, 3))}\n\n{text}\n\n{words}"


def _mean(kind: Class, found: Results) -> list[str]:
    ratios = list(_ratios(kind, found))
    return [
        f"{kind.words} ({len(ratios)})",
        f"{kind.goal:.0f}",
        f"{geometric_mean(ratios):.1f}",
        f"{min(ratios):.1f}",
    ]


def _ratios(kind: Class, found: Results) -> Iterator[float]:
    """Yield gloo's time over ours of each size and placement that was seen often enough."""
    for record in found.records:
        cell = record.cell
        if (cell.kind, True) != (kind.kind, cell.dtype.startswith(kind.dtype)):
            continue
        for place in PLACEMENTS:
            ratio = record.sheets[place].ratio(THEIRS, OUR_WAY)
            often = _rounds(record, place) >= LEAST_ROUNDS
            if often and ratio is not None and kind.least <= cell.nbytes <= kind.most:
                yield ratio.value


def _rounds(record: Record, place: str) -> int:
    return max((len(blocks) for blocks in record.sheets[place].blocks.values()), default=0)


def _row(record: Record, place: str) -> list[str]:
    sheet = record.sheets[place]
    ratio = sheet.ratio(THEIRS, OUR_WAY)
    times = [sheet.time(team) for team in (OUR_WAY, THEIRS)]
    shown = ["" if time is None else three_digits(time) for time in times]
    over = "" if ratio is None else f"{ratio.value:.1f} [{ratio.low:.1f}, {ratio.high:.1f}]"
    return [_words(record.cell, place), *shown, over]


def _words(cell: Cell, place: str) -> str:
    return f"{cell.kind}, {cell.dtype}, {format_size(cell.nbytes)}, {place}"


def _calls(results: Path) -> str:
    found = _figures(results)
    seconds, added = found["seconds"], found["added, in fake calls"]
    return (
        f"A synchronous all_reduce of 8 bytes takes {seconds['torch'] * 1e6:.1f} µs, of which "
        f"{seconds['communicator'] * 1e6:.1f} are the call of the communicator; one of torch's "
        f"`fake` backend, which does nothing, {seconds['fake'] * 1e6:.1f}: what is added is "
        f"{added['median']:.2f} of that (lowest and highest tenth: {added['lowest tenth']:.2f} "
        f"and {added['highest tenth']:.2f})."
    )


def _steps(results: Path) -> str:
    found = _figures(results)
    waits, shares = found["not hidden"]["seconds"], found["not hidden"]["of gloo's"]
    copies = found["with buckets"]["of gloo's"]
    return (
        f"A step of DistributedDataParallel with {found['parameters'] / 1e6:.1f} million "
        f"parameters takes {waits['collectives'] * 1e3:.1f} ms longer than without communication, "
        f"{waits['gloo'] * 1e3:.1f} with gloo: {shares['median']:.2f} of it "
        f"({shares['least']:.2f} to {shares['largest']:.2f}), or {copies['median']:.2f} with the "
        "copies into buckets, which both make."
    )


def _figures(results: Path) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))["figures"]
    return figures
