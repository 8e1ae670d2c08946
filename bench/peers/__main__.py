# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.peers``: measures; prints tables and goals; writes JSON and a plot.

Calls of all libraries are interleaved in blocks of some 25 ms. A cell is a collective, dtype, size
and number of ranks; its blocks count for the placement of the cores (near or far) that a probe of
a cache line finds before and after each. Buffers are written before and checked after every call.
A ratio is the median over rounds of peer over ours in the same round, with an interval of 95 %;
the rival is the peer with the best median, at its best thread level. A second team of ours shows
what is noise. A goal is missed where the whole interval lies below it; wide intervals get more
rounds, and are undecided after these. What the machine allows, and loops written by hand, are
timed in the same run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bench.limits.program import ProgramError
from bench.peers.cells import Cell
from bench.peers.goals import cells_of_goals, judge
from bench.peers.libraries import PEERS, teams
from bench.peers.plot import plot
from bench.peers.ranks.ours import VARIANTS
from bench.peers.ranks.work import DTYPES, KINDS
from bench.peers.report import Results, goals, tables
from bench.peers.rounds import Effort
from bench.peers.run import Wish, measured
from bench.peers.statistics import MISSED
from bench.peers.teams import TeamError
from bench.peers.venvs import VenvError
from bench.record import RESULTS
from collectives.cli.plot import check_path
from collectives.cli.sizes import parse_ranks, parse_sizes

T = TypeVar("T")


def main() -> int:
    """Run. A wrong result, or with --strict a missed goal, is exit code 1; a failure is 2."""
    parser = _parser()
    chosen = parser.parse_args()
    try:
        cells = _cells(chosen)
    except ValueError as error:
        parser.error(str(error))
    try:
        results = Results.read(chosen.show) if chosen.show else measured(_wish(chosen, cells))
    except (ProgramError, VenvError, TeamError, OSError) as error:
        sys.stderr.write(f"bench.peers: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"bench.peers: interrupted; {chosen.output} has what was measured\n")
        return 130
    judged = judge(results.records)
    for text in [*tables(results.records), goals(judged)]:
        print(text.markdown()) if chosen.markdown else text.show()
    if chosen.plot is not None:
        plot(results.records, chosen.plot)
    return _verdict(results, chosen.strict, [row.verdict for row in judged])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def option(name: str, kind: Callable[[str], T], default: T, text: str) -> None:
        parser.add_argument(name, type=kind, default=default, help=text)

    option("--collectives", _names(KINDS), ["allreduce"], f"of {', '.join(KINDS)} (allreduce)")
    option("--dtypes", _names(DTYPES), ["float32"], f"of {', '.join(DTYPES)} (float32)")
    option("--sizes", _sizes, "8:128M,256M", "as 8:64M or 8,1K,1M (8:128M,256M)")
    option("--factor", int, 4, "growth within a range of sizes (4)")
    option("--ranks", _parsed(parse_ranks), [2], "as 2 or 2,4,8 (2)")
    parser.add_argument(
        "--goals", action="store_true", help="instead: all cells of the goals of --ours"
    )
    option("--libraries", _names(PEERS), list(PEERS), f"peers, of {', '.join(PEERS)} (all)")
    option("--ours", _names(tuple(VARIANTS)), ["ordinary"], f"of {', '.join(VARIANTS)} (ordinary)")
    option("--blocks", _count, 15, "of each library, cell and placement; thrice where unsure (15)")
    option("--starts", _count, 3, "times that the teams are started anew, for each rank count (3)")
    option("--budget", float, 3600.0, "seconds, about (3600)")
    option("--patience", float, 1200.0, "seconds to wait for a placement (1200)")
    option("--output", Path, RESULTS / "peers.json", "JSON (bench/results/peers.json)")
    option("--plot", _picture, None, "a picture, as peers.png")
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--show", type=Path, nargs="+", help="measure nothing; read these files")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    return parser


def _sizes(text: str) -> str:
    """Check sizes; what a range holds depends on --factor."""
    _parsed(parse_sizes)(text)
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _picture(text: str) -> Path:
    path = Path(text)
    _parsed(lambda _: check_path(path))(text)
    return path


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        found = list(dict.fromkeys(part.strip() for part in text.split(",")))
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return found

    return read


def _parsed(parse: Callable[[str], T]) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _wish(chosen: argparse.Namespace, cells: list[Cell]) -> Wish:
    effort = Effort(
        chosen.blocks, 3 * chosen.blocks, 10 * chosen.blocks, chosen.budget, chosen.patience
    )
    members = teams(chosen.libraries, chosen.ours)
    return Wish(cells, members, effort, chosen.starts, chosen.output)


def _cells(chosen: argparse.Namespace) -> list[Cell]:
    if chosen.goals:
        return cells_of_goals(chosen.ours)
    sizes = parse_sizes(chosen.sizes, chosen.factor)
    return [
        Cell(kind, dtype, ranks, size)
        for ranks in chosen.ranks
        for kind in chosen.collectives
        for dtype in chosen.dtypes
        for size in sizes
    ]


def _verdict(results: Results, strict: bool, verdicts: Sequence[str]) -> int:
    for team, why in results.lost.items():
        print(f"lost: {team}: {why}")
    for record in results.records:
        for name, count in record.wrong.items():
            print(f"wrong: {count} elements, {name}, {record.cell}")
    wrong = any(record.wrong for record in results.records)
    return 1 if wrong or (strict and MISSED in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
