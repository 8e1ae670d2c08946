# SPDX-License-Identifier: Apache-2.0
"""Ranks over the loopback beside a bare socket: ratios by round, and what voids them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.hosts import loopback
from bench.hosts.goals import VOID, M
from bench.peers.statistics import INCOMPLETE, MET, MISSED

NEAR, FAR = 30.0, 300.0  # nanoseconds of a line


def blocks(
    ratio: float,
    nbytes: int = 8 * M,
    counted: int = 2 * 8 * 8 * M,
    lines: Sequence[float] = (NEAR,) * 4,
) -> dict[str, Any]:
    """Three rounds in which ours has `ratio` of the bare socket's rate."""
    exchange = 4000.0 / ratio
    times = {"raw": 4000.0, "in place": exchange, "allgather": exchange, "allreduce": 8000.0}
    several = [
        {"round": turn, "way": way, "us": us * (turn + 1), "counted": counted}
        for turn in range(3)
        for way, us in times.items()
    ]
    return {"calls": 8, "bytes": nbytes, "blocks": several, "lines": list(lines)}


def test_the_loopback_is_judged_round_by_round() -> None:
    rows = loopback.judge(blocks(0.91))
    assert [one.verdict for one in rows[:3]] == [MET, MET, MISSED]
    assert rows[0].found is not None
    assert (rows[0].found.low, rows[0].found.high) == pytest.approx((0.91, 0.91))
    assert loopback.judge(blocks(0.89))[0].verdict == MISSED
    assert loopback.judge(blocks(0.5, nbytes=M))[0].goal is None
    rate = next(one for one in rows if one.what == "near: GB/s each way: raw")
    assert rate.found is not None
    assert rate.found.high == pytest.approx(8 * M / 4000 / 1e3)


def test_placements_are_judged_apart() -> None:
    rows = loopback.judge(blocks(0.91, lines=(NEAR, NEAR, FAR, FAR)))
    assert [row.what.partition(":")[0] for row in rows] == ["near"] * 7 + ["far"] * 7
    # The second round is neither: the cores moved within it.
    assert {row.found.count for row in rows if row.found is not None} == {1}
    moving = loopback.judge(blocks(0.91, lines=(NEAR, FAR, NEAR, FAR)))
    assert [row.verdict for row in moving] == [INCOMPLETE] * 3


def test_bytes_that_did_not_pass_the_loopback_are_void() -> None:
    rows = loopback.judge(blocks(0.95, counted=2 * 8 * 8 * M - 1))
    assert rows[0].verdict == VOID
    assert "on the loopback" in str(rows[0].void)


@pytest.mark.all_cases
@pytest.mark.processes
def test_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "PRESET", "package")  # which the native tests have built
    output = tmp_path / "loopback.json"
    assert loopback.main(["--rounds", "1", "--mib", "1", "--output", str(output)]) == 0
    found = json.loads(output.read_text(encoding="utf-8"))
    assert sorted(block["way"] for block in found["blocks"]) == [
        "allgather",
        "allreduce",
        "in place",
        "raw",
    ]
    assert len(found["lines"]) == 2
    assert all(block["counted"] >= 2 * 8 * M for block in found["blocks"])
