# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.hosts``: allreduce and others between shaped hosts, beside Gloo and MPICH."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.hosts.goals import HOSTS, MBIT, Judged, K, M, judge
from bench.hosts.records import KINDS
from bench.hosts.report import complaints, head, tables
from bench.hosts.run import Results, Wish, measure, say
from bench.hosts.teams import PEERS, teams
from bench.peers.cells import Cell
from bench.peers.ranks.ours import VARIANTS
from bench.peers.statistics import MISSED
from bench.peers.teams import TeamError
from bench.peers.venvs import VenvError
from bench.record import RESULTS, save
from collectives.cli.sizes import parse_sizes
from tests.hosts.hosts import MOST as MOST_HOSTS
from tests.hosts.tools import missing

SIZES = {kind: [256 * K, M, 16 * M] for kind in KINDS}
SIZES["allreduce"] = [K, 64 * K, *SIZES["allreduce"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run. A wrong result or a void run, or with --strict a missed goal, is 1; a failure is 2."""
    chosen = _parser().parse_args(arguments)
    if reason := missing():
        sys.stderr.write(f"bench.hosts: {reason}\n")
        return 2
    cells = [
        Cell(kind, "float32", chosen.hosts, nbytes)
        for kind in chosen.collectives
        for nbytes in chosen.sizes or SIZES[kind]
    ]
    members = teams(chosen.libraries, chosen.ours)
    wish = Wish(cells, members, chosen.hosts, chosen.mbit, chosen.rounds)
    results, failed = Results(), 0
    try:
        measure(wish, results, say)
    except (TeamError, VenvError, OSError, RuntimeError) as error:
        sys.stderr.write(f"bench.hosts: {error}\n")
        failed = 2
    except KeyboardInterrupt:
        sys.stderr.write(f"bench.hosts: interrupted; {chosen.output} has what was measured\n")
        failed = 130
    judged = judge(results.records)
    if results.records:
        save(chosen.output, {**results.json(), "goals": [_row(one) for one in judged]})
    if failed:
        return failed
    print(head(results), end="\n\n")
    for text in tables(results.records):
        print(text.markdown()) if chosen.markdown else text.show()
    for sentence in complaints(results):
        print(sentence)
    return _code(results, chosen.strict, judged)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.hosts", description=__doc__)

    def names(option: str, known: Sequence[str], text: str) -> None:
        parser.add_argument(
            option, nargs="*", choices=known, default=list(known), metavar="NAME",
            help=f"{text}, of {', '.join(known)} (all)",
        )  # fmt: skip

    names("--collectives", KINDS, "what is called")
    names("--libraries", PEERS, "peers; none without a name")
    parser.add_argument("--sizes", type=_sizes, help="as 1K,64K or 1K:16M (those of the goals)")
    parser.add_argument("--ours", choices=list(VARIANTS), default="ordinary", help="way of calling")
    parser.add_argument("--rounds", type=_number(1, 1000), default=5, help="of each cell (5)")
    parser.add_argument("--hosts", type=_number(2, MOST_HOSTS), default=HOSTS, help=f"({HOSTS})")
    parser.add_argument("--mbit", type=float, default=MBIT, help=f"of each link ({MBIT:g})")
    parser.add_argument(
        "--output", type=Path, default=RESULTS / "hosts.json", help="(bench/results/hosts.json)"
    )
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    return parser


def _sizes(text: str) -> list[int]:
    try:
        sizes = parse_sizes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if sizes[0] < 4:
        raise argparse.ArgumentTypeError("a float32 has 4 bytes: give larger sizes")
    return sizes


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
        return int(text)

    return read


def _row(one: Judged) -> dict[str, object]:
    return {
        "cell": str(one.record.cell),
        "asked": one.goal.text,
        "found": asdict(one.found) if one.found is not None else None,
        "verdict": one.verdict,
    }


def _code(results: Results, strict: bool, judged: Sequence[Judged]) -> int:
    wrong = any(record.wrong or record.void() for record in results.records)
    missed = any(one.verdict == MISSED for one in judged)
    return 1 if wrong or (strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
