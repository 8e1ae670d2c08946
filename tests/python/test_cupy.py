# SPDX-License-Identifier: Apache-2.0
"""The backend for cupyx.distributed: on the emulated GPU, between processes, and in its table."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import collectives as cl
from collectives.cupy import NAME, Backend, register
from tests.ports import free_port
from tests.processes.jobs import ROOT, emulated_gpu

PROGRAM = """
import sys
import numpy as np
from collectives.cupy import Backend
rank, port = int(sys.argv[1]), int(sys.argv[2])
backend = Backend(3, rank, "127.0.0.1", port)
x, out = np.full(4, rank + 1.0), np.zeros(4)
backend.all_reduce(x, out)
assert backend.rank == rank and (out == 6).all(), out
backend.close()
"""


def test_collectives_on_the_emulated_gpu() -> None:
    names = ["reductions", "movements", "messages", "orders", "matrices"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu_cupy_program", *names],
        cwd=ROOT,
        env={**os.environ, "COLLECTIVES_CUDA_LIBRARY": str(emulated_gpu())},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr


def test_processes_meet_where_cupyx_says() -> None:
    port = free_port()
    environment = {**os.environ, "COLLECTIVES_TIMEOUT": "60"}
    ranks = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(rank), str(port)], env=environment)
        for rank in range(3)
    ]
    assert [rank.wait(100) for rank in ranks] == [0, 0, 0]


def test_it_is_known_to_cupyx_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table: dict[str, object] = {}
    module = ModuleType("cupyx.distributed._init")
    module.__dict__["_backends"] = table
    for name in ("cupyx", "cupyx.distributed"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupyx.distributed._init", module)
    register()
    assert table == {NAME: Backend}
    del module.__dict__["_backends"]
    with pytest.raises(cl.UnsupportedError, match="has no table of backends"):
        register()


def test_arrays_of_the_host_and_a_communicator_that_is_there() -> None:
    with cl.local(1)[0] as comm:
        backend = Backend.of(comm)
        x, out = np.arange(4.0), np.zeros(4)
        backend.all_reduce(x, out)
        assert (out == x).all()
        backend.send_recv(x + 1, out, 0)
        assert (out == x + 1).all()


def test_a_place_that_is_none_is_refused() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="RANK"):
        Backend(2, 2)


def test_mpi_is_asked_only_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(cl.UnsupportedError, match="use_mpi=True needs mpi4py"):
        Backend(2, 0, use_mpi=True)
