# SPDX-License-Identifier: Apache-2.0
"""The regret page, from what was kept: ``python -m bench.regret.page [JSON] --output DIR``.

Writes regret.html, one file that needs no other, and a picture of each collective as PNG.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.record import RESULTS
from bench.regret.document import DocumentError, Row, Team, load, teams
from bench.regret.drawing import drawn, ratio_of
from bench.regret.figures import (
    GOALS,
    UNDECIDED_SHARE,
    Verdict,
    few_undecided,
    held_out_ranks,
    verdicts,
)
from bench.regret.panels import TITLES, Panel, algorithms, panels
from bench.regret.style import style

COLUMNS = (
    ("tuned", "mean", "table, tuned sizes: geo-mean"),
    ("tuned", "p99", "p99"),
    ("tuned", "max", "largest"),
    ("held out", "max", "held-out sizes: largest"),
    ("rule", "mean", "rules: geo-mean"),
    ("rule", "max", "largest"),
    ("model", "mean", "model: geo-mean"),
    ("model", "max", "largest"),
)
FACTS = (
    ("date", "measured (UTC)"),
    ("cpu", "processor"),
    ("cores", "cores"),
    ("load", "load before"),
    ("kernel", "kernel"),
    ("python", "Python"),
    ("commit", "commit"),
)
_KEY = (
    ("tuned", '<circle cx="12" cy="7" r="4" class="mark"/>', "by the table of tune()"),
    ("rule", '<rect x="8" y="3" width="8" height="8" class="mark"/>', "by the rules"),
    ("model", '<path d="M12 2l5 5-5 5-5-5z" class="mark"/>', "by the cost model alone"),
    (
        "tuned",
        '<g class="held-out"><circle cx="12" cy="7" r="4" class="mark"/></g>',
        "hollow: a size that tune() did not see",
    ),
    ("tuned", '<path d="M8 3l8 8m0-8l-8 8" class="mark"/>', "undecided cell"),
)
_INTRO = """Regret is the time of what a call runs over that of the best plan there is: 1 is
perfect. All plans (every legal algorithm with four or more sets of parameters) race in run A. The
best of them, and what is chosen, meet in run B, in interleaved pairs: points are medians of their
ratios, bars 95 % intervals. A cell whose best plan differs from itself by more than 5 % is
undecided, and counts in no figure. Beneath the curves: what was chosen, algorithm and parameters,
over the size of the vector. Point at anything to see it in words."""


def html(document: dict[str, Any]) -> str:
    """Return the page of a document.

    Raises:
        DocumentError: it holds no regrets.
    """
    jobs = teams(document)
    of_kinds = panels(jobs)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Regret of the choice</title><style>{style()}</style></head><body>",
            f"<h1>Regret of the choice</h1><p>{_INTRO}</p>",
            *_summary(jobs),
            *_machines(jobs),
            '<nav aria-label="collectives">',
            *(f'<a href="#{kind}">{escape(kind)}</a>' for kind in of_kinds),
            f"</nav>{_key()}",
            *(part for kind, of_kind in of_kinds.items() for part in _section(kind, of_kind)),
            "</body></html>\n",
        ]
    )


def _key() -> str:
    items = (
        f'<li><svg viewBox="0 0 24 14" aria-hidden="true"><g class="{way}">{mark}</g></svg>'
        f" {words}</li>"
        for way, mark, words in _KEY
    )
    return f'<ul class="key">{"".join(items)}</ul>'


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{words}</th>" for words in heads)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _summary(jobs: Sequence[Team]) -> Iterator[str]:
    asked = {(goal.group, goal.name, goal.held_out_ranks): goal.bound for goal in GOALS}
    heads = ["job"]
    for group, name, words in COLUMNS:
        bound = asked.get((group, name, False))
        heads.append(f"{words}<small>{f'at most {bound:.2f}' if bound else '&nbsp;'}</small>")
    heads.append(f"undecided<small>below {UNDECIDED_SHARE:.0%}</small>")
    yield "<h2>Figures beside their goals</h2>"
    yield _table(heads, [_team_row(team) for team in jobs])
    apart = held_out_ranks(jobs)
    if apart["ranks"]:
        bound = asked["rule", "max", True]
        yield (
            f"<p>{escape(', '.join(apart['ranks']))}: held out. A table is for one number of ranks;"
            f" for these nothing was tuned, so the rules choose (largest: at most {bound:.2f}).</p>"
        )
    yield "<p>More ranks than cores take turns on them: such jobs are to be read apart.</p>"


def _team_row(team: Team) -> str:
    found = verdicts(team)
    cells = [_figure(found[group, name]) for group, name, _ in COLUMNS]
    count = sum(row.undecided for row in team.rows)
    kind = "met" if few_undecided(team) else "missed"
    left = f", {team.left_out} left out" if team.left_out else ""
    return (
        f"<tr><td>{escape(team.title)}</td>{''.join(cells)}"
        f'<td class="{kind}">{count} of {len(team.rows)}{left}</td></tr>'
    )


def _figure(verdict: Verdict) -> str:
    if verdict.value is None:
        return '<td class="none">&ndash;</td>'
    if verdict.met is None:
        return f"<td>{verdict.value:.3f}</td>"
    kind, sign = ("met", "&check;") if verdict.met else ("missed", "&cross;")
    asked = f' title="at most {verdict.bound:.2f}"'
    return f'<td class="{kind}"{asked}>{verdict.value:.3f} {sign}</td>'


def _machines(jobs: Sequence[Team]) -> Iterator[str]:
    heads = ["job", *(title for _, title in FACTS), "all predictions"]
    rows = []
    for team in jobs:
        facts = {**team.machine, "date": _date(team, 16)}
        words = [escape(str(facts.get(key, ""))) for key, _ in FACTS]
        took = "&ndash;" if team.predicting is None else f"{team.predicting:.2f} s"
        cells = "".join(f'<td class="words">{word}</td>' for word in words)
        rows.append(f"<tr><td>{escape(team.title)}</td>{cells}<td>{took}</td></tr>")
    yield "<h2>Machines</h2>"
    yield _table(heads, rows)


def _date(team: Team, letters: int) -> str:
    """Return when a job was measured, as a day (10 letters) or to the minute (16)."""
    return str(team.machine.get("date", ""))[:letters].replace("T", " ")


def _section(kind: str, of_kind: Sequence[Panel]) -> Iterator[str]:
    names = algorithms(of_kind)
    yield f'<section id="{kind}"><h2>{escape(kind)}</h2><div class="grid-of">'
    for panel in of_kind:
        date = escape(_date(panel.team, 10))
        yield f"<figure><figcaption>{escape(panel.team.title)}<small>{date}</small>"
        yield f"</figcaption>{drawn(panel, names)}"
        yield f"<details><summary>In figures</summary>{_numbers(panel)}</details></figure>"
    yield "</div></section>"


def _numbers(panel: Panel) -> str:
    heads = ["bytes", "best", "&micro;s"]
    for way in panel.ways:
        heads += [f"chosen by {TITLES[way]}", "regret"]
    return _table([*heads, "best over itself"], [_numbers_of(panel, row) for row in panel.rows])


def _numbers_of(panel: Panel, row: Row) -> str:
    size = f"{row.nbytes}{' (held out)' if row.held_out else ''}"
    cells = [f"<td>{size}</td>", _words(row.best), f"<td>{row.seconds * 1e6:.1f}</td>"]
    for way in panel.ways:
        one = row.ways.get(way)
        cells.append(_words(one.choice if one else ""))
        cells.append(f"<td>{ratio_of(one) if one else ''}</td>")
    kind = ' class="missed"' if row.undecided else ""
    return f"<tr>{''.join(cells)}<td{kind}>{ratio_of(row.same)}</td></tr>"


def _words(words: str) -> str:
    return f'<td class="words">{escape(words)}</td>'


def write(document: dict[str, Any], folder: Path, pictures: bool = True) -> Path:
    """Write the page into a folder, and a PNG of each collective; return the page's path."""
    page = folder / "regret.html"
    content = html(document)
    folder.mkdir(parents=True, exist_ok=True)
    page.write_text(content, encoding="utf-8")
    if pictures:
        from bench.regret.picture import picture  # matplotlib takes a second to import

        for kind, of_kind in panels(teams(document)).items():
            picture(of_kind, folder / f"regret_{kind}.png")
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Write it; what cannot be read is 2."""
    parser = argparse.ArgumentParser(prog="python -m bench.regret.page", description=__doc__)
    parser.add_argument("json", type=Path, nargs="?", default=RESULTS / "regret.json")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--no-pictures", action="store_true", help="no PNG")
    chosen = parser.parse_args(arguments)
    try:
        print(write(load(chosen.json), chosen.output, not chosen.no_pictures))
    except (DocumentError, OSError) as error:
        sys.stderr.write(f"bench.regret.page: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
