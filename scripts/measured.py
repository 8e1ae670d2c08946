# SPDX-License-Identifier: Apache-2.0
"""What was measured, as it stands in the documentation: read from bench/results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers.cells import PLACEMENTS, Record, Sheet
from bench.peers.libraries import LIBRARIES, OURS, PEERS, TeamName
from bench.peers.report import Results
from collectives.cli.sizes import format_size
from scripts.markdown import table

WAYS = ("ordinary", "persistent", "symmetric")
HEADS = ("pycollectives", "persistent call", "shared arrays")
LEAST_ROUNDS = 10  # of fewer nothing is said


def rivals(results: Path) -> str:
    """Return the times of an allreduce of two ranks beside those of other libraries."""
    found = Results.read([results])
    peers = [name for name in PEERS if name in found.versions]
    titles = [f"{LIBRARIES[name].title} {found.versions[name].partition('+')[0]}" for name in peers]
    rows = [
        [f"{format_size(record.cell.nbytes)}, {place}", *_times(record.sheets[place], peers)]
        for record in sorted(found.records, key=lambda record: record.cell)
        for place in PLACEMENTS
        if _tells(record, place)
    ]
    run = machine_words(found.machine)
    text = (
        f"`make bench-peers`, {run}. Median microseconds of a call from Python "
        "on float32, two ranks, one core each, all libraries interleaved in one run, each at its "
        f"best thread level, at least {LEAST_ROUNDS} rounds; near and far: whether the two cores "
        "share a cache at that moment. "
        "Persistent: `comm.persistent.allreduce(x)`, made once; shared arrays: `comm.empty`."
    )
    return table(["bytes", *HEADS, *titles], rows, numbers=range(1, 9)) + f"\n\n{text}"


REPRODUCIBLE_SIZES = (8, 4 << 10, 256 << 10, 16 << 20)


def reproducible(results: Path) -> str:
    """Return what reproducible sums take, as multiples of the default, by ranks and size."""
    document = json.loads(results.read_text(encoding="utf-8"))
    rows = []
    for ranks, found in document["ranks"].items():
        any_p = {size["bytes"]: size["any_p"] for size in found["sizes"]}
        times = [three_digits(any_p[size]) for size in REPRODUCIBLE_SIZES]
        rows.append([ranks, three_digits(found["geometric_mean"]["true"]), *times])
    first, *others = map(format_size, REPRODUCIBLE_SIZES)
    heads = ["ranks", "`True`, geometric mean of all sizes", f'`"any_p"`: {first}', *others]
    made = table(heads, rows, numbers=range(1, len(heads)))
    return f"{made}\n\n{machine_words(document['machine'])}."


def _tells(record: Record, place: str) -> bool:
    cell = record.cell
    plain = (cell.kind, cell.dtype, cell.ranks) == ("allreduce", "float32", 2)
    return plain and _enough(record.sheets[place], TeamName(OURS, WAYS[0]))


def _enough(sheet: Sheet, team: TeamName) -> bool:
    return len(sheet.blocks.get(team, {})) >= LEAST_ROUNDS


def _times(sheet: Sheet, peers: list[str]) -> list[str]:
    teams = [*(TeamName(OURS, way) for way in WAYS), *(sheet.best([name]) for name in peers)]
    times = [sheet.time(team) if team and _enough(sheet, team) else None for team in teams]
    return ["" if time is None else three_digits(time) for time in times]


def three_digits(value: float) -> str:
    """Write a number as people read it aloud."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def between_hosts(results: Path) -> str:
    """Return the times of calls between shaped hosts, as shares of what their links allow."""
    found = json.loads(results.read_text(encoding="utf-8"))
    teams = list(found["cells"][0]["teams"])
    titles = [_title(team.partition("/")[0], found["versions"]) for team in teams]
    rows = [
        [
            f"{cell['kind']}, {format_size(cell['nbytes'])}",
            *(_time_and_share(cell["teams"].get(team)) for team in teams),
        ]
        for cell in found["cells"]
    ]
    links = found["links"]
    text = (
        f"`make bench-hosts`, {machine_words(found['machine'])}: {links['hosts']} hosts, which are "
        f"network namespaces of that one machine, with links of {links['mbit']:.0f} Mbit/s "
        f"({links['congestion']}). Median microseconds of a call from Python on float32, one rank "
        f"on each host, all libraries interleaved in one run, {_rounds(found['cells'])} rounds; in "
        "brackets the share of the least time that the links allow."
    )
    return table(["", *titles], rows, numbers=range(1, len(titles) + 1)) + f"\n\n{text}"


def _title(library: str, versions: dict[str, str]) -> str:
    if library == OURS:
        return "pycollectives"
    return f"{LIBRARIES[library].title} {versions[library].partition('+')[0]}"


def _time_and_share(team: dict[str, Any] | None) -> str:
    if not team or not team["blocks"]:
        return ""
    time = median(block["seconds"] for block in team["blocks"]) * 1e6
    return f"{three_digits(time)} ({team['share']['median']:.2f})"


def _rounds(cells: list[dict[str, Any]]) -> int:
    return min(len(team["blocks"]) for cell in cells for team in cell["teams"].values())


def limits(results: Iterable[Path]) -> str:
    """Return the page of the measured shares of the limits, machine by machine."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in results]
    text = (
        "`python -m bench.limits`. Medians; every block probes its limit beside the call. "
        "Near and far: the distance of the two cores at that moment, which the host of a "
        "virtual machine changes. Share: the median of the blocks' own, each of what its "
        "probes allow, and so not quite the quotient of the medians beside it. Line: the one- "
        "way latency of a cache line between two cores. By hand: the fastest of all loops "
        "that were written for this one case (`bench/limits/interpreter.cc`, `ways.cc`). Empty "
        "call: of a native function with two arguments, from Python. sched_yield: where nobody "
        "else can run on the core. Calls of four and eight ranks are native here; from Python, "
        "back to back, eight take 22 to 37 times a sched_yield on an EPYC (`bench.peers`)."
    )
    title = "# How fast it is, as shares of what the machine can do"
    return "\n\n".join([title, text, *map(_limits_of_run, runs)]) + "\n"


def _limits_of_run(measured: dict[str, Any]) -> str:
    rows = measured["rows"]
    lines = [
        [
            f"{row['row']} ({row['placement']})",
            _duration(row["measured_ns"]),
            f"{row['goal'].replace('<=', '≤').replace('>=', '≥')}: {_duration(row['allowed_ns'])}",
            f"{row['share']:.2f}",
            _verdict(row),
        ]
        for row in rows
    ]
    blocks = sorted({row["blocks"] for row in rows})
    counted = str(blocks[0]) if len(blocks) == 1 else f"{blocks[0]} to {blocks[-1]}"
    run = machine_words(measured["machine"])
    where = f"{run[0].upper()}{run[1:]}: {counted} blocks{_switching(rows)}."
    heads = ["row", "measured", "time allowed by the goal", "share", "goal"]
    return f"{table(heads, lines, numbers=(1, 3))}\n\n{where}"


def _verdict(row: dict[str, Any]) -> str:
    told = "met" if row["met"] else "missed"
    few = not row.get("enough", True)  # results of before had no such thing
    return f"{told}, of fewer than {row['least_blocks']} blocks" if few else told


def _switching(rows: list[dict[str, Any]]) -> str:
    """Tell what a yield costs that lets another process run, if that was probed."""
    probed = [row["switch_ns"] for row in rows if row.get("switch_ns")]
    return f"; a yield to another process {_duration(median(probed))}" if probed else ""


def machine_words(machine: dict[str, Any]) -> str:
    """Tell the day, the machine and the commit of a run."""
    return (
        f"{machine['date'][:10]}, {machine['cpu']}, {machine['cores']} cores, load "
        f"{machine['load']:.1f}, Linux {machine['kernel']}, commit {machine['commit'] or 'unknown'}"
    )


def _duration(nanoseconds: float) -> str:
    """Write a time with a fitting unit."""
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1e4 else f"{nanoseconds / 1e3:.1f} µs"
