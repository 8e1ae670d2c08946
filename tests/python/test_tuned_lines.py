# SPDX-License-Identifier: Apache-2.0
"""What follows from races as lines of a table: from which length on, and on which cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import collectives as cl
from collectives.tuning.lines import lines
from collectives.tuning.machine import fingerprint
from collectives.tuning.race import Standing
from collectives.tuning.table import Choice, TunedTable
from collectives.tuning.tuner import Cell
from tests.python.ranks import last, on_ranks


def _cell(nbytes: int, name: str, far: bool | None = False) -> Cell:
    choice = Choice("allreduce", nbytes, name)
    return Cell("allreduce", nbytes, [Standing(choice, 1e-6, 9)], far)


def test_lines_begin_half_way() -> None:
    row = [_cell(100, "ring"), _cell(400, "ring"), _cell(90_000, "circulant")]
    for p in (3, 5):
        assert [(c.nbytes, c.algorithm) for c in lines(row, p) if not c.far] == [
            (0, "ring"),
            (6000, "circulant"),
            (360_000, ""),
        ]
        assert [c.far for c in lines(row, p)] == [False] * 3 + [True] * 3
    table = TunedTable(2, "", "", tuple(lines(row, 2)))
    assert table.of("allreduce", 360_000) is None
    assert "library" in str(table.choices[-1])


def test_between_plans_of_the_rules_the_rules_say_where() -> None:
    row = [_cell(100, "ring"), _cell(400, "direct"), _cell(900, "direct"), _cell(1600, "chain")]
    for cell in row[:3]:
        cell.usual = cell.best
    row[3].usual = row[2].best  # faster than the rules
    assert [(c.nbytes, c.algorithm) for c in lines(row, 3) if not c.far] == [
        (0, "ring"),
        (101, ""),
        (400, "direct"),
        (1200, "chain"),
        (6400, ""),
    ]
    row[1].far = row[0].far = True
    row = [replace(cell, nbytes=100 * cell.nbytes) for cell in row]
    assert [(c.nbytes, c.algorithm) for c in lines(row, 2) if not c.far] == [
        (0, ""),
        (60000, "direct"),
        (120000, "chain"),
        (640000, ""),
    ]


def test_two_ranks_have_lines_for_near_and_for_far_cores() -> None:
    row = [
        _cell(100, "ring", far=True),  # short: one plan wherever they are
        _cell(40_000, "circulant"),
        _cell(100_000, "ring", far=None),  # they were moved
        _cell(300_000, "direct", far=True),
    ]
    found = lines(row, 2)
    assert [(c.nbytes, c.algorithm) for c in found if not c.far] == [
        (0, "ring"),
        (8192, "circulant"),
        (63245, ""),
    ]
    assert [(c.nbytes, c.algorithm) for c in found if c.far] == [
        (0, "ring"),
        (8192, ""),
        (173205, "direct"),
        (1_200_000, ""),
    ]
    assert lines([_cell(10_000, "ring", far=None)], 2) == []


@pytest.mark.parametrize("p", [2, 3])
def test_a_line_counts_from_the_length_that_it_names(p: int) -> None:
    """What one rank hands to an alltoall, and not what all ranks do; of others the vector."""
    rivals = {"alltoall": "pairwise", "allgather": "ring", "broadcast": "chain"}
    begin = 48 << 10
    choices = tuple(
        Choice(kind, begin, name, "staged", 1, 64 << 10, far)
        for kind, name in rivals.items()
        for far in (False, True)
    )

    def work(comm: cl.Communicator) -> None:
        assert comm.use_table(TunedTable(p, fingerprint(comm), "", choices))
        for nbytes in (begin // 4, begin - 4 * p, begin, begin + 4 * p):
            for kind, name in rivals.items():
                n = nbytes // (p if kind == "allgather" else 1)
                getattr(comm, kind)(np.zeros(n, np.uint8))
                ran = last(comm)
                assert ran.nbytes == nbytes
                assert (ran.algorithm == name) == (nbytes >= begin)
                assert ran.algorithm == comm.explain(kind, nbytes).choice.algorithm
            counts = [[nbytes // p] * p] * p
            comm.alltoallv(np.zeros(nbytes, np.uint8), counts)
            assert (last(comm).algorithm == "pairwise") == (nbytes >= begin)

    on_ranks(p, work)
