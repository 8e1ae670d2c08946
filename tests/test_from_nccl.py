# SPDX-License-Identifier: Apache-2.0
"""docs/from_nccl.md says of every function of libnccl.so.2 what it does, and tells the truth."""

from __future__ import annotations

import ctypes
import re
import shutil
from pathlib import Path

import pytest

from collectives.preloading import nccl_library

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


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The library by another name: this process goes on, and shall not have an NCCL loaded."""
    path = tmp_path_factory.mktemp("nccl") / "own.so"
    shutil.copy(nccl_library(), path)
    return ctypes.CDLL(str(path))


def test_refused_functions_say_so_by_name(library: ctypes.CDLL) -> None:
    library.ncclGetLastError.restype = ctypes.c_char_p
    nothing = [ctypes.c_void_p(0)] * 11
    for name in sorted({row[0] for row in ROWS if row[2] == "refused"}):
        if name == "ncclGroupSimulateEnd":
            library.ncclGroupStart()
        result = getattr(library, name)(*nothing)
        assert result == (0 if name == "ncclLLA2ACalcSlots" else INVALID_USAGE), name
        said: bytes = library.ncclGetLastError(None)
        assert said.decode().startswith(f"{name}() is not supported here: "), said


class Team(ctypes.Structure):
    """Ranks at equal distances."""

    _fields_ = (("ranks", ctypes.c_int), ("rank", ctypes.c_int), ("stride", ctypes.c_int))

    def plain(self) -> tuple[int, int, int]:
        return self.ranks, self.rank, self.stride


def test_teams_are_all_ranks_or_one(library: ctypes.CDLL) -> None:
    comms = (ctypes.c_void_p * 3)()
    assert library.ncclCommInitAll(comms, 3, None) == 0
    last = ctypes.c_void_p(comms[2])
    for name, wanted in (("World", (3, 2, 1)), ("Rail", (3, 2, 1)), ("Lsa", (1, 0, 1))):
        function = getattr(library, f"ncclTeam{name}")
        function.restype = Team
        assert function(last).plain() == wanted
    team = Team(2, 1, 2)  # ranks 0 and 2
    assert library.ncclTeamRankToWorld(last, team, 0) == 0
    assert library.ncclTeamRankToLsa(last, team, 1) == 0
    for comm in comms:
        assert library.ncclCommDestroy(ctypes.c_void_p(comm)) == 0


def test_nothing_is_said_to_have_run_on_a_gpu() -> None:
    assert {row[4] for row in ROWS} == {"no"}


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
