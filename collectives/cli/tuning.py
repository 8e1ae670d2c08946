# SPDX-License-Identifier: Apache-2.0
"""The subcommands of choice: tune and explain."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.table import Table

from collectives.cli.options import (
    FILE,
    JSON,
    KIND,
    SIZES,
    TUNED_KIND,
    check_folder,
    write_json,
)
from collectives.cli.run import MOST_RANKS
from collectives.cli.screen import console
from collectives.cli.seconds import Seconds
from collectives.cli.sizes import format_size, parse_sizes
from collectives.cli.team import Event, RankFailedError, Team
from collectives.cli.tuning_worker import Tuning
from collectives.errors import InvalidArgumentError
from collectives.tuning.asked import tuned_kind
from collectives.tuning.lines import TOLD
from collectives.tuning.table import LIBRARY, Choice, TunedTable, table_in

_RANKS = click.option(
    "-n", "--ranks", type=click.IntRange(1, MOST_RANKS), default=2, show_default=True
)


@click.command()
@_RANKS
@click.option(
    "-k", "--kind", "kinds", type=TUNED_KIND, multiple=True, help="Only these collectives."
)
@click.option("-s", "--sizes", type=SIZES, help="Bytes of vectors, as 8:64M.  [default: 12 sizes]")
@click.option("--budget", type=Seconds(0.1), default=10.0, show_default=True, help="Seconds.")
@click.option(
    "-o", "--output", "--json", type=FILE, help="Keep the table here, for comm.use_table()."
)
def tune(
    ranks: int, kinds: tuple[str, ...], sizes: str | None, budget: float, output: Path | None
) -> None:
    """Race every plan on this machine and show which wins from which size on.

    A race of all collectives and sizes is kept in the cache, too, where later runs of as many ranks
    on this machine find it (COLLECTIVES_CACHE=off: it is not).
    """
    check_folder(output)
    wanted = Tuning(
        kinds=list(kinds),
        sizes=None if sizes is None else parse_sizes(sizes),
        seconds=budget,
        table=None,
        explained=[],
        pin=ranks <= len(os.sched_getaffinity(0)),
    )
    found: list[Event] = []
    _run(ranks, wanted, found)
    table = table_in(found[0]["table"].encode(), "what the ranks found")
    _show(table)
    if found[0]["kept"] is not None:
        click.echo(f"{found[0]['kept']}: found by comm.tune() and COLLECTIVES_TUNE")
    if output is not None:
        try:
            # Not by a rank: its standard output is not this one.
            table.save(output)
        except OSError as error:
            raise click.ClickException(f"cannot write {output}: {error.strerror}") from None
        click.echo(f"{output}: for {ranks} ranks on machines like this one")


def _show(table: TunedTable) -> None:
    """Print what runs from which size on, and what else where cores share no cache."""
    rows = []
    for kind, nbytes in dict.fromkeys((c.kind, c.nbytes) for c in sorted(table.choices)):
        near, far = (_words(table.of(kind, nbytes, far)) for far in (False, nbytes >= TOLD))
        rows.append((kind, format_size(nbytes), near, "" if far == near else far))
    heads = ["collective", "from", "runs", "on far cores"]
    if not any(far for *_, far in rows):
        heads.pop()
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        shown.add_column(head)
    before = None
    for kind, *row in rows:
        shown.add_row("" if kind == before else kind, *row[: len(heads) - 1])
        before = kind
    console().print(shown, markup=False, highlight=False)


def _words(choice: Choice | None) -> str:
    return LIBRARY if choice is None else str(choice)


@click.command()
@click.argument("kind", type=KIND)
@_RANKS
@click.option("-s", "--sizes", type=SIZES, default="1M", show_default=True)
@click.option("-t", "--table", type=FILE, help="Choose by this table, which tune has written.")
@click.option("--budget", type=Seconds(0), default=0.0, help="Seconds of a race first; 0: none.")
@JSON
def explain(
    kind: str, ranks: int, sizes: str, table: Path | None, budget: float, json_file: Path | None
) -> None:
    """Say what a collective of KIND runs on this machine, and why nothing else."""
    check_folder(json_file)
    if table is not None and budget > 0:
        raise click.UsageError("--table and --budget: one of them says what was measured")
    if budget > 0:
        _check_raced(kind)
    lengths = [1] if kind == "barrier" else parse_sizes(sizes)  # once: it has none
    wanted = Tuning(
        kinds=[kind],
        sizes=lengths if budget > 0 else None,
        seconds=budget,
        table=None if table is None else str(table.absolute()),
        explained=lengths,
        pin=ranks <= len(os.sched_getaffinity(0)),
    )
    found: list[Event] = []
    _run(ranks, wanted, found)
    told = [event for event in found if "text" in event]
    for event in told:
        click.echo(event["text"])
    write_json(json_file, {"explanations": [event["explanation"] for event in told]})


def _check_raced(kind: str) -> None:
    """Refuse a race for a collective that none are held for, before the ranks are started."""
    try:
        tuned_kind(kind, "--budget: ")
    except InvalidArgumentError as error:
        raise click.UsageError(str(error)) from None


def _run(ranks: int, wanted: Tuning, found: list[Event]) -> None:
    try:
        Team(ranks, wanted, found.append).run()
    except RankFailedError as error:
        raise click.ClickException(str(error)) from None
