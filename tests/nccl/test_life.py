# SPDX-License-Identifier: Apache-2.0
"""Communicators: how they begin, wait, come from one another and end; groups."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import time
import weakref
from typing import Any

import numpy as np
import pytest

from collectives import nccl
from collectives.errors import ClosedError, CollectiveTimeoutError, InvalidArgumentError
from tests.nccl.standin import Standin, build

X = np.ones(3)
WITHOUT_BLOCKING = nccl.Config(blocking=False)


def test_a_unique_id_travels_by_value(standin: Standin) -> None:
    uid = nccl.unique_id()
    assert uid == bytes(i * 7 % 256 for i in range(128))
    signed = tuple(one - 256 if one > 127 else one for one in uid)  # as CuPy writes it
    for form in (uid, bytearray(uid), list(uid), signed, np.frombuffer(uid, np.uint8)):
        with nccl.init_rank(5, form, 3) as comm:
            assert (comm.rank, comm.size, comm.device, comm.closed) == (3, 5, 0, False)
        assert standin.log()[0] == "ncclCommInitRank 5 3 id 7 121"


@pytest.mark.parametrize("ids", [b"short", [1, 2], None, ["x"] * 128])
def test_what_is_no_unique_id_is_refused(standin: Standin, ids: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a unique id has 128 bytes"):
        nccl.init_rank(1, ids, 0)


def test_several_ids(standin: Standin) -> None:
    ids = [bytes(128), bytes(127) + b"\x05"]
    with nccl.init_rank(4, ids, 2, config=nccl.Config(min_ctas=1)) as comm:
        assert comm.size == 4
    assert standin.log()[:2] == [
        "ncclCommInitRankScalable 4 2 ids 2 last 5", "config 96 cafebeef 23007"
    ]  # fmt: skip


@pytest.mark.parametrize(("size", "rank"), [(0, 0), (2, 2), (2, -1), (2.0, 0), (2, None)])
def test_ranks_that_are_refused(standin: Standin, size: Any, rank: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="give 0 to size - 1"):
        nccl.init_rank(size, bytes(128), rank)


def test_all_gpus_of_a_process(standin: Standin) -> None:
    comms = nccl.init_all(2)
    assert [(one.rank, one.size, one.device) for one in comms] == [(0, 2, 0), (1, 2, 1)]
    others = nccl.init_all([5, 3])
    assert [one.device for one in others] == [5, 3]
    for one in comms + others:
        one.close()
    for wrong in (0, [], [-1], ["0"], True):
        with pytest.raises(InvalidArgumentError, match="give how many GPUs, or which"):
            nccl.init_all(wrong)  # type: ignore[arg-type]
    standin.fail("ncclCommInitAll", 1, "no driver")
    with pytest.raises(nccl.NcclCudaError, match="no driver"):
        nccl.init_all(1)


def test_an_error_of_the_start_is_raised(standin: Standin) -> None:
    standin.fail("ncclCommInitRank", 5, "one GPU twice")
    with pytest.raises(nccl.NcclInvalidUsageError, match="one GPU twice"):
        nccl.init_rank(1, nccl.unique_id(), 0)


def test_the_end_of_a_block_closes_and_an_exception_aborts(standin: Standin) -> None:
    with nccl.init_rank(1, nccl.unique_id(), 0) as comm:
        pass
    assert comm.closed
    assert standin.log()[-1] == "ncclCommDestroy 0"
    comm.close()
    comm.abort()
    with pytest.raises(KeyError), nccl.init_rank(1, nccl.unique_id(), 0):
        raise KeyError
    assert standin.log()[-1] == "ncclCommAbort 0"
    for call in (lambda: comm.allreduce(X), lambda: comm.handle):
        with pytest.raises(ClosedError, match="is closed"):
            call()


def test_split(standin: Standin, third: nccl.Communicator) -> None:
    child = third.split(1, 5, nccl.Config(comm_name="row"))
    assert child is not None
    with child:
        assert (child.rank, child.size) == (2, 4)
    assert third.split(None) is None
    assert standin.log() == [
        "ncclCommSplit 1 5", "config 96 cafebeef 23007", "commName row", "ncclCommDestroy 2",
        "ncclCommSplit -1 0",
    ]  # fmt: skip
    for color in (-1, "red", 1.5):
        with pytest.raises(InvalidArgumentError, match="split: color is"):
            third.split(color)  # type: ignore[arg-type]


def test_shrink(standin: Standin, third: nccl.Communicator) -> None:
    with third.shrink([1, 3]) as left, third.shrink(iter([1]), abort=True) as more:
        assert (left.size, more.size) == (2, 3)
    assert standin.log()[:2] == [
        "ncclCommShrink 2 first 1 flags 0", "ncclCommShrink 1 first 1 flags 1"
    ]  # fmt: skip
    for wrong in ([], [4], ["a"], [2]):
        with pytest.raises(InvalidArgumentError, match="shrink: exclude is"):
            third.shrink(wrong)  # type: ignore[arg-type]


def test_what_later_versions_do_with_a_communicator(
    standin: Standin, third: nccl.Communicator
) -> None:
    third.suspend()
    third.resume()
    third.revoke()
    third.finalize()
    assert standin.log() == [
        "ncclCommSuspend 1", "ncclCommResume", "ncclCommRevoke 0", "ncclCommFinalize"
    ]  # fmt: skip
    assert third.memory() == {"suspend": 1000, "suspended": 1001, "persist": 1002, "total": 1003}


# ---- without blocking ----------------------------------------------------------------------------


def test_what_is_in_progress_is_waited_for_by_the_next_call(standin: Standin) -> None:
    standin.progress(3)
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    assert comm.in_progress  # two polls are left
    comm.allreduce(X)
    assert comm.in_progress
    comm.wait()
    assert not comm.in_progress
    assert comm.async_error() is None
    comm.close()
    assert standin.log()[-3:-1] == [standin_line(X), "ncclCommFinalize"]


def standin_line(x: Any) -> str:
    at = x.ctypes.data
    return f"ncclAllReduce {at:#x} {at:#x} 3 dtype 8 op 0 root -1 rank 0 stream 0"


def test_waiting_has_a_time_out(standin: Standin) -> None:
    standin.progress(1 << 30)
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    begin = time.monotonic()
    with pytest.raises(
        CollectiveTimeoutError, match=r"ncclCommInitRankConfig is still in progress after 0.05 s"
    ):
        comm.wait(0.05)
    assert 0.04 < time.monotonic() - begin < 5
    assert not comm.closed
    with pytest.raises(InvalidArgumentError, match="wait: timeout is -1"):
        comm.wait(-1)
    comm.abort()
    standin.log()
    standin.progress(1 << 30)
    released = standin.released
    with pytest.raises(CollectiveTimeoutError, match=r"not all 2 ranks have come within 0.05 s"):
        nccl.init_rank(2, nccl.unique_id(), 0, timeout=0.05)
    assert standin.released == released + 1


def test_a_time_out_makes_it_without_blocking(standin: Standin) -> None:
    standin.progress(2)
    with nccl.init_rank(2, nccl.unique_id(), 0, timeout=20) as comm:
        assert not comm.blocking
        assert not comm.in_progress
        assert comm.timeout == 20
        child = comm.split(0)
        assert child is not None
        with child:
            assert child.timeout == 20
            assert not child.blocking
    assert "number 0 0" in standin.log()
    with pytest.raises(InvalidArgumentError, match="a timeout needs Config"):
        nccl.init_rank(1, nccl.unique_id(), 0, timeout=1, config=nccl.Config(blocking=True))


def test_what_fails_later_is_told(standin: Standin) -> None:
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    standin.progress(2)
    comm.allreduce(X)
    standin.async_error(comm.handle, 6)
    with pytest.raises(nccl.NcclRemoteError, match="ncclAllReduce: failed"):
        comm.wait()
    found = comm.async_error()
    assert isinstance(found, nccl.NcclRemoteError)
    comm.abort()


# ---- groups --------------------------------------------------------------------------------------


def test_calls_of_a_group(standin: Standin) -> None:
    comms = nccl.init_all(2)
    standin.log()
    with nccl.group():
        for one in comms:
            one.allreduce(X)
        with nccl.group():
            comms[0].send(X, 1)
    log = [said.split()[0] for said in standin.log()]
    assert log == ["ncclGroupStart", "ncclAllReduce", "ncclAllReduce", "ncclGroupStart", "ncclSend",
                   "ncclGroupEnd", "ncclGroupEnd"]  # fmt: skip
    for one in comms:
        one.close()


def test_arrays_live_until_the_group_ends(standin: Standin, third: nccl.Communicator) -> None:
    x = np.zeros(4)
    seen = weakref.ref(x)
    with nccl.group():
        third.allreduce(x)
        del x
        gc.collect()
        assert seen() is not None
    gc.collect()
    assert seen() is None


def test_communicators_of_a_group_are_there_when_it_ends(standin: Standin) -> None:
    uid = nccl.unique_id()
    with nccl.group():
        comms = [nccl.init_rank(2, uid, rank) for rank in range(2)]
        assert all(one.closed for one in comms)
        with pytest.raises(ClosedError, match="when the group ends"):
            comms[0].allreduce(X)
    assert [one.rank for one in comms] == [0, 1]
    assert not any(one.closed for one in comms)
    for one in comms:
        one.close()
    standin.fail("ncclGroupEnd", 2, "no network")
    with pytest.raises(nccl.NcclSystemError, match=r"ncclGroupEnd: .*no network"), nccl.group():
        comms = [nccl.init_rank(2, uid, rank) for rank in range(2)]
    assert all(one.closed for one in comms)


def test_a_child_waits_as_its_parent_does(standin: Standin) -> None:
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    standin.log()
    for config, blocking in ((None, False), (nccl.Config(min_ctas=1), False),
                             (nccl.Config(blocking=True), True)):  # fmt: skip
        child = comm.split(0, config=config)
        assert child is not None
        assert child.blocking is blocking
        assert ("number 0 0" in standin.log()) is (config is not None and not blocking)
        child.close()
    comm.close()


def test_a_child_is_there_when_its_parent_is_done(standin: Standin) -> None:
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    standin.progress(2)
    child = comm.split(0)
    assert child is not None
    assert child.closed  # not there yet
    assert comm.in_progress
    child.allreduce(X)  # waits for the parent
    assert not comm.in_progress
    child.close()
    unused = comm.split(0)
    assert unused is not None
    comm.wait()
    assert not unused.closed
    unused.abort()
    comm.close()


def test_one_that_cannot_be_finalised_is_aborted(standin: Standin) -> None:
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    standin.async_error(comm.handle, 6)
    with pytest.raises(nccl.NcclRemoteError):
        comm.close()
    assert comm.closed
    assert standin.log()[-2:] == ["ncclCommFinalize", "ncclCommAbort 0"]


def test_ranks_that_meet_in_a_group_are_waited_for(standin: Standin) -> None:
    standin.progress(2)
    with nccl.group():
        comms = [nccl.init_rank(2, nccl.unique_id(), rank, timeout=9) for rank in range(2)]
    for one in comms:
        assert not one.busy
        assert not one.in_progress
        one.allreduce(X)
        assert not one.in_progress
        with nccl.group():
            one.allreduce(X)
        assert not one.in_progress
        one.close()


def test_a_group_without_blocking_is_waited_for(standin: Standin) -> None:
    comm = nccl.init_rank(2, nccl.unique_id(), 0, config=WITHOUT_BLOCKING)
    standin.progress(2)
    with nccl.group():
        comm.allreduce(X)
    assert comm.busy
    comm.wait()
    assert not comm.busy
    comm.close()


def test_a_block_that_raises_ends_its_group(standin: Standin, third: nccl.Communicator) -> None:
    def block() -> None:
        with nccl.group():
            third.allreduce(X)
            raise KeyError

    with pytest.raises(KeyError):
        block()
    third.allreduce(X)
    assert [said.split()[0] for said in standin.log()] == [
        "ncclGroupStart", "ncclAllReduce", "ncclGroupEnd", "ncclAllReduce"
    ]  # fmt: skip


def test_simulation(standin: Standin, third: nccl.Communicator) -> None:
    with nccl.simulate() as estimate:
        third.allreduce(X)
    assert estimate.seconds == pytest.approx(12.5e-6)
    with nccl.simulate() as estimate:
        assert math.isnan(estimate.seconds)
    assert standin.log()[-2:] == ["ncclGroupSimulateEnd", "simulation 24 74685283 23007"]


# ---- the end of the program ----------------------------------------------------------------------


@pytest.mark.processes
def test_what_is_left_open_is_aborted_at_the_end(tmp_path: Any) -> None:
    library = build(tmp_path / "libnccl.so.2")
    program = (
        "import ctypes, atexit\n"
        f"c = ctypes.CDLL({str(library)!r})\n"
        "c.standin_log.restype = ctypes.c_char_p\n"
        "atexit.register(lambda: print(c.standin_log().decode()))\n"
        "from collectives import nccl\n"
        "comm = nccl.init_rank(1, nccl.unique_id(), 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"COLLECTIVES_NCCL": str(library)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split("\n")[-3:-1] == ["ncclCommAbort 0", ""], done.stderr


def test_one_that_is_not_closed_is_told_of(standin: Standin) -> None:
    comm = nccl.init_rank(1, nccl.unique_id(), 0)
    again = nccl.init_rank(1, nccl.unique_id(), 0)
    with pytest.warns(ResourceWarning, match="was not closed"):
        comm.__del__()
    comm.close()
    with pytest.raises(TypeError, match="cannot be copied"):
        __import__("copy").copy(again)
    again.close()
