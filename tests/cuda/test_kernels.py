# SPDX-License-Identifier: Apache-2.0
"""The kernels as nvcc compiles them: what the assembler says of each, and how memory is read.

Nothing here runs on a GPU. What the kernels do is tested as threads: tests/native/cuda_*_test.cc.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.extras, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "cuda"
# Threads of a block (kBlockThreads) times these are the registers of a multiprocessor.
MOST_REGISTERS = 128
# Of four floats: selections, given and fed, and sums.
SPARSE_KERNELS = 4 * 3
# Six floats by five operations are four kernels each, and so on: native/cuda/families.h; each as an
# interpreter of plans, and for plans of one step.
KERNELS = 2 * (6 * 4 + 4 * 2 + 8 * 2 + 3 + 3 + 2 + 4) + SPARSE_KERNELS


@dataclass(frozen=True)
class Kernel:
    """What the assembler says of one."""

    name: str
    registers: int
    spilled: int
    stack: int


def kernels_in(text: str) -> list[Kernel]:
    """Read the words of ptxas -v."""
    found = []
    for part in text.split("Compiling entry function ")[1:]:
        name = re.match(r"'(\w+)'", part)
        registers = re.search(r"Used (\d+) registers", part)
        memory = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part
        )
        assert name
        assert registers
        assert memory
        stack, stores, loads = map(int, memory.groups())
        found.append(Kernel(name[1], int(registers[1]), stores + loads, stack))
    return found


@pytest.fixture(scope="module")
def kernels() -> list[Kernel]:
    subprocess.run([str(ROOT / "scripts/cuda_build.sh")], check=True, cwd=ROOT)
    return kernels_in((BUILD / "kernels.txt").read_text(encoding="utf-8"))


def test_every_kernel_is_compiled_once(kernels: list[Kernel]) -> None:
    names = [kernel.name for kernel in kernels]
    assert len(names) == len(set(names)) == KERNELS


def test_no_kernel_spills_or_wants_more_registers_than_a_block_has(kernels: list[Kernel]) -> None:
    assert [k for k in kernels if k.spilled or k.stack or k.registers > MOST_REGISTERS] == []


@pytest.fixture(scope="module")
def assembly(kernels: list[Kernel], tmp_path_factory: pytest.TempPathFactory) -> str:
    """PTX of the float kernels: what a GPU's assembler takes one instruction for each of."""
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    nvcc = re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.+)$", cache, flags=re.MULTILINE)
    assert nvcc
    out = tmp_path_factory.mktemp("ptx") / "float.ptx"
    options = ["-std=c++20", "--expt-relaxed-constexpr", "--fmad=false", "-O3", "-arch=sm_90"]
    source = ROOT / "native/cuda/float_kernels.cu"
    subprocess.run(
        [nvcc[1], *options, "-I", str(ROOT / "native"), "-ptx", str(source), "-o", str(out)],
        check=True,
    )
    return out.read_text(encoding="utf-8")


def test_memory_is_read_and_written_sixteen_bytes_at_a_time(assembly: str) -> None:
    entries = assembly.split(".entry ")[1:]
    assert len(entries) == 20
    for entry in entries:
        wide = re.findall(r"\b(ld|st)\.global\.v(?:2\.[bfu]64|4\.[bfu]32)", entry)
        assert wide.count("ld") >= 8, entry[:200]  # four sources at a time, left and balanced
        assert wide.count("st") >= 2, entry[:200]


def test_ticks_are_released_and_acquired_for_the_whole_system(assembly: str) -> None:
    for word in ("ld.acquire.sys.global.u64", "st.release.sys.global.u64"):
        assert word in assembly
    for word in ("ld.relaxed.sys.global.b128", "st.relaxed.sys.global.b128"):
        assert word in assembly, "packets are one access"


def test_the_library_opens_without_a_driver_and_says_why_there_is_no_device(
    kernels: list[Kernel],
) -> None:
    library = ctypes.CDLL(str(BUILD / "libcollectives_cuda.so"), mode=os.RTLD_LOCAL)
    why = ctypes.create_string_buffer(256)
    count = library.coll_cuda_devices(why)
    if count == 0:
        assert b"looking for GPUs: " in why.value
    assert library.coll_cuda_version() == 4


def test_the_library_needs_nothing_of_cuda(kernels: list[Kernel]) -> None:
    reader = shutil.which("readelf")
    assert reader is not None
    listed = subprocess.run(
        [reader, "--dynamic", "--wide", str(BUILD / "libcollectives_cuda.so")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    needed = re.findall(r"NEEDED.*\[(.+)\]", listed)
    assert needed
    assert not [name for name in needed if "cuda" in name or "nv" in name]
