# SPDX-License-Identifier: Apache-2.0
"""Versions, what they have, and how errors are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collectives import errors, nccl
from collectives.nccl import raw
from collectives.nccl.declarations import SINCE
from collectives.nccl.versions import Version
from tests.nccl.standin import Standin


@pytest.mark.parametrize(
    ("code", "version"),
    [(2708, "2.7.8"), (21803, "2.18.3"), (22809, "2.28.9"), (23007, "2.30.7"), (23203, "2.32.3")],
)
def test_versions_are_read_and_compared(code: int, version: str) -> None:
    found = Version.of_code(code)
    assert str(found) == version
    assert Version.of_text(version) == found
    assert found.code == code
    assert Version.of_text("2.9") < Version.of_text("2.28") < Version.of_text("2.28.7")
    with pytest.raises(errors.InvalidArgumentError, match="no version"):
        Version.of_text("2")


@pytest.mark.parametrize("text", ["2.18.3", "2.23.4", "2.28.9"])
def test_a_version_has_the_functions_of_its_time(text: str, tmp_path: Path) -> None:
    version = Version.of_text(text)
    library = Standin(tmp_path / "libold.so", version).library
    assert library.version == version
    # The calls with a configuration, and the listing of parameters, no stand-in has.
    had = {name for name, there in library.capabilities().items() if there}
    assert had == {name for name, since in SINCE.items() if since <= version}


@pytest.mark.usefixtures("nothing_loaded")
def test_what_a_version_lacks_is_told_with_the_one_that_has_it(tmp_path: Path) -> None:
    library = Standin(tmp_path / "libold.so", Version(2, 27, 7)).library
    with nccl.init_rank(1, bytes(128), 0, library=library) as comm:
        with pytest.raises(
            errors.UnsupportedError, match=r"ncclAlltoAll came with NCCL 2.28.0, and .* is 2.27.7"
        ):
            comm.alltoall(np.zeros(2), np.zeros(2))
        x = np.ones(2)
        assert comm.allreduce(x) is x
    assert not library.has("ncclGather")
    with pytest.raises(errors.InvalidArgumentError, match="no function of NCCL"):
        library.function("ncclSomething")
    with (
        pytest.raises(errors.UnsupportedError, match="GroupSimulateEnd"),
        nccl.simulate(Standin(tmp_path / "libolder.so", Version(2, 21, 5)).library),
    ):
        pass


def test_too_old_a_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.UnsupportedError, match=r"is NCCL 2.17.1, and 2.18.0 is needed"):
        Standin(tmp_path / "libold.so", Version(2, 18), host_arrays=False, told=Version(2, 17, 1))


@pytest.mark.usefixtures("nothing_loaded")
def test_arrays_of_the_host_need_a_library_that_takes_them(tmp_path: Path) -> None:
    library = Standin(tmp_path / "libgpu.so", host_arrays=False).library
    assert not library.host_arrays
    with (
        nccl.init_rank(1, bytes(128), 0, library=library) as comm,
        pytest.raises(errors.UnsupportedError, match="allreduce: x is in memory of the host"),
    ):
        comm.allreduce(np.ones(1))
    assert nccl.Library(library.path, host_arrays=True).host_arrays
    folder = tmp_path / "collectives/nccl_library"
    folder.mkdir(parents=True)
    assert Standin(folder / "libown.so", host_arrays=False).library.host_arrays


@pytest.mark.parametrize(
    ("code", "kind", "also"),
    [
        (1, nccl.NcclCudaError, errors.CollectiveError),
        (2, nccl.NcclSystemError, OSError),
        (3, nccl.NcclInternalError, RuntimeError),
        (4, nccl.NcclInvalidArgumentError, ValueError),
        (5, nccl.NcclInvalidUsageError, RuntimeError),
        (6, nccl.NcclRemoteError, errors.PeerLostError),
        (8, nccl.NcclTimeoutError, TimeoutError),
        (99, nccl.NcclError, RuntimeError),
    ],
)
def test_results_become_exceptions(
    standin: Standin, comm: nccl.Communicator, code: int, kind: type, also: type
) -> None:
    standin.fail("ncclAllReduce", code, "peer 3 has a cold")
    with pytest.raises(kind) as caught:
        comm.allreduce(np.ones(1))
    error = caught.value
    assert isinstance(error, also)
    assert isinstance(error, nccl.NcclError)
    assert (error.code, error.function, error.last) == (code, "ncclAllReduce", "peer 3 has a cold")
    assert str(error).startswith("ncclAllReduce: ")
    assert str(error).endswith(f"{code}): peer 3 has a cold")
    assert error.name in str(error)


def test_raw_functions_take_integers_and_return_results(standin: Standin) -> None:
    cell, x = raw.ffi.new("uintptr_t *"), np.arange(3.0, dtype="float32")
    uid = raw.ffi.new("ncclUniqueId *")
    raw.check(raw.ncclGetUniqueId(uid), "ncclGetUniqueId")
    raw.check(raw.ncclCommInitRank(cell, 1, uid[0], 0), "ncclCommInitRank")
    out = np.zeros_like(x)
    arrays = (x.ctypes.data, out.ctypes.data, 3, raw.ncclFloat32, raw.ncclSum)
    assert raw.ncclAllReduce(*arrays, cell[0], 0) == raw.ncclSuccess
    assert out.tolist() == [0, 1, 2]
    with pytest.raises(nccl.NcclInvalidArgumentError, match=r"ncclAllReduce: invalid argument"):
        raw.check(raw.ncclAllReduce(0, 0, 1, 77, 0, cell[0], 0), "ncclAllReduce", cell[0])
    assert raw.ncclCommDestroy(cell[0]) == 0
    assert {"ncclAllReduce", "ncclFloat32", "NCCL_WIN_DEFAULT", "check"} <= set(dir(raw))
    with pytest.raises(AttributeError, match="ncclNothing"):
        raw.ncclNothing  # noqa: B018  it is asked for, no more
