# SPDX-License-Identifier: Apache-2.0
"""The goals between hosts, their verdicts, and the table that shows them."""

from __future__ import annotations

import pytest

from bench.hosts.goals import GOALS, VOID, judge
from bench.hosts.records import KINDS, Block, Record, bound, payload
from bench.hosts.report import complaints, tables
from bench.hosts.run import Results
from bench.peers.cells import Cell
from bench.peers.libraries import TeamName
from bench.peers.statistics import INCOMPLETE, MET, MISSED

OURS, GLOO = TeamName("ours", "ordinary"), TeamName("gloo", "torch")
KIB, MIB = 1 << 10, 1 << 20


def record(
    kind: str, nbytes: int, ours: float, gloo: float = 0.1, rounds: int = 3, ranks: int = 4
) -> Record:
    cell = Cell(kind, "float32", ranks, nbytes)
    made = Record(cell, 1000)
    for turn in range(rounds):
        for team, share in ((OURS, ours), (GLOO, gloo)):
            sent = round(ranks * payload(cell) * 1.02)
            made.add(team, turn, Block(bound(cell, 1000) / share, 1, sent), 0)
    return made


@pytest.mark.parametrize(
    ("kind", "nbytes", "least"),
    [
        ("allreduce", 64 * KIB, 0.80),
        ("allreduce", 256 * KIB, 0.90),
        ("allreduce", MIB, 0.94),
        ("allreduce", 16 * MIB, 0.94),
        ("reduce_scatter", 256 * KIB, 0.88),
        ("reduce_scatter", 16 * MIB, 0.93),
        ("allgather", 256 * KIB, 0.88),
        ("allgather", MIB, 0.93),
    ],
)
def test_shares_are_judged_by_their_goal(kind: str, nbytes: int, least: float) -> None:
    (met,) = judge([record(kind, nbytes, least + 0.001)])
    (missed,) = judge([record(kind, nbytes, least - 0.001)])
    assert (met.verdict, missed.verdict) == (MET, MISSED)
    assert met.goal.text == f">= {least:.2f}"


def test_the_smallest_is_judged_by_the_best_peer() -> None:
    verdicts = [judge([record("allreduce", KIB, ours, 0.02)])[0] for ours in (0.0301, 0.0299)]
    assert [one.verdict for one in verdicts] == [MET, MISSED]
    assert verdicts[0].goal.text == "ratio >= 1.50"


def test_other_sizes_and_other_links_have_no_goal() -> None:
    assert judge([record("allreduce", 4 * KIB, 0.5)]) == []
    assert judge([record("allgather", 64 * KIB, 0.5)]) == []
    assert judge([record("allreduce", MIB, 0.5, ranks=2)]) == []
    slow = record("allreduce", MIB, 0.5)
    slow.mbit = 200
    assert judge([slow]) == []


def test_no_cell_has_two_goals() -> None:
    for kind in KINDS:
        for exponent in range(8, 31):
            covering = [g for g in GOALS if g.covers(record(kind, 1 << exponent, 0.5))]
            assert len(covering) <= 1


def test_few_rounds_decide_nothing() -> None:
    (one,) = judge([record("allreduce", MIB, 0.95, rounds=2)])
    assert one.verdict == INCOMPLETE
    alone = record("allreduce", KIB, 0.5)
    del alone.blocks[GLOO]
    assert judge([alone])[0].verdict == INCOMPLETE


def test_bytes_that_did_not_pass_the_links_void_the_cell() -> None:
    made = record("allreduce", MIB, 0.95)
    made.add(OURS, 3, Block(1.0, 1, 1), 0)
    assert judge([made])[0].verdict == VOID
    results = Results([made])
    assert any("fewer bytes" in sentence for sentence in complaints(results))


def test_a_table_has_a_row_per_size_with_its_verdict() -> None:
    records = [record("allgather", MIB, 0.94, 0.47), record("allreduce", MIB, 0.9)]
    records.append(record("allgather", 4 * KIB, 0.2))
    first, second = tables(records)
    assert first.title == "allreduce of float32, 4 hosts"
    assert first.rows[0][-2:] == [">= 0.94", MISSED]
    assert [row[0] for row in second.rows] == ["1M", "4K"]
    assert "0.940 [0.940, 0.940]" in second.rows[0]
    assert second.rows[0][-3:] == ["2.00 [2.00, 2.00]", ">= 0.93", MET]
    assert second.rows[1][-2:] == ["", ""]
    assert all(len(row) == len(second.heads) for row in second.rows)


def test_what_went_wrong_is_told() -> None:
    made = record("allreduce", MIB, 0.9)
    made.add(OURS, 0, Block(bound(made.cell, 1000) / 0.97, 1, 10 * MIB), 2)
    made.refused[GLOO] = "has none"
    told = "\n".join(complaints(Results([made], lost={"mpich/single": "did not start"})))
    for part in ("wrong: 2 elements", "refused: gloo/torch", "void: round 0", "lost: mpich/single"):
        assert part in told
