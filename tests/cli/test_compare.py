# SPDX-License-Identifier: Apache-2.0
"""collbench compare: files of earlier runs, other libraries, other builds; and its statistics."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from collectives import InvalidArgumentError
from collectives.cli.app import collbench
from collectives.cli.compare import _in_turns
from collectives.comparison import Compared, against, load, paired

ROOT = Path(__file__).parents[2]


def call(*arguments: object) -> Result:
    return CliRunner().invoke(collbench, [str(argument) for argument in arguments])


def row(blocks: list[float], size: int = 8) -> dict[str, Any]:
    return {
        "kind": "allreduce", "op": "sum", "dtype": "float32", "size": size, "ranks": 2,
        "algorithm": "ring", "mode": "auto", "blocks": blocks,
    }  # fmt: skip


def written(path: Path, *rows: dict[str, Any], cpu: str = "one") -> Path:
    path.write_text(json.dumps({"machine": {"cpu": cpu}, "rows": rows}))
    return path


def cells(*cells: tuple[list[float], list[float]]) -> dict[str, Any]:
    """Return a file of bench.peers: our times and those of a peer, by round."""

    def line(times: list[float]) -> str:
        return ", ".join(f"{turn} {us}" for turn, us in enumerate(times))

    return {
        "machine": {},
        "cells": [
            {
                "kind": "allreduce", "dtype": "float32", "ranks": 2, "nbytes": 8 << i,
                "sheets": {
                    "near": {"blocks": {"ours/ordinary": line(own), "gloo/torch": line(it)}}
                },
            }
            for i, (own, it) in enumerate(cells)
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("factor", "spread", "verdict"),
    [(1.5, 0.01, "slower"), (0.6, 0.01, "faster"), (1.0, 0.01, "alike"), (1.1, 0.3, "unsure")],
)
def test_verdicts(factor: float, spread: float, verdict: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)

    def blocks(middle: float) -> list[float]:
        return [float(middle * np.exp(spread * x)) for x in rng.normal(size=8)]

    old = load(written(tmp_path / "old.json", row(blocks(10.0)), row(blocks(7.0), 99)))
    new = load(written(tmp_path / "new.json", row(blocks(10.0 * factor))))
    (found,) = against(old, new)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.what == "allreduce sum float32 8 B, 2 ranks, ring"


def test_intervals_cover_the_truth() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        found = paired("", rng.normal(0.2, 0.1, 11))
        covered += found.low <= np.exp(0.2) <= found.high
    assert covered >= 0.93 * 300
    few = paired("", np.zeros(5))
    assert (few.low, few.high, few.verdict) == (0.0, float("inf"), "unsure")
    assert Compared("", 1.2, 1.1, 1.3).verdict == "slower"


def test_two_files(tmp_path: Path) -> None:
    old = written(tmp_path / "old.json", row([10.0, 10.1, 10.2, 10.1]))
    new = written(tmp_path / "new.json", row([15.0, 15.1, 15.2, 15.1]), cpu="two")
    told = call("compare", old, new)
    assert told.exit_code == 1
    assert "slower" in told.output
    assert "different machines: one, then two" in told.output
    assert call("compare", new, old).exit_code == 0


def test_beside_peers(tmp_path: Path) -> None:
    ours, peer = [1.0 + i / 1000 for i in range(9)], [2.0 + i / 1000 for i in range(9)]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(cells((ours, peer), (ours, peer))))
    # The machine is three times as slow, for both; and we are, at the second size.
    slow = [3 * us for us in ours], [3 * us for us in peer]
    new.write_text(json.dumps(cells(slow, ([6 * us for us in ours], slow[1]))))
    alone = call("compare", old)
    assert alone.exit_code == 0
    assert alone.output.count("faster") == 3  # two rows, and their count
    told = call("compare", old, new)
    assert told.exit_code == 1
    assert "1 slower, 1 alike" in told.output


def test_the_figures_that_are_kept() -> None:
    told = call("compare", ROOT / "bench" / "results" / "peers.json")
    assert told.exit_code == 0, told.output
    assert "openmpi" in told.output


@pytest.mark.long
def test_another_build() -> None:
    rows = _in_turns(Path(sys.executable), ["allreduce", "-n", "2", "-s", "8,64"], 2, 0.1)
    assert [row.what for row in rows] == ["allreduce 8 B", "allreduce 64 B"]
    assert all(0 < row.ratio < np.inf for row in rows)
    for name in ("/bin/false", "/bin/true"):
        lacks = call("compare", "--against", name)
        assert lacks.exit_code == 1
        assert f"{name} did not measure" in lacks.output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no measurements"),
        ("{}", "neither of collbench nor of bench.peers"),
        ('{"rows": 7}', "neither of"),
        ('{"rows": []}', "no row with times of several blocks"),
        ('{"rows": [{"blocks": [1, 2]}]}', "neither of"),
        (json.dumps({"rows": [row([1.0, 0.0])]}), "no number above 0"),
        ('{"cells": [{}]}', "neither of"),
        ('{"cells": [7]}', "a cell is 7, which is no object"),
        ('{"rows": [1]}', "a row is 1, which is no object"),
        ('{"rows": [{"blocks": 5}]}', "blocks is 5, which is no list"),
        ('{"rows": [{"blocks": [1, 2]}]}', "the key 'op' is missing"),
        (json.dumps({"rows": [row([1.0, 10**400])]}), "neither of"),
        (json.dumps({"rows": [row([1.0, [2.0]])]}), "neither of"),  # type: ignore[list-item]
        (json.dumps(cells(([1.0, 2.0], [0.0, 0.0]))), "neither of"),
        (json.dumps(cells(([1.0, 2.0], [1.0, 2.0]))).replace('"0 1.0, 1 2.0"', "3"), "no text"),
    ],
    ids=lambda text: text[:40],
)
def test_files_that_hold_something_else(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(InvalidArgumentError, match=words):
        load(path)
    told = call("compare", path, path)
    assert told.exit_code == 1
    assert "rows.json" in told.output


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    times = written(tmp_path / "a.json", row([1.0, 2.0]))
    others = written(tmp_path / "b.json", row([1.0, 2.0], 64))
    peers = tmp_path / "c.json"
    peers.write_text(json.dumps(cells(([1.0, 2.0], [1.0, 2.0]))))
    for arguments, words in (
        ((times, others), "no row in common"),
        ((times, peers), "one has times"),
        ((times,), "give another file"),
    ):
        told = call("compare", *arguments)
        assert told.exit_code == 1
        assert words in " ".join(told.output.split())
    for mistaken, words in (
        ((), "one file or two"),
        ((times, times, times), "one file or two"),
        ((times, "--against", sys.executable), "give no files"),
        ((tmp_path / "none.json",), "does not exist"),
        (("--against", tmp_path / "none"), "does not exist"),
    ):
        told = call("compare", *mistaken)
        assert told.exit_code == 2, told.output
        assert words in told.output
