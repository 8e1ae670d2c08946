# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own library and header, as far as they go without a driver; of each wheel that is there.

scripts/nccl_wheels.sh fetches them into build/nccl: 2.30.7, or other versions that it is told.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collectives.nccl.config import FIELDS, size_for
from collectives.nccl.constants import ALL
from collectives.nccl.declarations import _BY_VERSION, SINCE, ffi
from collectives.nccl.versions import Version
from tests.nccl import header as headers

WHEELS = Path(__file__).resolve().parents[2] / "build/nccl"
VERSIONS = sorted(
    (path.name for path in WHEELS.glob("2.*")), key=lambda name: Version.of_text(name)
)
PINNED = "2.30.7"

pytestmark = [
    pytest.mark.extras,
    pytest.mark.skipif(not VERSIONS, reason="no wheel of NCCL is there: scripts/nccl_wheels.sh"),
]
each = pytest.mark.parametrize("version", VERSIONS or [PINNED])


def folder(version: str) -> Path:
    return WHEELS / version / "nvidia/nccl"


def read_header(version: str) -> str:
    return (folder(version) / "include/nccl.h").read_text(encoding="utf-8")


def told(version: str, program: str, *, named: bool = True) -> Any:
    """Return what a program prints as JSON, in a process of its own: one has one libnccl."""
    variables = {"NCCL_DEBUG": "NONE"}
    if named:
        variables["COLLECTIVES_NCCL"] = str(folder(version) / "lib")
    else:
        variables["PYTHONPATH"] = str(WHEELS / version)
    done = subprocess.run(
        [sys.executable, "-c", f"import json\nfrom collectives import nccl\n{program}"],
        env={name: text for name, text in os.environ.items() if name != "COLLECTIVES_NCCL"}
        | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_pinned_one_is_among_them() -> None:
    assert PINNED in VERSIONS


@each
def test_the_library_tells_its_version_and_has_its_functions(version: str) -> None:
    found = told(
        version,
        "lib = nccl.load()\n"
        "print(json.dumps([str(lib.version), lib.capabilities(), lib.host_arrays]))",
    )
    assert found[0] == version
    here = Version.of_text(version)
    assert found[1] == {name: since <= here for name, since in SINCE.items()}
    assert found[2] is False


@each
def test_what_is_not_declared_is_the_device_api(version: str) -> None:
    """And functions that print, or set the encryption of a job."""
    library = folder(version) / "lib/libnccl.so.2"
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True
    )
    exported = {line.split()[-1] for line in listed.stdout.splitlines()}
    public = {name for name in exported if re.match("nccl[A-Z]", name)}
    assert {"ncclAllReduce", "ncclCommSplit"} <= public
    device = r"(Get\w*(DevicePointer|LeInfo)|(DevComm|Team|Gin|Lsa|LLA2A)\w+|CommQueryProperties)"
    prints = r"(ResetDebugInit(Internal)?|ParamDumpAll|SetEncryption)"
    left = [one for one in public - set(SINCE) if not re.fullmatch(f"nccl({device}|{prints})", one)]
    assert left == []


@each
def test_ids_and_errors_without_a_driver(version: str) -> None:
    found = told(
        version,
        "uid = nccl.unique_id()\n"
        "lib = nccl.load()\n"
        "said = [str(lib.error('f', code)) for code in range(1, 9)]\n"
        "try:\n"
        "    nccl.init_rank(1, uid, 0)\n"
        "except nccl.NcclError as error:\n"
        "    print(json.dumps([len(uid), said, error.code, error.last]))",
    )
    assert found[0] == 128
    assert "unhandled cuda error" in found[1][0]
    assert "invalid argument" in found[1][3]
    assert len(set(found[1])) == 8
    assert found[2] == 1  # ncclUnhandledCudaError
    assert "driver" in found[3]


def test_the_package_is_found_by_itself() -> None:
    found = told(
        PINNED,
        "lib = nccl.load()\nprint(json.dumps([lib.path, lib.how]))",
        named=False,
    )
    assert found == [str(folder(PINNED) / "lib/libnccl.so.2"), "the PyPI package of NCCL"]


@each
def test_signatures_are_those_of_the_header(version: str) -> None:
    there = headers.prototypes(read_header(version))
    here = Version.of_text(version)
    declared = {
        name: headers.kinds(types)
        for functions in _BY_VERSION.values()
        for name, types in functions.items()
        if SINCE[name] <= here
    }
    assert {name: there.get(name) for name in declared} == declared
    left = set(there) - set(SINCE)
    assert left <= {"ncclSetEncryption"}


@each
def test_numbers_are_those_of_the_header(version: str) -> None:
    there = headers.numbers(read_header(version))
    known = {name: value for name, value in ALL.items() if name in there}
    assert {name: there[name] for name in known} == known
    assert {"ncclAvg", "ncclBfloat16", "ncclRemoteError", "ncclScalarDevice"} <= set(known)
    if version == PINNED:  # INT_MIN is no plain number
        assert set(ALL) - set(there) == {"NCCL_CONFIG_UNDEF_INT"}


@each
def test_structs_are_laid_out_as_in_the_header(version: str, tmp_path: Path) -> None:
    here = Version.of_text(version)
    known = [field.c_name for field in FIELDS if Version.of_text(field.since) <= here]
    structs = {"ncclConfig_t": ["size", "magic", "version", *known], "ncclUniqueId": ["internal"]}
    for name, since in (
        ("ncclSimInfo_t", "2.22"), ("ncclWaitSignalDesc_t", "2.29"), ("ncclCollConfig_t", "2.31")
    ):  # fmt: skip
        if Version.of_text(since) <= here:
            structs[name] = [field for field, _ in ffi.typeof(name).fields]
    if here < Version(2, 32) and "ncclCollConfig_t" in structs:
        structs["ncclCollConfig_t"].remove("launchCompletionEvent")
    found = headers.layout(folder(version) / "include/nccl.h", structs, tmp_path)
    for struct, fields in structs.items():
        ours = dict(ffi.typeof(struct).fields)
        for field in fields:
            assert found[struct][field] == ours[field].offset, f"{struct}.{field}"
    assert found["ncclConfig_t"][""] == size_for(ffi, here)
    assert found["ncclUniqueId"][""] == 128
    if "ncclSimInfo_t" in structs:
        assert found["ncclSimInfo_t"][""] == ffi.sizeof("ncclSimInfo_t")
