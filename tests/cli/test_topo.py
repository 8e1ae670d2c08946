# SPDX-License-Identifier: Apache-2.0
"""collbench topo, on real ranks and from a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from collectives import Topology
from collectives.cli.app import collbench


def call(*arguments: object) -> Result:
    return CliRunner().invoke(collbench, [str(argument) for argument in arguments])


def test_looked_at_kept_drawn_and_simulated(tmp_path: Path) -> None:
    kept, drawn = tmp_path / "here.json", tmp_path / "here.svg"
    told = call("topo", "-n", 3, "-o", kept, "--draw", drawn)
    assert told.exit_code == 0, told.output
    found = Topology.load(kept)
    assert found.size == 3
    assert found.link(0, 2) is not None
    assert str(found) in told.output
    assert drawn.read_text().lstrip().startswith("<svg")
    again = call("topo", kept)
    assert again.output.strip() == str(found)
    simulated = call("simulate", kept)
    assert simulated.exit_code == 0, simulated.output


def test_places_only() -> None:
    told = call("topo", "--no-measure")
    assert told.exit_code == 0, told.output
    assert told.output.startswith("2 ranks on 1 host")
    assert "MB/s" not in told.output


def test_gpus_without_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    told = call("topo", "--gpus")
    assert told.exit_code == 1
    assert "pip install nvidia-ml-py" in told.output
    assert "leave FILE and --ranks out" in call("topo", "--gpus", "-n", 2).output


def test_mistakes(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    for arguments, words, code in (
        (("topo", wrong), "wrong.json", 1),
        (("topo", tmp_path / "none.json"), "does not exist", 2),
        (("topo", wrong, "-n", 2), "leave --ranks out", 2),
        (("topo", "--draw", "x.png"), "must end in .svg", 2),
        (("topo", "-n", 0), "0", 2),
        (("topo", "--no-measure", "-o", wrong / "x.json"), "cannot write", 2),
    ):
        told = call(*arguments)
        assert told.exit_code == code, told.output
        assert words in told.output
