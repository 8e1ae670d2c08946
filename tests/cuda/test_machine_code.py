# SPDX-License-Identifier: Apache-2.0
"""The machine code of the kernels, as NVIDIA's disassembler shows it; nothing runs on a GPU."""

from __future__ import annotations

import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

pytestmark = [pytest.mark.extras, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build" / "cuda" / "libcollectives_cuda.so"


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Return the kernels of the library, newly built where it is old."""
    subprocess.run([str(ROOT / "scripts/cuda_build.sh")], check=True, cwd=ROOT)
    said = (LIBRARY.parent / "kernels.txt").read_text(encoding="utf-8")
    return re.findall(r"Compiling entry function '(\w+)'", said)


def _tool(name: str, *arguments: str) -> str:
    nvidia = pytest.importorskip("nvidia.cu13")
    folder = Path(next(iter(nvidia.__path__))) / "bin"
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    (folder / name).chmod(0o755)
    return subprocess.run(
        [str(folder / name), *arguments], check=True, capture_output=True, text=True, env=env
    ).stdout


@lru_cache(maxsize=16)
def code_of(name: str) -> str:
    """Return the instructions of a kernel."""
    return _tool("cuobjdump", "--dump-sass", "--function", name, str(LIBRARY))


def kernels(names: list[str], *words: str) -> list[str]:
    found = [name for name in names if all(word in name for word in words)]
    assert found, words
    return found


FLOAT_SUM = ("5PlainIfEE", "3Sum")


@pytest.mark.parametrize("kind", ["run_channel", "run_directly"])
def test_a_sum_of_floats_reads_sixteen_bytes_at_a_time_and_keeps_all_in_registers(
    kind: str, names: list[str]
) -> None:
    [name] = kernels(names, kind, *FLOAT_SUM)
    code = code_of(name)
    assert len(re.findall(r"LDG\.E\.128", code)) >= 16
    assert len(re.findall(r"STG\.E\.128", code)) >= 8
    assert not re.search(r"\b(LDL|STL)\b", code)
    assert "STG.E.U8" not in code, "elements are written as a whole"
    assert kind == "run_channel" or "LDG.E.U8" not in code, "and read: plans have bytes"


def test_ticks_and_packets_are_told_to_the_whole_system(names: list[str]) -> None:
    [name] = kernels(names, "run_channel", *FLOAT_SUM)
    code = code_of(name)
    assert "LDG.E.64.STRONG.SYS" in code
    assert "LDG.E.128.STRONG.SYS" in code, "a packet is one access"
    assert "MEMBAR.ALL.GPU" in code, "and among ranks of one GPU to that"


@pytest.mark.parametrize("words", [("8Bfloat16E", "3Sum"), ("4HalfE", "3Sum")])
def test_the_lower_byte_of_a_rounded_float_is_no_number_to_be_converted(
    words: tuple[str, str], names: list[str]
) -> None:
    """As the assembler of CUDA 13.0 takes it for, where it has made the float by itself."""
    for name in kernels(names, "run_", *words):
        code = code_of(name)
        assert not re.search(r"F2I\.U8\.F16", code)
        assert re.search(r"F2FP(\.BF16|\.F16)?\.F32\.PACK_AB", code)


def test_sums_of_sparse_vectors_read_and_write_values_as_a_whole(names: list[str]) -> None:
    [name] = kernels(names, "merge_stage", "5PlainIfEE")
    assert not re.search(r"(LDG|STG)\.E\.U8", code_of(name))


def test_bits_are_counted_by_instructions_of_the_gpu() -> None:
    """What the standard library has for that is constant where nvcc compiles it for the GPU."""
    wrong = re.compile(r"std::(count[lr]_(zero|one)|popcount|bit_width|has_single_bit)\(")
    sources = [*(ROOT / "native/cuda").glob("*.h"), *(ROOT / "native/cuda").glob("*.cu")]
    found = [path.name for path in sources if wrong.search(path.read_text(encoding="utf-8"))]
    assert found == ["lanes.h"], "there it is for threads of the host"
