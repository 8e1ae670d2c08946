# SPDX-License-Identifier: Apache-2.0
"""Simulations are timed in processes of their own, and held against limits of time and memory."""

from __future__ import annotations

from bench.simulated import Row, simulated, summary, told, wanted


def test_a_simulation_is_timed() -> None:
    row = simulated("allreduce", "circulant", "torus:8x8")
    assert (row.ranks, row.refused) == (64, "")
    assert row.messages == 64 * 12
    assert 0 < row.seconds < 60
    assert 0.01 < row.gigabytes < 4
    assert not row.kept  # of 64 ranks there is no limit


def test_what_cannot_be_is_told() -> None:
    row = simulated("allreduce", "recursive_halving", "torus:no")
    assert "InvalidArgumentError" in row.refused
    assert "InvalidArgumentError" in told(row)


def test_limits() -> None:
    fast = Row("allreduce", "ring", "torus:64x64", 4096, 9, 1.0, 59.0, 1.0)
    slow = Row("allreduce", "ring", "torus:64x64", 4096, 9, 1.0, 61.0, 1.0)
    large = Row("allreduce", "circulant", "fat-tree:65536", 65536, 9, 1.0, 9.0, 2.1)
    refused = Row("allreduce", "x", "torus:64x64", refused="no")
    assert [row.kept for row in (fast, slow, large, refused)] == [True, False, False, False]
    assert "MISSED" in told(slow)
    assert summary([fast, slow, large, refused]) == {
        "kept": 1, "of": 3, "refused": 1, "longest_s": 61.0, "largest_gb": 1.0,
    }  # fmt: skip


def test_all_algorithms_are_simulated() -> None:
    rows = wanted()
    assert len(set(rows)) == len(rows) > 150
    assert ("barrier", "direct", "torus:64x64") in rows
