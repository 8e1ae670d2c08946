# SPDX-License-Identifier: Apache-2.0
"""One small comparison with Gloo, from the command line to the files (``make test-extras``)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.peers import __main__ as command

SMALL = ("--libraries", "gloo", "--sizes", "1K", "--blocks", "2", "--budget", "120",
         "--patience", "5", "--starts", "1")  # fmt: skip


@pytest.mark.extras
@pytest.mark.processes
def test_ours_beside_gloo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written, drawn = tmp_path / "peers.json", tmp_path / "peers.png"
    files = ("--output", str(written), "--plot", str(drawn))
    monkeypatch.setattr("sys.argv", ["peers", *SMALL, *files])
    assert command.main() == 0
    shown = capsys.readouterr().out
    document = json.loads(written.read_text(encoding="utf-8"))
    (cell,) = document["cells"]
    blocks = [team for sheet in cell["sheets"].values() for team in sheet["blocks"]]
    assert set(blocks) == {"ours/ordinary", "gloo/torch", "ours/ordinary/again"}
    assert not cell["wrong"]
    assert not cell["refused"]
    assert "allreduce float32, 2 ranks, 8 to 4K: Gloo" in shown
    assert drawn.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("sys.argv", ["peers", "--markdown", "--show", str(written)])
    assert command.main() == 0
    assert "| 1K |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--libraries", "nccl"], "'nccl' is none of gloo, openmpi, mpich, impi"),
        (["--collectives", "scan"], "'scan' is none of allreduce"),
        (["--ranks", "x"], "'x' is no number of ranks"),
        (["--blocks", "0"], "'0' is no number of 1 or more"),
        (["--factor", "1"], "the factor between sizes must be 2 or more"),
        (["--sizes", "many"], "'many' is not a size"),
        (["--plot", "nowhere/peers.png"], "the folder nowhere does not exist"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_measured(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["peers", *arguments])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert sentence in capsys.readouterr().err
