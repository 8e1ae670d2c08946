# SPDX-License-Identifier: Apache-2.0
"""collbench tune and collbench explain, on real ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import collectives as cl
from collectives.cli.app import collbench
from collectives.cli.tuning import _show
from collectives.tuning.table import RULE, Choice, TunedTable
from tests.processes.jobs import environment


def call(*arguments: str) -> Result:
    return CliRunner().invoke(collbench, list(arguments))


def test_a_table_is_made_kept_and_used(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    made = call("tune", "-k", "allreduce", "-s", "8,4K", "--budget", "0.4", "-o", str(path))
    assert made.exit_code == 0, made.output
    assert "allreduce" in made.output
    table = TunedTable.load(path)
    assert table.ranks == 2
    told = call("explain", "allreduce", "-s", "8,1K", "-t", str(path))
    assert told.exit_code == 0, told.output
    chosen = table.of("allreduce", 8)
    assert chosen is not None
    assert f"allreduce of 8 bytes among 2 ranks by memory: {chosen}" in told.output
    # A busy machine has no time left for the second size: that goes by the rules.
    measured = sum(bool(table.of("allreduce", nbytes)) for nbytes in (8, 1 << 10))
    assert told.output.count("what has won where it was measured here") == measured
    other = call("explain", "allreduce", "-n", "3", "-t", str(path))
    assert other.exit_code == 0, other.output
    (warning,) = [line for line in other.stderr.splitlines() if line]
    assert warning.startswith("collbench: warning: the tuned table is for 2 ranks, not for 3: ")
    assert "by the rules of the library" in other.stdout


def test_an_explanation_is_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "why.json"
    told = call("explain", "allreduce", "-s", "8,1M", "--json", str(path))
    assert told.exit_code == 0, told.output
    short, long = json.loads(path.read_text())["explanations"]
    assert (short["nbytes"], long["nbytes"]) == (8, 1 << 20)
    assert f"{long['choice']['algorithm']}, {long['choice']['mode']}" in told.output
    assert all(rival["why"] for rival in long["rivals"])


def test_a_table_that_cannot_be_kept_is_shown_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTIVES_CACHE", "/proc/nope")
    path = tmp_path / "table.json"
    made = call("tune", "--budget", "0.3", "-o", str(path))
    assert made.exit_code == 0, made.output
    assert "allreduce" in made.stdout
    assert TunedTable.load(path).choices
    (warning,) = made.stderr.splitlines()
    assert warning.startswith("collbench: warning: ")
    assert "/proc/nope" in warning


def test_a_table_goes_where_other_programs_write(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "collectives.cli", "tune", "-k", "allreduce", "-s", "8"]
    command += ["--budget", "0.1", "-o"]

    def run(output: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, output], capture_output=True, text=True, timeout=60, env=environment()
        )

    shown = run("/dev/stdout")
    assert shown.returncode == 0, shown.stderr
    assert '"format": "collectives tuning"' in shown.stdout
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    told = run(str(full))
    assert told.returncode == 1
    assert told.stderr == f"collbench: cannot write {full}: No space left on device\n"
    assert "allreduce" in told.stdout
    looked = call("topo", "--no-measure", "-o", str(full))
    assert looked.exit_code == 1
    assert f"cannot write {full}: No space left on device" in looked.output
    assert Path("/dev/full").is_char_device()


def test_explain_without_a_table() -> None:
    told = call("explain", "reduce-scatter", "-n", "3")
    assert told.exit_code == 0, told.output
    assert "by the rules of the library" in told.output
    assert all(a.name in told.output for a in cl.algorithms("reduce_scatter"))


def test_a_barrier_is_of_no_size() -> None:
    for budget in ("0", "0.2"):
        told = call("explain", "barrier", "-s", "8,1M", "--budget", budget)
        assert told.exit_code == 0, told.output
        assert told.output.startswith("barrier among 2 ranks by memory: ")
        assert told.output.count("barrier among") == 1
        assert "bytes" not in told.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tune", "-k", "allsum"), "unknown"),
        (("tune", "-k", "scan"), "'scan' is not tuned: those that are tuned are allreduce, "),
        (("tune", "--budget", "0"), "0.1"),
        (("explain", "allreduce", "--budget", "1", "-t", "x.json"), "one of them"),
        (("explain",), "KIND"),
        (("explain", "scan", "--budget", "1"), "those that are tuned are allreduce, "),
        (("tune", "-o", "/nope/x.json"), "the folder /nope does not exist"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str) -> None:
    told = call(*arguments)
    assert told.exit_code == 2
    assert not Path("/nope").exists()
    assert words in told.output


@pytest.mark.parametrize("also_far", [False, True])
def test_what_runs_on_far_cores_is_shown_beside(
    also_far: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    far = [Choice("reduce", 16384, "chain", far=True)] if also_far else []
    near = [
        Choice("reduce", 0, "direct", "inline", 0),
        Choice("reduce", 0, "direct", "inline", 0, far=True),
        Choice("reduce", 16384, "chain" if not also_far else "binomial"),
        Choice("reduce", 1 << 20, RULE),
        Choice("reduce", 1 << 20, RULE, far=True),
    ]
    alike = [] if also_far else [Choice("reduce", 16384, "chain", far=True)]
    _show(TunedTable(2, "here", "1", (*near, *far, *alike)))
    head, small, middle, large = (line.split() for line in capsys.readouterr().out.splitlines())
    assert ("cores" in head) == also_far
    assert small[0] == "reduce"
    assert "direct," in small
    assert middle.count("chain,") == 1
    assert ("binomial," in middle) == also_far
    assert "library" in large
