# SPDX-License-Identifier: Apache-2.0
"""Reads a nccl.h: prototypes, enumerators, #defines, and, by a compiler, the layout of structs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

_PROTOTYPE = re.compile(
    r"^\s*(?:ncclResult_t|const char\s*\*)\s+(nccl\w+)\s*\(([^;]*)\)\s*;", re.MULTILINE
)
# What is a pointer without a star.
_HANDLES = {"ncclComm_t", "cudaStream_t", "ncclWindow_t", "ncclParamHandle_t", "uintptr_t"}
_NUMBERS = {
    "int", "ncclDataType_t", "ncclRedOp_t", "ncclScalarResidence_t", "ncclCommMemStat_t",
    "ncclResult_t",
}  # fmt: skip

# Of CUDA's headers, what nccl.h needs of them.
_CUDA = "typedef struct CUstream_st* cudaStream_t; typedef struct CUevent_st* cudaEvent_t;\n"


def prototypes(header: str) -> dict[str, list[str]]:
    """Return the kinds of arguments of all public functions."""
    return {name: kinds(arguments) for name, arguments in _PROTOTYPE.findall(header)}


def kinds(arguments: str) -> list[str]:
    """Return what each argument is to a call: a word, a number of 32 bits, a size, an id."""
    plain = re.sub(r"\s+", " ", arguments).strip()
    return [] if plain in ("", "void") else [_kind(one.strip()) for one in plain.split(",")]


def _kind(argument: str) -> str:
    words = [word for word in re.sub(r"\*", " * ", argument).split() if word != "const"]
    if "*" in words or words[0] in _HANDLES:
        return "word"
    if words[:2] == ["unsigned", "int"]:
        return "unsigned"
    if words[0] in _NUMBERS:
        return "int"
    return {"size_t": "size", "ncclUniqueId": "id"}[words[0]]


def numbers(header: str) -> dict[str, int]:
    """Return the enumerators and #defines whose value is a plain number."""
    found = re.findall(r"\b(nccl[A-Z]\w*)\s*=\s*(-?\d+)\b", header)
    found += re.findall(
        r"^\s*#define (NCCL_\w+) (-?(?:0x[0-9a-fA-F]+|\d+))\b", header, re.MULTILINE
    )
    return {name: int(value, 0) for name, value in found}


def layout(header: Path, structs: dict[str, list[str]], folder: Path) -> dict[str, dict[str, int]]:
    """Return offsets of fields, and under "" the size, of structs, as a compiler lays them out."""
    for name in ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"):
        (folder / name).write_text(_CUDA if name == "cuda_runtime.h" else "")
    lines = []
    for struct, fields in structs.items():
        lines.append(f'printf("{struct}  %zu\\n", sizeof({struct}));')
        for field in fields:
            lines.append(f'printf("{struct} {field} %zu\\n", offsetof({struct}, {field}));')
    source = folder / "layout.c"
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include "{header}"\n'
        "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n"
    )
    compiler = [*os.environ.get("CXX", "g++").split(), "-x", "c", f"-I{folder}", str(source)]
    subprocess.run([*compiler, "-o", str(folder / "layout")], check=True)
    told = subprocess.run([str(folder / "layout")], check=True, capture_output=True, text=True)
    found: dict[str, dict[str, int]] = {struct: {} for struct in structs}
    for line in told.stdout.splitlines():
        struct, field, value = line.split(" ")
        found[struct][field] = int(value)
    return found
