# SPDX-License-Identifier: Apache-2.0
"""Teams of real ranks of ours; environments are made by a Python that installs nothing."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.peers import venvs
from bench.peers.libraries import LIBRARIES, TeamName
from bench.peers.ranks.ours import METHODS, TORCH
from bench.peers.ranks.work import KINDS
from bench.peers.teams import Team, TeamError
from bench.peers.venvs import VenvError, python_of

OURS = TeamName.read("ours/ordinary")
PYTHON = Path(sys.executable)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture(params=[str(OURS)])
def team(folder: Path, request: pytest.FixtureRequest) -> Iterator[Team]:
    """Return two ranks of ours, who call in one of the ways."""
    ranks = Team(TeamName.read(request.param), 2)
    ranks.start(PYTHON, folder)
    try:
        ranks.meet()
        yield ranks
    finally:
        ranks.close()


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.processes
@pytest.mark.parametrize(
    "team",
    [
        *(f"ours/{variant}" for variant in METHODS),
        pytest.param(f"ours/{TORCH}", marks=pytest.mark.extras),
    ],
    indirect=True,
)
def test_a_team_measures_what_it_prepared(team: Team) -> None:
    assert team.version
    for kind in KINDS:
        assert team.prepare(kind, "bfloat16", 1 << 12) is None
        result = team.measure(calls=5, warm=2)
        assert result.durations.shape == (5,)
        assert np.all(result.durations > 0)
        assert result.wrong == 0
        assert result.seconds > result.durations.sum()


@pytest.mark.processes
def test_a_team_calls_without_a_pause(team: Team) -> None:
    for kind in ("allreduce", "reduce_scatter", "allgather"):
        assert team.prepare(kind, "float32", 1 << 12) is None
        begin = time.perf_counter()
        flow = team.flow(calls=20, drain=5)
        assert 0 < 20 * flow.seconds < time.perf_counter() - begin
        assert flow.wrong == 0


@pytest.mark.processes
def test_a_rank_that_is_killed_ends_the_team_with_a_sentence(team: Team) -> None:
    team.prepare("allreduce", "float32", 8)
    os.kill(team.processes[-1], signal.SIGKILL)
    with pytest.raises(TeamError, match=r"ours/ordinary .*lost"):
        team.measure(calls=1, warm=0)
    processes = team.processes
    team.close()
    assert not any(alive(process) for process in processes)


@pytest.mark.processes
def test_a_team_that_cannot_start_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(LIBRARIES["ours"], module="bench.peers.ranks.nowhere")
    monkeypatch.setitem(LIBRARIES, "ours", broken)
    ranks = Team(OURS, 2)
    ranks.start(PYTHON, folder)
    try:
        with pytest.raises(TeamError, match=r"did not start; it said:\n.*No module named"):
            ranks.meet()
    finally:
        ranks.close()


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = replace(LIBRARIES["mpich"], requirements=("mpich==5.0.2",))
    commands: list[list[str]] = []

    def run(_: object, command: list[str]) -> None:
        commands.append(command)
        python = tmp_path / "mpich" / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()

    monkeypatch.setattr(venvs, "_run", run)
    assert python_of(library, tmp_path) == tmp_path / "mpich" / "bin" / "python"
    assert [command[-1] for command in commands] == [str(tmp_path / "mpich"), "mpich==5.0.2"]
    python_of(library, tmp_path)
    assert len(commands) == 2
    python_of(replace(library, requirements=("mpich==5.0.1",)), tmp_path)
    assert len(commands) == 4


def test_this_environment_serves_where_it_has_all() -> None:
    here = replace(LIBRARIES["gloo"], requirements=("numpy>=1.26", f"numpy=={np.__version__}"))
    assert python_of(here) == PYTHON
    assert python_of(LIBRARIES["ours"]) == PYTHON


def test_an_installation_that_fails_is_reported(tmp_path: Path) -> None:
    library = replace(LIBRARIES["mpich"], requirements=("mpich==5.0.2",))
    (tmp_path / "file").touch()
    with pytest.raises(VenvError, match="MPICH could not be installed"):
        python_of(library, tmp_path / "file")  # no folder can be made there
