# SPDX-License-Identifier: Apache-2.0
"""The subcommand that holds measurements against earlier ones, other libraries, or other builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from collectives import comparison
from collectives.cli.options import KIND, SIZES
from collectives.cli.run import MOST_RANKS
from collectives.cli.screen import console
from collectives.cli.seconds import Seconds
from collectives.comparison import Compared, Measured

_STYLES = {"slower": "bold red", "faster": "green", "unsure": "yellow", "alike": ""}
_PATIENCE = 60.0  # seconds of a run beyond its budget
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, type=_FILE, metavar="[OLD] [NEW]")
@click.option(
    "--against", type=_FILE, metavar="PYTHON",
    help="Instead: measure this build and that of another interpreter, in turns.",
)  # fmt: skip
@click.option("-k", "--kind", type=KIND, default="allreduce", show_default=True)
@click.option("-n", "--ranks", type=click.IntRange(1, MOST_RANKS), default=2, show_default=True)
@click.option("-s", "--sizes", type=SIZES, default="8,4K,64K,1M", show_default=True)
@click.option("--rounds", type=click.IntRange(8, 1000), default=10, show_default=True)
@click.option(
    "--budget", type=Seconds(0.1), default=2.0, show_default=True, help="Seconds of a run."
)
def compare(
    files: Sequence[Path],
    against: Path | None,
    kind: str,
    ranks: int,
    sizes: str,
    rounds: int,
    budget: float,
) -> int:
    """Say what became slower, with intervals; exit code 1 where something did beyond doubt.

    OLD and NEW are files of `collbench KIND --json`, or of `python -m bench.peers`, whose ratios to
    other libraries are compared. One file of the latter alone: this library beside the others.
    Two files are two runs: where the machine has changed between them, nothing tells its part from
    that of the library. --against measures in turns, so that it changes for both.
    """
    if against is not None:
        if files:
            raise click.UsageError("--against measures: give no files")
        rows = _in_turns(against, [kind, "-n", str(ranks), "-s", sizes], rounds, budget)
        _print(rows, "this build over that of --against")
    elif len(files) == 1:
        rows = comparison.beside_peers(_load(files[0]))
        _print(rows, "this library over another one")
        return 0  # to be slower than a peer is no regression
    elif len(files) == 2:
        old, new = (_load(file) for file in files)
        if old.cpu != new.cpu:
            click.echo(f"# measured on different machines: {old.cpu}, then {new.cpu}")
        rows = comparison.against(old, new)
        _print(rows, "new over old")
        click.echo("# two runs: whether it was the machine that changed, --against tells")
    else:
        raise click.UsageError("give one file or two, or --against PYTHON")
    return int(any(row.verdict == "slower" for row in rows))


def _load(path: Path) -> Measured:
    try:
        return comparison.load(path)
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None


def _print(rows: Sequence[Compared], title: str) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in (title, "times as long", "interval", ""):
        table.add_column(head, overflow="fold")
    for row in rows:
        style = _STYLES[row.verdict]
        verdict = f"[{style}]{row.verdict}[/{style}]" if style else row.verdict
        interval = f"{row.low:.2f} to {row.high:.2f}"
        table.add_row(row.what, f"{row.ratio:.3f}", interval, verdict)
    console().print(table, highlight=False)
    counts = {word: sum(row.verdict == word for row in rows) for word in _STYLES}
    click.echo("# " + ", ".join(f"{count} {word}" for word, count in counts.items() if count))


def _in_turns(other: Path, words: list[str], rounds: int, budget: float) -> list[Compared]:
    """Measure both builds, a run each a round, the first of a round by turns; pair the medians."""
    taken: dict[str, list[float]] = {}
    builds = [Path(sys.executable), other]
    for turn in range(rounds):
        medians = {}
        for python in builds if turn % 2 == 0 else builds[::-1]:
            medians[python] = _run(python, words, budget)
        mine, its = (medians[python] for python in builds)
        for what, own in mine.items():
            if what in its:
                taken.setdefault(what, []).append(float(np.log(own / its[what])))
    return [comparison.paired(what, np.array(logs)) for what, logs in taken.items()]


def _run(python: Path, words: list[str], budget: float) -> dict[str, float]:
    """Return the microseconds of each row, by one build."""
    with tempfile.TemporaryDirectory() as folder:  # where no package lies in the way
        file = Path(folder) / "rows.json"
        # The path as it was given: what a link leads to knows nothing of its environment.
        command = [os.path.abspath(python), "-m", "collectives.cli", *words]
        command += ["--budget", str(budget), "--json", str(file)]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=budget + _PATIENCE
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise click.ClickException(f"{python} did not measure: {error}") from None
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise click.ClickException(f"{python} did not measure: {' '.join(last)}")
        if not file.is_file():
            raise click.ClickException(f"{python} did not measure: it ran no collbench")
        rows = json.loads(file.read_text())["rows"]
    return {f"{row['kind']} {row['size']} B": row["p50"] for row in rows if row["p50"]}
