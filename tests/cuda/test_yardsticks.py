# SPDX-License-Identifier: Apache-2.0
"""The kernels that bench.gpu measures by, as nvcc compiles them for sm_90; none runs here."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from bench.gpu import libraries
from tests.cuda.test_kernels import ROOT, kernels_in

pytestmark = [pytest.mark.extras, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def nvcc() -> str:
    try:
        return libraries.nvcc()
    except libraries.LibraryError:
        subprocess.run([str(ROOT / "scripts/cuda_build.sh")], check=True, cwd=ROOT)
        return libraries.nvcc()


@pytest.fixture(scope="module")
def compiled(nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The library, and what the assembler says of its kernels."""
    built = tmp_path_factory.mktemp("yardsticks") / "libyardsticks.so"
    done = subprocess.run(
        libraries.command(nvcc, "sm_90", built),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return built, done.stderr


def test_kernels_neither_spill_nor_want_too_many_registers(compiled: tuple[Path, str]) -> None:
    kernels = kernels_in(compiled[1])
    assert len(kernels) == 7  # the sum of 2, 4 and 8; fill, count, nothing, flags
    assert [k for k in kernels if k.spilled or k.registers > 128] == []


def test_the_sum_by_hand_has_eight_accesses_of_sixteen_bytes_under_way(
    nvcc: str, tmp_path: Path
) -> None:
    out = tmp_path / "yardsticks.ptx"
    command = libraries.command(nvcc, "sm_90", out)
    kept = [word for word in command if not word.endswith("graphs.cu") and word != "-shared"]
    subprocess.run([*kept, "-ptx"], check=True, capture_output=True)
    entries = [e for e in out.read_text(encoding="utf-8").split(".entry ")[1:] if "fused" in e[:99]]
    assert len(entries) == 3
    for entry in entries:
        assert entry.count("ld.global.v4.f32") >= 8  # all under way together
        assert entry.count("st.global.v4.f32") >= 8


def test_the_library_opens_without_a_driver_and_says_what_is_wrong(
    compiled: tuple[Path, str],
) -> None:
    library = ctypes.CDLL(str(compiled[0]))
    facts, why = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(256)
    if library.yard_facts(0, facts, why):
        assert why.value.startswith(b"asking a GPU what it is: ")
