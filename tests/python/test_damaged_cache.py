# SPDX-License-Identifier: Apache-2.0
"""What is kept and of no use is told of: tables when a program begins, costs when it explains."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import collectives as cl
from collectives.machine_costs import MachineCosts, usual_costs
from collectives.tuning.kept import costs_path, keep
from collectives.tuning.machine import fingerprint
from collectives.tuning.table import Choice, TunedTable, TuningWarning
from tests.processes.jobs import collrun
from tests.python.ranks import on_ranks

PROGRAM = "import collectives as cl; cl.init().barrier()"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of the test's own."""
    monkeypatch.setenv("COLLECTIVES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _keep(comm: cl.Communicator) -> str:
    machine = fingerprint(comm)
    if comm.rank == 0:
        keep(TunedTable(comm.size, machine, "0", (Choice("allreduce", 0, "ring"),)), usual_costs())
    return machine


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: "{", "is not JSON"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "a newer version"),
    ],
)
def test_init_warns_of_a_table_that_is_of_no_use(
    change: Callable[[str], str], sentence: str, cache: Path
) -> None:
    on_ranks(2, _keep)
    (path,) = cache.glob("tuned-*.json")
    words = {"COLLECTIVES_CACHE": str(cache)}
    good = collrun("-n", 2, sys.executable, "-c", PROGRAM, env=words)
    assert (good.returncode, good.stderr) == (0, "")
    path.write_text(change(path.read_text()))
    done = collrun("-n", 2, sys.executable, "-c", PROGRAM, env=words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"TuningWarning: tuned table: {path} ") == 1
    assert sentence in done.stderr
    assert "the library chooses by itself" in done.stderr


def _with(key: str, value: Any) -> str:
    document = json.loads(usual_costs().to_json())
    *outer, last = key.split(".")
    inner = document
    for name in outer:
        inner = inner[name]
    inner[last] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        (_with("op", 1e300), "op is 1e.300: give seconds, 60 at most"),
        (_with("fold", 2.0), "fold is 2.0: give seconds per byte, 1 at most"),
        (_with("far.flag", 61), "far: flag is 61: give seconds, 60 at most"),
        (_with("private_cache", 1e19), "private_cache"),
        (_with("read.seconds_per_byte", [1, 1, 1, 7]), "per byte, 1 at most"),
    ],
)
def test_costs_that_are_of_no_use_are_told_of_once(text: str, sentence: str, cache: Path) -> None:
    def work(comm: cl.Communicator) -> None:
        path = costs_path(_keep(comm))
        assert path is not None
        if comm.rank == 0:
            path.write_text(text)
        comm.barrier()
        assert comm.use_kept_table() is not None
        first, second = (comm.explain("allreduce", 8) for _ in range(2))
        assert first == second
        assert comm._known_costs == usual_costs()

    with pytest.warns(TuningWarning, match=sentence) as caught:
        on_ranks(2, work)
    assert len(caught) == 2  # one of each rank
    assert all("costs-" in str(one.message) for one in caught)


def test_what_a_machine_may_cost() -> None:
    values = {**vars(usual_costs())}
    for name, value in (("op", 61.0), ("turn", float("inf")), ("fold", 1.5), ("shared_cache", -1)):
        with pytest.raises(cl.InvalidArgumentError, match=f"{name} is"):
            MachineCosts(**{**values, name: value})
    assert MachineCosts(**values) == usual_costs()
