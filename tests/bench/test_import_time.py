# SPDX-License-Identifier: Apache-2.0
"""The cost of the import: how runs are summed up, and two real pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import import_time
from bench.import_time import ALONE, WITH_US, judged, spread


def test_what_is_added_is_judged_pair_by_pair() -> None:
    slow = [100.0, 200.0, 110.0]  # the machine, in one pair
    found = judged({ALONE: slow, WITH_US: [130.0, 220.0, 141.0]})
    added = found["rows"]["added"]
    assert (added["median"], added["least"], added["most"]) == (30, 20, 31)
    assert (found["pairs"], found["met"]) == (3, True)
    assert found["rows"]["import numpy"]["median"] == 110
    assert not judged({ALONE: slow, WITH_US: [131.0, 220.0, 141.0]})["met"]


def test_half_of_the_runs_lie_within_the_quartiles() -> None:
    found = spread([5.0, 1.0, 4.0, 2.0, 3.0])
    assert (found.median, found.lower, found.upper) == (3, 2, 4)
    assert (found.least, found.most) == (1, 5)
    assert spread([7.0]) == import_time.Spread(7, 7, 7, 7, 7)


@pytest.mark.all_cases
def test_a_real_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "import_time.json"
    monkeypatch.setattr("sys.argv", ["import_time", "--pairs", "2", "--output", str(written)])
    assert import_time.main() == 0
    shown = capsys.readouterr().out
    document = json.loads(written.read_text(encoding="utf-8"))
    assert set(document["rows"]) == {"import numpy", "import numpy, collectives", "added"}
    for name, row in document["rows"].items():
        assert name in shown
        assert row["least"] <= row["lower"] <= row["median"] <= row["upper"] <= row["most"]
    assert document["met"] == (document["rows"]["added"]["median"] <= document["goal"])
    assert {"cpu", "cores", "kernel", "date", "commit"} <= document["machine"].keys()
