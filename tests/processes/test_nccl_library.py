# SPDX-License-Identifier: Apache-2.0
"""libnccl.so.2 through ctypes, between processes, and put in NCCL's place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from collectives.preloading import nccl_library
from tests.processes.jobs import environment

ROOT = Path(__file__).resolve().parents[2]
ABORTED = -6

pytestmark = pytest.mark.processes


def ranks(program: str, n: int, folder: Path, env: Mapping[str, str]) -> list[tuple[int, str]]:
    """Run a program of nccl_rank.py on ``n`` ranks; return how each ended and what it said."""
    command = (sys.executable, "-m", "tests.processes.nccl_rank", program)
    started = [
        subprocess.Popen(
            [*command, str(rank), str(n), str(folder)],
            cwd=ROOT, env=environment(env), stderr=subprocess.PIPE, text=True,
        )
        for rank in range(n)
    ]  # fmt: skip
    ended = [(process, process.communicate(timeout=60)[1]) for process in started]
    return [(process.returncode, said) for process, said in ended]


@pytest.mark.parametrize("disabled", ["0", "1"], ids=["memory", "tcp"])
def test_the_calls_of_an_inference_server(disabled: str, tmp_path: Path) -> None:
    for status, said in ranks("collectives", 3, tmp_path, {"NCCL_SHM_DISABLE": disabled}):
        assert status == 0, said


def test_a_rank_that_is_killed_is_told_within_a_second(tmp_path: Path) -> None:
    ended = ranks("death", 3, tmp_path, {})
    assert [status for status, _ in ended] == [0, ABORTED, 0], ended


def test_counts_that_differ_are_an_error(tmp_path: Path) -> None:
    for status, said in ranks("mismatch", 2, tmp_path, {}):
        assert status == 0, said


def test_the_environment_is_read_and_the_rest_of_it_named_once(tmp_path: Path) -> None:
    settings = {
        "NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "=lo", "NCCL_ALGO": "allreduce:Tree,Ring;^PAT",
        "NCCL_IB_HCA": "mlx5", "NCCL_NTHREADS": "64", "NCCL_SHM_DISABLE": "1",
    }  # fmt: skip
    for rank, (status, said) in enumerate(ranks("collectives", 2, tmp_path, settings)):
        assert status == 0, said
        assert said.count("NCCL version 2.30.7") == 1
        (line,) = [it for it in said.splitlines() if "without meaning here" in it]
        assert sorted(line.rpartition(": ")[2].split(", ")) == ["NCCL_IB_HCA", "NCCL_NTHREADS"]
        assert f"rank {rank} of 2: tcp" in said


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("NCCL_SOCKET_IFNAME", "none_of_these", "NCCL_SOCKET_IFNAME is 'none_of_these'"),
        ("NCCL_ALGO", "Ring,Rong", "'Rong' is none of NCCL's algorithms"),
        ("COLLECTIVES_TIMEOUT", "soon", "COLLECTIVES_TIMEOUT is 'soon'"),
    ],
)
def test_settings_that_make_no_sense_are_quoted(
    name: str, value: str, words: str, tmp_path: Path
) -> None:
    ((status, said),) = ranks("collectives", 1, tmp_path, {name: value})
    assert status == 1
    assert words in said


def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    """Run Python and return what it printed, both streams."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT, env=environment(env), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_is_loaded_once_and_by_its_name() -> None:
    program = (
        "import ctypes, collectives as cl; from collectives.preloading import loaded_libraries;"
        "path = cl.preload_nccl(); assert cl.preload_nccl() == path;"
        "ctypes.CDLL('libnccl.so.2').ncclGroupStart; print(loaded_libraries() == [str(path)])"
    )
    assert run("-c", program) == "True\n"


def test_it_is_found_by_ld_preload() -> None:
    program = (
        "import ctypes; from collectives.preloading import loaded_libraries;"
        "ctypes.CDLL('libnccl.so.2').ncclGroupStart; print(*loaded_libraries())"
    )
    assert run("-c", program, env={"LD_PRELOAD": str(nccl_library())}) == f"{nccl_library()}\n"


def test_another_library_of_that_name_stays_and_is_named(tmp_path: Path) -> None:
    other = shutil.copy(nccl_library(), tmp_path / "libnccl.so.2")
    program = (
        f"import ctypes, collectives as cl; ctypes.CDLL({str(other)!r})\n"
        "try:\n    cl.preload_nccl()\n"
        "except cl.UnsupportedError as error:\n    print(error)"
    )
    printed = run("-c", program)
    assert str(other) in printed
    assert "before torch" in printed


def test_programs_and_modules_run_with_it(tmp_path: Path) -> None:
    text = "import ctypes, sys; ctypes.CDLL('libnccl.so.2'); print(__name__, sys.argv[1:])"
    script = tmp_path / "program.py"
    script.write_text(text, encoding="utf-8")
    wanted = "__main__ ['--flag', 'x']\n"
    assert run("-m", "collectives.run", "--nccl", script, "--flag", "x") == wanted
    in_folder = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    module = ("-m", "collectives.run", "--nccl", "-m", "program", "--flag", "x")
    assert run(*module, env=in_folder) == wanted


# A driver for which every address is in the memory of GPU 3.
DRIVER = """
extern "C" int cuPointerGetAttribute(void* data, int, unsigned long) {
  *static_cast<unsigned*>(data) = 2;
  return 0;
}
extern "C" int cuCtxGetDevice(int* device) {
  *device = 3;
  return 0;
}
"""

CALLS = """
import ctypes
import numpy as np
from tests.processes.nccl_rank import FLOAT32, SUM, Rank
from pathlib import Path
import tempfile
with tempfile.TemporaryDirectory() as folder:
    it = Rank(0, 1, Path(folder))
x = np.ones(2, "float32")
print(it.nccl.sentence(it.sum(x)))
device, memory = ctypes.c_int(), ctypes.c_void_p()
it.nccl.library.ncclCommCuDevice(it.comm, ctypes.byref(device))
print(device.value)
print(it.nccl.sentence(it.nccl.library.ncclMemAlloc(ctypes.byref(memory), ctypes.c_size_t(8))))
"""


def test_arrays_of_a_gpu_are_refused_where_there_are_no_kernels(tmp_path: Path) -> None:
    source = tmp_path / "driver.cc"
    source.write_text(DRIVER, encoding="utf-8")
    compiler = os.environ.get("CXX", "g++").split()
    library = tmp_path / "libcuda.so.1"
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    called, device, allocated = run(
        "-c", CALLS, env={"LD_LIBRARY_PATH": str(tmp_path)}
    ).splitlines()
    assert called.startswith("invalid usage: an array lies in the memory of a GPU, for which there")
    assert device == "3"
    assert allocated.startswith("invalid usage: there is a CUDA driver, so memory of a GPU is")
