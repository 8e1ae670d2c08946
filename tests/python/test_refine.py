# SPDX-License-Identifier: Apache-2.0
"""Choices that rank 0 announces: what refining finds, and tables that are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives.tuning.announced import announce, announce_kept
from collectives.tuning.kept import keep
from collectives.tuning.machine import fingerprint, one_host
from collectives.tuning.table import Choice, TunedTable, TuningWarning
from tests.processes.jobs import collrun
from tests.python.ranks import on_ranks

RING = Choice("allreduce", 0, "ring", "staged", 0, 4096)
ENOUGH = 20  # calls until an announcement holds


def _calls(comm: cl.Communicator, count: int = ENOUGH, n: int = 300) -> None:
    for _ in range(count):
        x = np.full(n, comm.rank + 1.0)
        comm.allreduce(x)
        assert (x == comm.size * (comm.size + 1) / 2).all()


@pytest.mark.parametrize("p", [2, 3, 5])
def test_all_ranks_run_what_rank_0_announces(p: int) -> None:
    def work(comm: cl.Communicator) -> tuple[str, str, str]:
        before = comm.explain("allreduce", 2400)
        if comm.rank == 0:
            announce(comm, [RING])
        _calls(comm)
        after = comm.explain("allreduce", 2400)
        assert before.source == "rule"
        assert "rank 0 has announced another" in str(after)
        return after.source, after.choice.algorithm, comm.explain("allgather", 2400).source

    assert on_ranks(p, work) == [("announced", "ring", "rule")] * p


@pytest.mark.parametrize("p", [2, 4])
def test_results_are_right_while_rules_are_refined(p: int) -> None:
    def work(comm: cl.Communicator) -> None:
        comm.refine(5)
        again = comm.persistent.allreduce(x := np.zeros(500))
        for i in range(400):
            _calls(comm, 1, (1, 300, 20_000)[i % 3])
            x[:] = comm.rank
            again()
            assert (x == comm.size * (comm.size - 1) / 2).all()
        with comm.force(allreduce="ring"):
            _calls(comm, 30)
        comm.refine(0)
        _calls(comm, 60)

    on_ranks(p, work)


def test_a_budget_that_is_none() -> None:
    with cl.local(1)[0] as comm:
        comm.refine()
        for wrong in (-1, float("nan"), "long", None, 1e7):
            with pytest.raises(
                cl.InvalidArgumentError, match=r"refine: budget_s is .*give seconds"
            ):
                comm.refine(wrong)  # type: ignore[arg-type]


def test_only_rank_0_announces() -> None:
    def work(comm: cl.Communicator) -> None:
        if comm.rank == 1:
            with pytest.raises(
                cl.InvalidArgumentError, match="announced by rank 0, this is rank 1"
            ):
                announce(comm, [RING])

    on_ranks(2, work)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLLECTIVES_CACHE", str(tmp_path))
    return tmp_path


def _keep(comm: cl.Communicator) -> str:
    machine = fingerprint(comm)
    if comm.rank == 0:
        keep(TunedTable(comm.size, machine, "0", (RING,)), None)
    return machine


def test_the_machine_is_named_as_by_all_ranks(cache: Path) -> None:
    import os

    cores = len(os.sched_getaffinity(0))
    assert on_ranks(3, _keep) == [one_host("memory", 3, cores)] * 3


def test_a_kept_table_is_announced(cache: Path) -> None:
    def work(comm: cl.Communicator) -> Any:
        if comm.rank == 0:
            announce_kept(comm)
        _calls(comm, 2 * ENOUGH)
        return comm.explain("allreduce", 2400).choice.algorithm

    assert "ring" not in on_ranks(3, work)
    on_ranks(3, _keep)
    assert on_ranks(3, work) == ["ring"] * 3
    assert "ring" not in on_ranks(4, work)
    (path,) = cache.glob("tuned-*.json")
    path.write_text("{")
    with pytest.warns(TuningWarning, match="is not JSON.*chooses by itself") as caught:
        assert "ring" not in on_ranks(3, work)
    assert len(caught) == 1  # of rank 0


PROGRAM = """
import os, sys
asked = os.environ.pop("COLLECTIVES_TUNE", None)  # as under other launchers
import numpy as np, collectives as cl
comm = cl.init()
for _ in range(40):
    comm.allreduce(np.ones(300))
sys.stdout.write(f"{asked} {comm.explain('allreduce', 2400).source}\\n")
"""


def test_init_finds_a_kept_table_under_any_launcher(cache: Path) -> None:
    def run() -> list[str]:
        words = {"COLLECTIVES_CACHE": str(cache)}
        done = collrun("-n", 3, "--no-prefix", sys.executable, "-c", PROGRAM, env=words)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run() == ["None rule"] * 3
    on_ranks(3, _keep)
    assert run() == ["kept announced"] * 3


def test_a_program_that_is_to_be_refined() -> None:
    program = """
import numpy as np, collectives as cl
comm = cl.init()
for _ in range(300):
    assert comm.allreduce(np.full(300, comm.rank + 1.0))[0] == 3
"""
    done = collrun("-n", 2, sys.executable, "-c", program, env={"COLLECTIVES_TUNE": "refine"})
    assert done.returncode == 0, done.stderr
