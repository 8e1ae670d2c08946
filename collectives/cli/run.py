# SPDX-License-Identifier: Apache-2.0
"""The subcommands that measure: one per collective."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import collectives as cl
from collectives.cli import plot, table
from collectives.cli.machine import facts
from collectives.cli.options import FILE, SIZES, check_folder, write_json
from collectives.cli.screen import Screen
from collectives.cli.seconds import Seconds
from collectives.cli.sizes import format_size, parse_sizes
from collectives.cli.team import Event, RankFailedError, Team
from collectives.cli.worker import Spec
from collectives.exact import DTYPES, OPS, REDUCING, ROOTED, SCANS, SPARSE, Workload, dtype_of
from collectives.measure import Effort, Row

MODES = ("auto", "staged", "inline")  # pull and push need arrays that all ranks reach
MOST_RANKS = 256


@dataclass(frozen=True)
class Wish:
    """The command line, checked."""

    ranks: int
    spec: Spec
    json_file: Path | None
    plot_file: Path | None

    @property
    def title(self) -> str:
        """What is measured, in one line."""
        spec = self.spec
        data = "" if spec.kind == "barrier" else f" of {spec.dtype}"
        if spec.density is not None:
            data = f" of sparse {spec.dtype}, {spec.density:.4%} of the elements"
        op = f", {spec.op}" if spec.kind in REDUCING else ""
        cores = len(os.sched_getaffinity(0))
        pinned = ", pinned" if spec.pin else ""
        return f"{spec.kind}{data}{op}: {self.ranks} ranks on {cores} cores{pinned}"


def command(kind: str) -> click.Command:
    """Make the subcommand of a collective."""

    def callback(**chosen: Any) -> int:
        return _run(_wish(kind, chosen))

    return click.Command(
        kind,
        params=_options(kind),
        callback=callback,
        short_help=f"Measure {kind}.",
        help=f"Measure {kind}. Every result is checked.\n\n"
        "A call's time is that of its slowest rank, from Python. algbw is size over p50, busbw "
        "what the busiest link must carry, both as nccl-tests defines them.",
    )


def _options(kind: str) -> list[click.Parameter]:
    def option(*names: str, **settings: Any) -> click.Option:
        settings.setdefault("show_default", "default" in settings)
        return click.Option(list(names), **settings)

    data: list[click.Parameter] = [
        option("-s", "--sizes", type=SIZES, default="8:16M", help="As 8:64M or 8,1K,1M."),
        option("--factor", type=click.IntRange(2), default=4, help="Growth within a range."),
        option("-d", "--dtype", type=click.Choice(DTYPES), default="float32"),
    ]
    ops = [op for op in OPS if op != "avg" or kind not in SCANS]
    op = option("-o", "--op", type=click.Choice(ops), default="sum")
    density = option(
        "--density", type=click.FloatRange(0, 1, min_open=True),
        help="Sparse vectors, of which each rank has this share; sizes are of dense ones.",
    )  # fmt: skip
    root = option("--root", type=click.IntRange(0), default=0, help="The rank that gives or gets.")
    return [
        option("-n", "--ranks", type=click.IntRange(1, MOST_RANKS), default=2, help="Processes."),
        *(data if kind != "barrier" else []),
        *([op] if kind in REDUCING else []),
        *([root] if kind in ROOTED else []),
        *([density] if kind in SPARSE else []),
        option("-a", "--algorithms", default="auto", help="all, auto, or names: ring,circulant."),
        option("--mode", type=click.Choice(MODES), default="auto", help="Where messages lie."),
        option("--pin/--no-pin", default=None, help="A core per rank.  [default: if enough]"),
        option("--iterations", type=click.IntRange(1), help="Calls per row.  [default: as fit]"),
        option("--budget", type=Seconds(0.1), default=20.0, help="Seconds in all, about."),
        option("--json", "json_file", type=FILE, help="Write rows and machine here."),
        option("--plot", "plot_file", type=FILE, help="Draw the rows here (png, svg, pdf)."),
        option("--trace", "trace_file", type=FILE, help="Write what all ranks do, and when, here."),
    ]


def _wish(kind: str, chosen: dict[str, Any]) -> Wish:
    """Check what single options cannot know. Raises ``click.UsageError``."""
    ranks, root = chosen["ranks"], chosen.get("root", 0)
    if root >= ranks:
        raise click.UsageError(f"--root {root} is not one of the {ranks} ranks (0 to {ranks - 1})")
    try:
        sizes = parse_sizes(chosen.get("sizes", "0"), chosen.get("factor", 2))
        density = chosen.get("density")
        words = (chosen.get("dtype", "float32"), chosen.get("op", "sum"))
        load = Workload(kind, 0, *words, root, density)
        dtype_of(load.dtype)
        if chosen["plot_file"] is not None:
            plot.require()
            plot.check_path(chosen["plot_file"])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    for path in (chosen["json_file"], chosen["trace_file"]):
        check_folder(path)
    trace = chosen["trace_file"]
    pin = chosen["pin"]
    spec = Spec(
        kind=kind,
        sizes=sizes,
        dtype=load.dtype,
        op=load.op,
        root=root,
        algorithms=_algorithms(kind, chosen["algorithms"], ranks, sparse=density is not None),
        mode=None if chosen["mode"] == "auto" else chosen["mode"],
        seconds=chosen["budget"],
        iterations=chosen["iterations"],
        pin=ranks <= len(os.sched_getaffinity(0)) if pin is None else pin,
        trace=None if trace is None else str(trace.resolve()),
        density=density,
    )
    return Wish(ranks, spec, chosen["json_file"], chosen["plot_file"])


def _known(kind: str, *, sparse: bool) -> dict[str, cl.Algorithm | None]:
    """Return the algorithms by name; None is one for any number of ranks."""
    if not sparse:
        return {a.name: a for a in cl.algorithms(kind)}
    more = {"dense": None} if kind == "allreduce" else {}
    return {a.name: a.schedule for a in cl.sparse_algorithms(kind)} | more


def _algorithms(kind: str, text: str, ranks: int, *, sparse: bool = False) -> list[str | None]:
    """Return the names that `text` stands for; None is the library's own choice."""
    known = _known(kind, sparse=sparse)
    names: list[str | None] = []
    for name in dict.fromkeys(part.strip() for part in text.split(",")):
        if name == "all":
            names += [word for word, a in known.items() if a is None or a.fits(ranks)]
        elif name == "auto":
            names.append(None)
        elif name not in known:
            listed = ", ".join(["all", "auto", *known])
            raise click.UsageError(f"there is no algorithm {name!r} of {kind}; write {listed}")
        elif (of := known[name]) is not None and not of.fits(ranks):
            why = of.restriction
            raise click.UsageError(f"{kind} {name} is not defined for {ranks} ranks: {why}")
        else:
            names.append(name)
    return list(dict.fromkeys(names))


def _run(wish: Wish) -> int:
    """Measure and print; return the exit code."""
    try:
        rows = _measure(wish)
    except RankFailedError as error:
        raise click.ClickException(str(error)) from None
    _save(wish, rows)
    for sentence in table.refusals(rows):
        click.echo(f"# refused: {sentence}")
    return _verdict(rows)


def _save(wish: Wish, rows: Sequence[Row]) -> None:
    document = {
        "title": wish.title,
        "machine": facts(),
        "spec": vars(wish.spec),
        "rows": [row.as_json() for row in rows],
    }
    write_json(wish.json_file, document)
    try:
        if wish.plot_file is not None:
            plot.plot(rows, wish.plot_file, wish.title)
    except OSError as error:
        raise click.ClickException(f"cannot write {wish.plot_file}: {error.strerror}") from None


def _measure(wish: Wish) -> list[Row]:
    """Start the ranks and print rows as they come, all of one size together."""
    spec, rows = wish.spec, list[Row]()

    def hear(event: Event) -> None:
        if "step" in event:
            screen.step()
            return
        fresh = [Row.from_json(row) for row in event["rows"]]
        _print(screen, fresh)
        rows.extend(fresh)

    screen = Screen(spec.kind, len(spec.sizes) * len(spec.algorithms) * Effort().blocks)
    # First what may find nobody to read it: then there are no ranks yet.
    screen.line(f"# {wish.title}", "bold")
    for text in table.header().splitlines():
        screen.line(text, "dim")
    team = Team(wish.ranks, spec, hear)
    with screen:  # its thread must not be there yet when processes start
        team.run()
    return rows


def _print(screen: Screen, rows: Sequence[Row]) -> None:
    best = table.fastest(rows) if len(rows) > 1 else None
    for row in rows:
        style = "bold red" if row.wrong else "green" if row is best else None
        screen.line(table.line(row), style)


def _verdict(rows: Sequence[Row]) -> int:
    wrong = [row for row in rows if row.wrong]
    if not wrong:
        click.echo(f"# {sum(row.calls for row in rows)} calls timed, all results right")
        return 0
    first = wrong[0]
    click.echo(
        f"collbench: {sum(row.wrong for row in wrong)} elements came out wrong, first with "
        f"{first.kind} {first.algorithm} at {format_size(first.size)} bytes: please report it",
        err=True,
    )
    return 1
