# SPDX-License-Identifier: Apache-2.0
"""The benchmark of sparse vectors: its problems, its figures, and a small run of real ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.peers.libraries import OURS
from bench.sparse.__main__ import main
from bench.sparse.cells import AUTO, DENSE_ARRAY, Entry, Record
from bench.sparse.real import REAL
from bench.sparse.report import bound, line, summary
from bench.sparse.supports import (
    SYNTHETIC,
    Problem,
    expected,
    indices,
    real_problem,
    values,
)
from tests.shares import few

MPICH = Entry("mpich", "scipy")
FIXED = Entry(OURS, "ring")


@pytest.mark.parametrize("support", SYNTHETIC)
@pytest.mark.parametrize("density", [0.0001, 0.03, 0.5, 1.0])
def test_supports(support: str, density: float) -> None:
    problem = Problem(support, 50_000, density, 3)
    assert Problem.read(problem.words()) == problem
    whole = np.zeros(problem.length)
    for rank in range(3):
        places = indices(problem, rank)
        assert places.dtype == np.int32
        assert np.all(np.diff(places) > 0)
        assert places.size == 0 or 0 <= places[0] <= places[-1] < problem.length
        assert places.size <= 1.3 * problem.entries + 300
        whole[places] += values(problem, rank, places.size)
    where, sums = expected(problem)
    np.testing.assert_array_equal(where, np.flatnonzero(whole))
    np.testing.assert_array_equal(sums, whole[where])


@few("support", REAL, [support for support in REAL if support != "digits"])
def test_supports_of_real_gradients(
    support: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.sparse.real.FOLDER", tmp_path / "kept")
    problem = real_problem(support, 3)
    assert Problem.read(problem.words()) == problem
    parts = [indices(problem, rank) for rank in range(3)]
    for places in parts:
        assert places.dtype == np.int32
        assert np.all(np.diff(places) > 0)
        assert 0 <= places[0] <= places[-1] < problem.length
    # Frequent words, and steep weights, are shared: more than chance would have it.
    common = np.intersect1d(parts[0], parts[1]).size
    assert common > 3 * parts[0].size * parts[1].size / problem.length
    assert not np.array_equal(parts[0], parts[1])


def record() -> Record:
    found = Record(Problem("uniform", 1000, 0.01, 4))
    for turn in range(3):
        found.add(found.auto(), turn, 0.004)
        found.add(FIXED, turn, 0.0032)
        found.add(Entry(OURS, DENSE_ARRAY), turn, 0.04)
        found.add(MPICH, turn, 0.006 + 0.001 * turn)
    found.counted[found.auto()] = [300_000.0, 300_000.0]
    return found


def test_figures() -> None:
    one = record()
    figures = summary([one], {"4": 1e-4}, 1000.0)
    assert figures["mpich over ours"]["geometric_mean"] == pytest.approx(1.75)
    assert figures["auto over the best fixed"]["largest"] == pytest.approx(1.25)
    found = bound(one, {"4": 1e-4}, 1000.0)
    assert found is not None
    assert found["allowed"] == pytest.approx(300_000 * 8 / 0.75e9 + 1.5 * 3 * 1e-4)
    assert found["share"] == pytest.approx(0.004 / found["allowed"])
    said = line(one)
    assert "1.25 [1.25, 1.25] of ring" in said
    assert "mpich/scipy 1.75 [1.50, 2.00]" in said
    one.wrong[FIXED] = 3
    assert "WRONG" in line(one)


@pytest.mark.processes
def test_real_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "sparse.json"
    arguments = [
        "--ranks",
        "2",
        "--supports",
        "skewed",
        "--lengths",
        "20000",
        "--densities",
        "0.01",
    ]
    arguments += ["--ways", "ring", "plan of all", "--libraries", "--rounds", "1"]
    assert main([*arguments, "--output", str(output)]) == 0
    cell = json.loads(output.read_text(encoding="utf-8"))["cells"][0]
    assert set(cell["entries"]) == {
        str(Entry(OURS, way)) for way in (AUTO, "ring", "plan of all", DENSE_ARRAY)
    }
    assert all(entry["wrong"] == 0 and entry["median_s"] > 0 for entry in cell["entries"].values())
    assert "skewed 1.000% of 20000, 2 ranks" in capsys.readouterr().out
