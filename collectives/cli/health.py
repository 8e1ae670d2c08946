# SPDX-License-Identifier: Apache-2.0
"""The subcommand that says what this machine offers and lacks."""

from __future__ import annotations

import click
from rich.table import Table

from collectives import doctor as doctor_
from collectives.cli.screen import console

_STYLES = {doctor_.GOOD: "green", doctor_.NOTE: "yellow", doctor_.POOR: "bold red"}


@click.command()
def doctor() -> None:
    """Say what this machine offers and what it lacks, with a line of advice each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", "state", "found", "advice"):
        table.add_column(head, overflow="fold")
    for finding in doctor_.examined():
        style = _STYLES[finding.state]
        state = f"[{style}]{finding.state}[/{style}]"
        table.add_row(finding.what, state, finding.found.replace("[", "\\["), finding.advice)
    console().print(table, highlight=False)
