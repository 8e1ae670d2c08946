# SPDX-License-Identifier: Apache-2.0
"""docs/from_nccl.md says of every function of libnccl.so.2 what it does, and tells the truth."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/from_nccl.md").read_text(encoding="utf-8")
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "native/nccl").glob("*.cc"))
)
INVALID_USAGE = 5
ROWS = re.findall(r"^\| `(nccl\w+)` \| ([\d.]+) \| (\w+) \| (\S+) \| (\w+) \|", PAGE, re.MULTILINE)


def shown() -> list[str]:
    """Return the names of functions.txt, which the build reads."""
    text = (ROOT / "native/nccl/functions.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith("nccl")]


def test_every_function_has_one_row() -> None:
    assert sorted(row[0] for row in ROWS) == sorted(shown())


def test_what_is_defined_is_shown() -> None:
    defined = re.findall(r"^(?:ncclResult_t|ncclTeam_t|const char\*|int|void) (nccl[A-Z]\w+)\(",
                         SOURCES, re.MULTILINE)  # fmt: skip
    assert sorted(defined) == sorted(shown())


def test_what_the_page_calls_refused_refuses() -> None:
    refusing = set(re.findall(r'refused\(\s*"(nccl\w+)"', SOURCES))
    assert {row[0] for row in ROWS if row[2] == "refused"} == refusing


# Run by themselves: a process has one libnccl, and other tests have others.
REFUSED = """
import ctypes, sys
from collectives.preloading import nccl_library
library = ctypes.CDLL(str(nccl_library()))
library.ncclGetLastError.restype = ctypes.c_char_p
for name in sys.argv[1:]:
    result = getattr(library, name)(*[ctypes.c_void_p(0)] * 11)
    print(name, result, library.ncclGetLastError(None).decode())
"""

TEAMS = """
import ctypes
from collectives.preloading import nccl_library
class Team(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("ranks", "rank", "stride")]
library = ctypes.CDLL(str(nccl_library()))
comms = (ctypes.c_void_p * 3)()
assert library.ncclCommInitAll(comms, 3, None) == 0
last = ctypes.c_void_p(comms[2])
for name in ("World", "Rail", "Lsa"):
    function = getattr(library, f"ncclTeam{name}")
    function.restype = Team
    team = function(last)
    print(name, team.ranks, team.rank, team.stride)
team = Team(2, 1, 2)  # ranks 0 and 2
print(library.ncclTeamRankToWorld(last, team, 0), library.ncclTeamRankToLsa(last, team, 1))
"""


def printed(program: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_refused_functions_say_so_by_name() -> None:
    refused = sorted({row[0] for row in ROWS if row[2] == "refused"})
    for name, line in zip(refused, printed(REFUSED, *refused), strict=True):
        result = 0 if name == "ncclLLA2ACalcSlots" else INVALID_USAGE
        assert line.startswith(f"{name} {result} {name}() is not supported here: ")


def test_teams_are_all_ranks_or_one() -> None:
    assert printed(TEAMS) == ["World 3 2 1", "Rail 3 2 1", "Lsa 1 0 1", "0 0"]


# What the programs of tests/gpu/rank_programs.py call through torch and CuPy, on an H100.
ON_A_GPU = {
    "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommDestroy",
    "ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclSend", "ncclRecv",
    "ncclGroupStart", "ncclGroupEnd",
}  # fmt: skip


def test_what_has_run_on_a_gpu_is_told_and_nothing_else() -> None:
    assert {row[0] for row in ROWS if row[4] == "yes"} == ON_A_GPU
    assert {row[4] for row in ROWS} == {"yes", "no"}


# What the CUDA builds of these link against: one that is missing, and their import fails.
TORCH = """
AllGather AllReduce AlltoAll Bcast Broadcast CommAbort CommCount CommDeregister CommDestroy
CommFinalize CommGetAsyncError CommInitAll CommInitRank CommInitRankConfig CommInitRankScalable
CommRegister CommShrink CommSplit CommUserRank CommWindowDeregister CommWindowRegister
DevCommCreate DevCommDestroy GetErrorString GetLastError GetUniqueId GetVersion GroupEnd
GroupSimulateEnd GroupStart MemAlloc MemFree Recv RedOpCreatePreMulSum RedOpDestroy Reduce
ReduceScatter Send CommMemStats CommResume CommSuspend GetLsaMultimemDevicePointer
GetPeerDevicePointer PutSignal Signal WaitSignal
"""  # 2.11 and 2.13
CUPY = """
GetVersion GetUniqueId GetErrorString CommInitAll CommInitRankConfig CommSplit CommDestroy
CommAbort CommCount CommCuDevice CommUserRank CommGetAsyncError AllReduce Reduce Broadcast Bcast
ReduceScatter AllGather Send Recv GroupStart GroupEnd
"""  # 14.2


def test_what_torch_and_cupy_link_against_is_there() -> None:
    wanted = {f"nccl{name}" for name in (TORCH + CUPY).split()}
    assert wanted - set(shown()) == set()
