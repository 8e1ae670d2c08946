# SPDX-License-Identifier: Apache-2.0
"""How far choices are from the best plan, as it stands in the documentation."""

from __future__ import annotations

from pathlib import Path

from bench.regret.document import Team, load, teams
from bench.regret.figures import Verdict, verdicts
from scripts.markdown import table

# Group and name of a figure, and the head of its column.
COLUMNS = {
    ("tuned", "mean"): "tuned: mean",
    ("tuned", "p99"): "99 %",
    ("tuned", "max"): "most",
    ("held out", "max"): "other sizes: most",
    ("rule", "mean"): "rules: mean",
    ("rule", "max"): "most",
    ("model", "mean"): "model alone: mean",
}
HEADS = ("", *COLUMNS.values(), "undecided")


def regrets(results: Path) -> str:
    """Return the figures of all jobs, what misses its goal in bold, and whence."""
    found = teams(load(results))
    made = table(HEADS, map(_row, found), numbers=range(1, len(HEADS)))
    runs = dict.fromkeys(_run(team) for team in found)
    return f"{made}\n\n`make regret`: {'; '.join(runs)}."


def _run(team: Team) -> str:
    of = team.machine
    return f"{of['date'][:10]}, {of['cpu']}, {of['cores']} cores, Linux {of['kernel']}"


def _row(team: Team) -> list[str]:
    of = verdicts(team)
    undecided = sum(row.undecided for row in team.rows)
    figures = [_figure(of[column]) for column in COLUMNS]
    return [team.title, *figures, f"{undecided} of {len(team.rows)}"]


def _figure(verdict: Verdict) -> str:
    if verdict.value is None:
        return ""
    return f"**{verdict.value:.3f}**" if verdict.met is False else f"{verdict.value:.3f}"
