# SPDX-License-Identifier: Apache-2.0
"""The subcommand that shows where ranks are and what lies between them."""

from __future__ import annotations

from pathlib import Path

import click

from collectives.cli.options import FILE, check_folder
from collectives.cli.run import MOST_RANKS
from collectives.cli.team import Event, RankFailedError, Team
from collectives.cli.topology_worker import Look
from collectives.errors import UnsupportedError
from collectives.topology import Topology
from collectives.topology.files import topology_in
from collectives.whole_file import write_whole


@click.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("-n", "--ranks", type=click.IntRange(1, MOST_RANKS), help="Processes.  [default: 2]")
@click.option("--gpus", is_flag=True, help="This machine's GPUs instead, as NVML tells of them.")
@click.option("--measure/--no-measure", default=True, help="Links, too.  [default: measure]")
@click.option("-o", "--output", "--json", type=FILE, help="Keep it here, for cl.Topology.load().")
@click.option("--draw", type=FILE, help="Draw it here (svg).")
def topo(
    file: str | None,
    ranks: int | None,
    gpus: bool,
    measure: bool,
    output: Path | None,
    draw: Path | None,
) -> None:
    """Show where the ranks of this machine are, and what lies between them.

    FILE: that of an earlier look, or of comm.topology().save() on other machines, instead.
    """
    if file is not None and ranks is not None:
        raise click.UsageError("FILE says which ranks there are: leave --ranks out")
    if gpus and (file is not None or ranks is not None):
        raise click.UsageError("--gpus looks at this machine: leave FILE and --ranks out")
    if draw is not None and draw.suffix.lower() != ".svg":
        raise click.UsageError(f"cannot draw to {draw}; its name must end in .svg")
    check_folder(output)
    check_folder(draw)
    if gpus:
        shown = _of_gpus()
    else:
        shown = Topology.load(file) if file is not None else _looked(ranks or 2, measure)
    click.echo(str(shown))
    try:
        if output is not None:
            shown.save(output)
            click.echo(f"{output}: for cl.Topology.load() and collbench simulate")
        if draw is not None:
            write_whole(draw, shown.draw())
            click.echo(f"{draw}: the drawing")
    except OSError as error:
        raise click.ClickException(f"cannot write {error.filename}: {error.strerror}") from None


def _of_gpus() -> Topology:
    try:
        return Topology.of_gpus()
    except UnsupportedError as error:
        raise click.ClickException(str(error)) from None


def _looked(ranks: int, measure: bool) -> Topology:
    """Start the ranks, and return what they found."""
    heard: list[Event] = []
    try:
        Team(ranks, Look(measure), heard.append).run()
    except RankFailedError as error:
        raise click.ClickException(str(error)) from None
    return topology_in(heard[0]["topology"].encode(), "what the ranks found")
