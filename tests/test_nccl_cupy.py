# SPDX-License-Identifier: Apache-2.0
"""CuPy's own module for NCCL on libnccl.so.2, with arrays of NumPy: no GPU (``make test-extras``).

CuPy is installed into an environment of its own: others would take it for a sign of a GPU.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from collectives.preloading import nccl_library

pytestmark = [pytest.mark.extras, pytest.mark.timeout(600)]

CUPY = "cupy-cuda13x==14.2.*"

# Arguments: the library, a rank, a file for the id.
RANK = """
import ctypes, pathlib, sys, time
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import numpy as np
from cupy_backends.cuda.libs import nccl

assert nccl.get_version() == 23007
rank, path = int(sys.argv[2]), pathlib.Path(sys.argv[3])
if rank == 0:
    path.with_suffix(".new").write_bytes(nccl.get_unique_id())
    path.with_suffix(".new").rename(path)
while not path.exists():
    time.sleep(0.01)
comm = nccl.NcclCommunicator(2, path.read_bytes(), rank)
assert (comm.size(), comm.rank_id(), comm.device_id()) == (2, rank, -1)
x = np.full(1000, rank + 1, "float32")
at = x.ctypes.data
comm.allReduce(at, at, x.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, 0)
assert (x == 3).all()
everywhere = np.empty(4)
own = np.full(2, float(rank))
comm.allGather(own.ctypes.data, everywhere.ctypes.data, 2, nccl.NCCL_FLOAT64, 0)
assert everywhere.tolist() == [0, 0, 1, 1]
comm.bcast(own.ctypes.data, 2, nccl.NCCL_FLOAT64, 1, 0)
assert own.tolist() == [1, 1]
nccl.groupStart()
comm.send(at, 10, nccl.NCCL_FLOAT32, 1 - rank, 0)
comm.recv(x[10:].ctypes.data, 10, nccl.NCCL_FLOAT32, 1 - rank, 0)
nccl.groupEnd()
try:
    comm.allReduce(at, at, 4, 99, nccl.NCCL_SUM, 0)
    raise SystemExit("a dtype of 99 was taken")
except nccl.NcclError as error:
    assert error.status == 4, error
comm.destroy()
"""

ALONE = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import numpy as np
from cupy_backends.cuda.libs import nccl

arrays = [np.full(3, float(rank)) for rank in range(3)]
comms = nccl.NcclCommunicator.initAll(3)
nccl.groupStart()
for comm, x in zip(comms, arrays):
    comm.allReduce(x.ctypes.data, x.ctypes.data, 3, nccl.NCCL_FLOAT64, nccl.NCCL_MAX, 0)
nccl.groupEnd()
assert all((x == 2).all() for x in arrays)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with CuPy."""
    folder = tmp_path_factory.mktemp("cupy") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    interpreter = folder / "bin/python"
    subprocess.run([interpreter, "-m", "pip", "install", "-qq", CUPY], check=True)
    return interpreter


def test_ranks_in_two_processes(python: Path, tmp_path: Path) -> None:
    started = [
        subprocess.Popen(
            [python, "-c", RANK, nccl_library(), str(rank), tmp_path / "id"],
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=60)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], said


def test_ranks_of_one_thread(python: Path) -> None:
    done = subprocess.run(
        [python, "-c", ALONE, nccl_library()], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
