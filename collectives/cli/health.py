# SPDX-License-Identifier: Apache-2.0
"""The subcommand that says what this machine offers and lacks, and which guide lines calls keep."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from collectives import doctor as doctor_
from collectives.cli.options import JSON, check_folder, write_json
from collectives.cli.run import MOST_RANKS
from collectives.cli.screen import console
from collectives.cli.sizes import format_size
from collectives.cli.team import Event, RankFailedError, Team
from collectives.cli.tuning_worker import Tuning
from collectives.tuning.guidelines import Guideline

_STYLES = {
    doctor_.GOOD: "green",
    doctor_.NOTE: "yellow",
    doctor_.POOR: "bold red",
    "kept": "green",
    "unsure": "yellow",
    "broken": "bold red",
}


@click.command()
@click.option(
    "--guidelines", is_flag=True, help="Measure whether calls beat what they are made of."
)
@click.option(
    "-n", "--ranks", type=click.IntRange(2, MOST_RANKS), default=2, show_default=True,
    help="Of the guide lines.",
)  # fmt: skip
@JSON
def doctor(guidelines: bool, ranks: int, json_file: Path | None) -> None:
    """Say what this machine offers and what it lacks, with a line of advice each.

    With --guidelines: whether an allreduce takes longer than a reduce and a broadcast, and so on,
    beyond doubt; exit code 1 where one is broken.
    """
    check_folder(json_file)
    if guidelines:
        _guidelines(ranks, json_file)
        return
    table = _table("", "state", "found", "advice")
    examined = doctor_.examined()
    for finding in examined:
        found = finding.found.replace("[", "\\[")
        table.add_row(finding.what, _styled(finding.state), found, finding.advice)
    console().print(table, highlight=False)
    write_json(json_file, {"findings": [asdict(finding) for finding in examined]})


def _guidelines(ranks: int, json_file: Path | None) -> None:
    wanted = Tuning([], None, 0.0, None, [], ranks <= len(os.sched_getaffinity(0)), True)
    heard: list[Event] = []
    try:
        Team(ranks, wanted, heard.append).run()
    except RankFailedError as error:
        raise click.ClickException(str(error)) from None
    found = [Guideline(*row) for row in heard[0]["guidelines"]]
    table = _table("guide line", "at", "ratio", "interval", "")
    for one in found:
        interval = f"{one.low:.2f} to {one.high:.2f}"
        size = format_size(one.nbytes)
        table.add_row(one.rule, size, f"{one.ratio:.2f}", interval, _styled(one.verdict))
    console().print(table, highlight=False)
    rows = [{**asdict(one), "verdict": one.verdict} for one in found]
    write_json(json_file, {"guidelines": rows})
    if any(one.verdict == "broken" for one in found):
        click.get_current_context().exit(1)


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _styled(word: str) -> str:
    return f"[{_STYLES[word]}]{word}[/{_STYLES[word]}]"
