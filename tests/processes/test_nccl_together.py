# SPDX-License-Identifier: Apache-2.0
"""collectives.nccl on this package's own libnccl.so.2, between processes, without a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.jobs import emulated_gpu, environment

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.processes

START = """
import pathlib, sys, time
import numpy as np
import collectives as cl
path = cl.preload_nccl()
from collectives import nccl

assert str(path) in repr(nccl.load())
"""

ALONE = """
comms = nccl.init_all([0, 0, 0])
arrays = [np.full(4, rank + 1.0) for rank in range(3)]
with nccl.group():
    for comm, x in zip(comms, arrays):
        comm.allreduce(x)
assert all((x == 6).all() for x in arrays), arrays
for comm in comms:
    comm.close()
"""

RANK = """
rank, place = int(sys.argv[1]), pathlib.Path(sys.argv[2])
if rank == 0:
    place.with_suffix(".new").write_bytes(nccl.unique_id())
    place.with_suffix(".new").rename(place)
while not place.exists():
    time.sleep(0.005)
with nccl.init_rank(2, place.read_bytes(), rank) as comm:
    assert (comm.rank, comm.size) == (rank, 2)
    x = comm.allreduce(np.full(1000, rank + 1, "float32"), op="avg")
    assert (x == 1.5).all()
    y = comm.allgather(np.full(2, rank), np.empty(4, int))
    assert y.tolist() == [0, 0, 1, 1]
    assert comm.reduce_scatter(np.arange(4), np.empty(2, int)).tolist() == [4 * rank, 4 * rank + 2]
    assert comm.broadcast(np.full(3, rank), root=1).tolist() == [1, 1, 1]
    got = np.empty(5)
    with nccl.group():
        comm.send(np.full(5, float(rank)), 1 - rank)
        comm.recv(got, 1 - rank)
    assert (got == 1 - rank).all()
    with comm.split(0, key=-rank) as part:
        assert part.rank == 1 - rank
    try:
        comm.allreduce(np.ones(5 + rank))
    except nccl.NcclInvalidUsageError as error:
        assert "5 float64" in str(error), error
    else:
        raise SystemExit("counts that differ were taken")
"""

ON_GPU = """
from collectives._ffi import check, ffi, lib
from collectives.gpu_memory import DeviceArray
from collectives.gpu_streams import LEGACY

def copied(to, source, nbytes):
    places = (ffi.cast("void *", to), ffi.cast("void *", source))
    check(lib.coll_gpu_copy(0, *places, nbytes, ffi.cast("void *", LEGACY)))

def at(x):
    return x.__cuda_array_interface__["data"][0]

rank, place = int(sys.argv[1]), pathlib.Path(sys.argv[2])
if rank == 0:
    place.with_suffix(".new").write_bytes(nccl.unique_id())
    place.with_suffix(".new").rename(place)
while not place.exists():
    time.sleep(0.005)
with nccl.init_rank(2, place.read_bytes(), rank) as comm:
    assert comm.device == 0
    x, host = DeviceArray((5,), np.dtype("float32"), 0), np.full(5, rank + 1, "float32")
    copied(at(x), host.ctypes.data, host.nbytes)
    comm.allreduce(x, op="sum")
    comm.allreduce(host)  # of the host, on the same communicator
    got = np.empty_like(host)
    copied(got.ctypes.data, at(x), got.nbytes)
    assert (got == 3).all() and (host == 3).all(), (got, host)
    with comm.pre_mul_sum(2.0, "float32") as twice:
        comm.allreduce(x, op=twice)
    y = DeviceArray((10,), np.dtype("float32"), 0)
    comm.allgather(x, y)
    got = np.empty(10, "float32")
    copied(got.ctypes.data, at(y), got.nbytes)
    assert (got == 12).all(), got
    try:
        comm.allreduce(x if rank == 0 else host)
    except nccl.NcclInvalidUsageError as error:
        assert "GPU" in str(error), error
    else:
        raise SystemExit("arrays of a GPU and of the host were taken together")
"""


def start(program: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START + program, *map(str, arguments)],
        cwd=ROOT, env=environment(variables), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_all_ranks_of_one_thread() -> None:
    process = start(ALONE)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said


def test_two_processes(tmp_path: Path) -> None:
    ranks = [start(RANK, rank, tmp_path / "id") for rank in range(2)]
    said = [process.communicate(timeout=60)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said


def test_two_processes_with_arrays_of_a_gpu(tmp_path: Path) -> None:
    variables = {"COLLECTIVES_CUDA_LIBRARY": str(emulated_gpu())}
    ranks = [start(ON_GPU, rank, tmp_path / "id", **variables) for rank in range(2)]
    said = [process.communicate(timeout=60)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0], said
