# SPDX-License-Identifier: Apache-2.0
"""The subcommand that simulates algorithms on a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

import collectives as cl
from collectives.cli.options import FILE, JSON, KIND, check_folder, parsed, write_json
from collectives.cli.screen import console
from collectives.cli.seconds import format_seconds
from collectives.cli.sizes import format_size, parse_size


@click.command()
@click.argument("topology")
@click.option("-k", "--kind", type=KIND, default="allreduce", show_default=True)
@click.option(
    "-a",
    "--algorithms",
    default="all",
    show_default=True,
    help="Names, with commas between them.",
)
@click.option("-s", "--size", type=parsed("size", parse_size), default="1M", show_default=True)
@click.option("-p", "--ranks", type=click.IntRange(1), help="The first of the network.  [all]")
@click.option("--root", type=click.IntRange(0), default=0, show_default=True)
@click.option("--tiles", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Draw the timeline of the fastest into an .svg or .txt file.",
)
@JSON
def simulate(
    topology: str,
    kind: str,
    algorithms: str,
    size: int,
    ranks: int | None,
    root: int,
    tiles: int,
    output: Path | None,
    json_file: Path | None,
) -> None:
    """Simulate algorithms on TOPOLOGY, such as fat-tree:1024,oversubscription=4, the fastest first.

    TOPOLOGY may also be a file that Topology.save() wrote, of a name that ends in .json.
    """
    _check_output(output)
    check_folder(json_file)
    found: list[cl.Simulation] = []
    for name in _names(kind, algorithms):
        try:
            found.append(
                cl.simulate(name, topology, size, ranks, kind=kind, root=root, tiles=tiles)
            )
        except (cl.UnsupportedError, cl.OutOfMemoryError) as error:
            click.echo(f"collbench: {name} is left out: {error}", err=True)
    if not found:
        raise click.UsageError("no algorithm is left to simulate")
    found.sort(key=lambda one: one.seconds)
    _print(found)
    write_json(json_file, {"simulations": [_as_json(one) for one in found]})
    if output is not None:
        _draw(found[0], topology, root, output)


def _as_json(found: cl.Simulation) -> dict[str, Any]:
    fields = {name: value for name, value in vars(found).items() if name != "moments"}
    return {**fields, "link_bytes": dict(found.link_bytes)}


def _names(kind: str, algorithms: str) -> list[str]:
    known = [a.name for a in cl.algorithms(kind)]
    if algorithms == "all":
        return known
    names = [name.strip() for name in algorithms.split(",")]
    for name in names:
        if name not in known:
            raise click.UsageError(f"{kind} has no algorithm {name!r}; it has {', '.join(known)}")
    return names


def _print(found: list[cl.Simulation]) -> None:
    first = found[0]
    of = "" if first.kind == "barrier" else f" of {format_size(first.nbytes)}"
    click.echo(f"{first.kind}{of} among {first.p} ranks on {first.topology}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("algorithm", "time", "rounds", "messages", "busiest link", "of the time"):
        table.add_column(head, justify="left" if head in ("algorithm", "busiest link") else "right")
    for s in found:
        busy = s.busiest_seconds / s.seconds if s.seconds else 0.0
        table.add_row(
            s.algorithm,
            format_seconds(s.seconds),
            str(s.rounds),
            f"{s.messages:,}",
            s.busiest or "-",
            f"{busy:.0%}",
        )
    console().print(table, markup=False, highlight=False)


def _check_output(output: Path | None) -> None:
    if output is not None and output.suffix.lower() not in (".svg", ".txt"):
        raise click.UsageError(f"cannot draw to {output}; its name must end in .svg or .txt")


def _draw(fastest: cl.Simulation, topology: str, root: int, output: Path) -> None:
    again = cl.simulate(
        fastest.algorithm,
        topology,
        fastest.nbytes,
        fastest.p,
        kind=fastest.kind,
        root=root,
        tiles=fastest.tiles,
        timeline=True,
    )
    suffix = output.suffix.lower()
    try:
        output.write_text(again.draw(format="svg" if suffix == ".svg" else "text"), "utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot write {output}: {error.strerror}") from None
    click.echo(f"{output}: the timeline of {fastest.algorithm}")
