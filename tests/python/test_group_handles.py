# SPDX-License-Identifier: Apache-2.0
"""Handles of calls in groups and structures: each ends, well or with what went wrong."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks


def test_handles_behind_a_call_that_fails_end() -> None:
    def run(comm: cl.Communicator) -> None:
        x = np.ones(4)
        handles = []

        def block() -> None:
            with comm.group():
                handles.append(comm.allreduce(np.ones(3), async_op=True))
                comm.allgather(np.ones(3), algorithm="recursive_doubling")
                handles.append(comm.allreduce(x, async_op=True))
                handles.append(comm.allgather(x, async_op=True))

        with pytest.raises(cl.UnsupportedError, match="not defined for 3 ranks"):
            block()
        np.testing.assert_array_equal(handles[0].wait(10), np.full(3, 3.0))
        for handle in handles[1:]:
            error = handle.exception(10)
            assert isinstance(error, cl.CollectiveError)
            assert "was not made" in str(error)
            assert "not defined for 3 ranks" in str(error)
        np.testing.assert_array_equal(x, np.ones(4))
        np.testing.assert_array_equal(comm.allreduce(x), np.full(4, 3.0))

    on_ranks(3, run)


def test_handles_behind_a_mismatch_end() -> None:
    def run(comm: cl.Communicator) -> None:
        handles = []

        def block() -> None:
            with comm.group():
                comm.allreduce(np.ones(3 + comm.rank))
                handles.append(comm.broadcast(np.ones(3), async_op=True))

        with pytest.raises(cl.MismatchError):
            block()
        assert isinstance(handles[0].exception(10), cl.MismatchError)

    on_ranks(2, run)


def test_handles_of_a_block_that_raises_end() -> None:
    def run(comm: cl.Communicator) -> None:
        handles = []

        def block() -> None:
            with comm.group():
                handles.append(comm.allreduce(np.ones(3), async_op=True))
                handles.append(comm.broadcast([np.ones(3)], async_op=True))
                raise RuntimeError("seven is right out")

        with pytest.raises(RuntimeError):
            block()
        for handle in handles:
            error = handle.exception(10)
            assert isinstance(error, cl.CollectiveError)
            assert "was not made" in str(error)
            assert "seven is right out" in str(error)
        comm.barrier()

    on_ranks(2, run)


def test_waiting_within_the_block_is_refused() -> None:
    def run(comm: cl.Communicator) -> None:
        x, y = np.ones(2), np.ones(3)
        with comm.group():
            handle = comm.allreduce(x, async_op=True)
            tree = comm.allreduce([y], async_op=True)
            for wait in (handle.wait, lambda: handle.wait(8), handle.exception, tree.result):
                with pytest.raises(cl.InvalidArgumentError, match="end of its group"):
                    wait()
            assert not handle.done()
        np.testing.assert_array_equal(handle.wait(10), np.full(2, 2.0))
        np.testing.assert_array_equal(tree.wait(10)[0], np.full(3, 2.0))

    on_ranks(2, run)


def test_awaiting_within_the_block_is_refused() -> None:
    def run(comm: cl.Communicator) -> None:
        async def main() -> None:
            with comm.group():
                handle = comm.allreduce(np.ones(2), async_op=True)
                with pytest.raises(cl.InvalidArgumentError, match="end of its group"):
                    await handle
                other = asyncio.create_task(result_of(handle))
                await asyncio.sleep(0)  # another task of this thread may wait
            np.testing.assert_array_equal(await other, np.full(2, 2.0))

        asyncio.run(main())

    on_ranks(2, run)


async def result_of(handle: Any) -> Any:
    return await handle


def test_another_thread_waits_for_the_end_of_the_block() -> None:
    def run(comm: cl.Communicator) -> None:
        found: list[Any] = []
        with comm.group():
            handle = comm.allreduce(np.ones(2), async_op=True)
            with pytest.raises(cl.InvalidArgumentError):
                handle.wait()
            thread = threading.Thread(target=lambda: found.append(handle.wait(10)))
            thread.start()
            told: list[str] = []
            late = threading.Thread(target=lambda: told.append(message_of(handle)))
            late.start()
            late.join(10)
            assert "not launched" in told[0]
        thread.join(10)
        np.testing.assert_array_equal(found[0], np.full(2, 2.0))

    on_ranks(2, run)


def message_of(handle: Any) -> str:
    try:
        handle.wait(0.01)
    except cl.CollectiveTimeoutError as error:
        return str(error)
    return ""


def test_a_call_between_launches_what_came_before_it() -> None:
    def run(comm: cl.Communicator) -> None:
        with comm.group():
            handle = comm.allreduce(np.ones(2), async_op=True)
            comm.barrier()
            np.testing.assert_array_equal(handle.wait(10), np.full(2, 2.0))

    on_ranks(2, run)


# Python 3.12 warns of a fork beside threads, which is what is shown here.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_told_that_it_waits_in_vain() -> None:
    comms = cl.local(2, timeout=20)
    handle = comms[0].barrier(async_op=True)
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            handle.wait()
        except cl.ClosedError:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    comms[1].barrier()
    handle.wait(10)
    for comm in comms:
        comm.close()
    assert os.waitstatus_to_exitcode(status) == 0


def test_where_no_thread_can_be_started_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    comm = cl.local(1)[0]
    handles: list[Any] = []

    def block() -> None:
        with comm.group():
            handles.append(comm.barrier(async_op=True))
            handles.append(comm.broadcast([np.ones(2)], async_op=True))

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            block()
    for handle in handles:
        assert "can't start" in str(handle.exception(1))
    assert comm.barrier(async_op=True).wait(10) is None
    comm.close()
