# SPDX-License-Identifier: Apache-2.0
"""libnccl.so.2 beside NCCL's own: names, signatures, values, layouts (``make test-extras``).

The wheel of NCCL (scripts/nccl_wheels.sh) is only looked at: its header is compiled
against, its library's names are read. Neither is part of this package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from collectives.preloading import nccl_library

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "native/nccl"
VERSION = "2.30.7"
COMPILER = os.environ.get("CXX", "g++").split()

pytestmark = [pytest.mark.extras, pytest.mark.timeout(600)]

# What the header includes of CUDA, as far as it uses it.
CUDA = {
    "cuda_runtime.h": "#pragma once\n#include <stddef.h>\n#define CUDART_VERSION 13000\n"
    "typedef struct CUstream_st* cudaStream_t;\n",
    "cuda_fp16.h": "",
    "cuda_bf16.h": "",
    "cuda_fp8.h": "",
}


@pytest.fixture(scope="module")
def nccl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder: include, with stand-ins for what NCCL's includes of CUDA's, and lib."""
    subprocess.run([ROOT / "scripts/nccl_wheels.sh", VERSION], check=True)
    wheel = ROOT / "build/nccl" / VERSION / "nvidia/nccl"
    folder = tmp_path_factory.mktemp("nccl")
    shutil.copytree(wheel / "include", folder / "include")
    (folder / "lib").symlink_to(wheel / "lib")
    for name, text in CUDA.items():
        (folder / "include" / name).write_text(text, encoding="utf-8")
    return folder


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | variables, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported(library: Path) -> set[str]:
    """Return the names of NCCL's functions that a library shows."""
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return {name for line in lines if re.match(r"p?nccl[A-Z]", name := line.split()[-1])}


def test_every_name_of_the_library_is_here(nccl: Path) -> None:
    theirs = exported(nccl / "lib/libnccl.so.2")
    assert len(theirs) > 100
    internal = {"ncclResetDebugInitInternal"}  # in no header
    assert theirs - exported(nccl_library()) <= internal


# ---- signatures ------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return C code without comments, lines of the preprocessor and superfluous blanks."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#(?:\\\n|[^\n])*", " ", text, flags=re.MULTILINE)
    return " ".join(text.split())


def kind(parameter: str) -> str:
    """Return the type of a parameter without its name, in one spelling."""
    words = re.findall(r"\w+|[*&]", parameter)
    names = {"unsigned", "int", "const", "size_t", "void", "char"}
    if len(words) > 1 and re.match(r"\w", words[-1]) and words[-1] not in names:
        last = words[-1]
        if not (last.endswith("_t") or last == "ncclUniqueId") or len(words) > 2:
            words = words[:-1] if words[-2] != "const" else words
    stars = words.count("*")
    base = [word.removesuffix("_t") for word in words if word not in ("*", "const", "struct")]
    return " ".join(base) + "*" * stars


def signatures(text: str, pattern: str) -> dict[str, tuple[str, list[str]]]:
    found = {}
    for returned, name, parameters in re.findall(pattern, plain(text)):
        kinds = [kind(it) for it in parameters.split(",") if it.strip() not in ("", "void")]
        found[name] = (returned.removesuffix("_t").strip(), kinds)
    return found


RETURNED = r"(ncclResult_t|const char ?\*|void|int|ncclTeam_t)"


def test_every_signature_is_theirs(nccl: Path) -> None:
    include = nccl / "include"
    headers = [include / "nccl.h", *sorted((include / "nccl_device").glob("*.h"))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in headers)
    theirs = signatures(text, RETURNED + r" ?(nccl[A-Z]\w+) ?\(([^()]*)\) ?;")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in sorted(OURS.glob("*.cc")))
    ours = signatures(sources, RETURNED + r" ?(nccl[A-Z]\w+) ?\(([^()]*)\) ?\{")
    assert len(ours) > 70
    wrong = {
        name: (signature, theirs[name])
        for name, signature in ours.items()
        if name in theirs and theirs[name] != signature
    }
    assert wrong == {}
    assert set(ours) - set(theirs) <= {"ncclResetDebugInit"}


# ---- values and layouts -----------------------------------------------------------------------

CONFIG = [
    "size",
    "magic",
    "version",
    "blocking",
    "cgaClusterSize",
    "minCTAs",
    "maxCTAs",
    "netName",
    "splitShare",
    "trafficClass",
    "commName",
    "collnetEnable",
    "CTAPolicy",
    "shrinkShare",
    "nvlsCTAs",
    "nChannelsPerNetPeer",
    "nvlinkCentricSched",
    "graphUsageMode",
    "numRmaCtx",
    "maxP2pPeers",
    "graphStreamOrdering",
]


def names_of_values() -> list[str]:
    """Return the enumerators and numbers that our header defines."""
    text = (OURS / "nccl.h").read_text(encoding="utf-8")
    values = re.findall(r"\b(nccl[A-Z]\w+) = ", text)
    numbers = re.findall(r"#define (NCCL_\w+) (?:-?\d|0x|INT_MIN)", text)
    return [*values, *(name for name in numbers if name != "NCCL_UNDEF_FLOAT")]


def table() -> str:
    """Return a program that prints values, sizes and places."""
    lines = [f'show("{name}", (long long)({name}));' for name in names_of_values()]
    structs = {"ncclConfig_t": CONFIG, "ncclSimInfo_t": ["size", "magic", "version"],
               "ncclWaitSignalDesc_t": ["opCnt", "peer", "sigIdx", "ctx"],
               "ncclUniqueId": ["internal"]}  # fmt: skip
    for struct, members in structs.items():
        lines.append(f'show("{struct}", sizeof({struct}));')
        lines += [
            f'show("{struct}.{it}", (long long)(offsetof({struct}, {it})));' for it in members
        ]
    lines.append("ncclConfig_t config = NCCL_CONFIG_INITIALIZER;")
    lines += [f'show("initial {it}", (long long)(config.{it}));' for it in CONFIG if it != "size"]
    return (
        "#include <nccl.h>\n#include <cstddef>\n#include <cstdio>\n"
        'static void show(const char* name, long long v) { std::printf("%s %lld\\n", name, v); }\n'
        "int main() {\n" + "\n".join(lines) + "\n}\n"
    )


def test_every_value_and_layout_is_theirs(nccl: Path, tmp_path: Path) -> None:
    source = tmp_path / "table.cc"
    source.write_text(table(), encoding="utf-8")
    printed = []
    for name, include in (("ours", OURS), ("theirs", nccl / "include")):
        program = tmp_path / name
        run(*COMPILER, "-std=c++20", "-w", "-I", include, "-o", program, source)
        printed.append(run(program))
    assert printed[0].count("\n") > 80
    assert printed[0] == printed[1]


# ---- programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["arguments", "calls", "groups", "life"])
def test_programs_of_their_header_run_on_it(name: str, nccl: Path, tmp_path: Path) -> None:
    tests = ROOT / "tests/native"
    program = tmp_path / name
    library = nccl_library()
    run(
        *COMPILER, "-std=c++20", "-w", "-I", nccl / "include", "-I", tests, "-o", program,
        tests / "nccl" / f"{name}_test.cc", tests / "check.cc", library, "-pthread",
        f"-Wl,-rpath,{library.parent}",
    )  # fmt: skip
    assert " 0 failed" in run(program)


def test_their_library_and_ours_say_the_same_of_results(nccl: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "texts.cc", tmp_path / "texts"
    source.write_text(
        "#include <nccl.h>\n#include <cstdio>\nint main() {\n"
        "  int version = 0;\n  const int result = ncclGetVersion(&version);\n"
        '  std::printf("%d %d\\n", result, version);\n'
        "  for (int r = 0; r < 8; ++r) std::puts(ncclGetErrorString((ncclResult_t)r));\n}\n",
        encoding="utf-8",
    )
    printed = []
    for library in (nccl_library(), nccl / "lib/libnccl.so.2"):
        run(*COMPILER, "-w", "-I", nccl / "include", "-o", program, source, library,
            f"-Wl,-rpath,{library.parent}")  # fmt: skip
        printed.append(run(program))
    ours, theirs = (text.splitlines() for text in printed)
    assert ours[0] == theirs[0] == "0 23007"
    assert len(ours) == len(theirs) == 9
    for own, other in zip(ours, theirs, strict=True):  # they add how to find out more
        assert other.startswith(own)
