# SPDX-License-Identifier: Apache-2.0
"""Persistent calls: made once, begun often, among other calls; what ends them and what they say."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collectives as cl
from tests.python.ranks import on_ranks

P = 3
TOTAL = P * (P + 1) / 2

Make = Callable[[cl.Communicator], tuple[Any, Any]]  # the call, and what it must return


def ones(comm: cl.Communicator, n: int) -> Any:
    return np.full(n, comm.rank + 1.0)


def own_part(comm: cl.Communicator) -> tuple[Any, Any]:
    x, counts = ones(comm, 6), [1, 2, 3]
    made = comm.persistent.reduce_scatterv(x, counts)
    return made, np.full(counts[comm.rank], TOTAL)


def asked_lengths(comm: cl.Communicator) -> tuple[Any, Any]:
    made = comm.persistent.allgatherv(np.full(comm.rank, comm.rank))
    return made, np.repeat(np.arange(P), range(P))


CALLS: dict[str, Make] = {
    "allreduce": lambda c: (
        c.persistent.allreduce(ones(c, 40), np.empty(40)), np.full(40, TOTAL)
    ),
    "allreduce, large": lambda c: (
        c.persistent.allreduce(ones(c, 1 << 18), np.empty(1 << 18)), np.full(1 << 18, TOTAL)
    ),
    "read-only": lambda c: (
        c.persistent.allreduce(np.broadcast_to(1.0, (1,)), op="max"), np.ones(1)
    ),
    "reduce_scatter": lambda c: (c.persistent.reduce_scatter(ones(c, P)), np.full(1, TOTAL)),
    "reduce_scatterv": own_part,
    "allgather": lambda c: (c.persistent.allgather(np.full(1, c.rank)), np.arange(P)),
    "allgatherv": asked_lengths,
    "broadcast": lambda c: (c.persistent.broadcast(np.full(3, c.rank), 2), np.full(3, 2)),
    "alltoall": lambda c: (
        c.persistent.alltoall(np.full(P, c.rank), np.empty(P, int)), np.arange(P)
    ),
    "scan": lambda c: (c.persistent.scan(np.ones(2), np.empty(2)), np.full(2, c.rank + 1.0)),
    "barrier": lambda c: (c.persistent.barrier(), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_every_collective_can_be_persistent(name: str) -> None:
    def run(comm: cl.Communicator) -> None:
        call, wanted = CALLS[name](comm)
        assert isinstance(call, cl.PersistentCall)
        for turn in range(20):
            if turn % 2:
                call.start()
                result = call.wait()
            else:
                result = call()
            np.testing.assert_array_equal(result, wanted)
            if result is not None and name != "broadcast":
                result[...] = -1
            comm.barrier()

    on_ranks(P, run)


def test_it_sees_what_its_array_holds_when_it_is_begun() -> None:
    def run(comm: cl.Communicator) -> None:
        x, out = np.empty(5, np.float32), np.empty(5, np.float32)
        call = comm.persistent.allreduce(x, out)
        for turn in range(30):
            x[:] = turn + comm.rank
            assert call() is out
            np.testing.assert_array_equal(out, np.full(5, P * turn + P * (P - 1) / 2))

    on_ranks(P, run)


def test_one_rank_may_make_it_persistent_and_another_not() -> None:
    def run(comm: cl.Communicator) -> None:
        x, out = np.ones(7), np.empty(7)
        call = comm.persistent.allreduce(x, out) if comm.rank == 1 else None
        for _ in range(20):
            result = comm.allreduce(x, out) if call is None else call()
            np.testing.assert_array_equal(result, np.full(7, P))

    on_ranks(P, run)


def test_another_call_first_ends_the_one_that_was_started() -> None:
    def run(comm: cl.Communicator) -> None:
        first = comm.persistent.allreduce(np.full(1 << 16, 1.0), np.empty(1 << 16))
        second = comm.persistent.allreduce(np.full(3, 2.0), np.empty(3))
        for _ in range(10):
            first.start()
            second.start()
            np.testing.assert_array_equal(comm.allreduce(np.ones(2)), np.full(2, P))
            assert first.wait()[0] == P
            assert second.wait()[0] == 2 * P

    on_ranks(P, run)


def test_it_keeps_its_place_among_calls_in_flight_and_in_groups() -> None:
    def run(comm: cl.Communicator) -> None:
        x, out = np.ones(4), np.empty(4)
        call = comm.persistent.allreduce(x, out)
        with comm.group():
            early = comm.allreduce(np.ones(2))
            np.testing.assert_array_equal(call(), np.full(4, P))
            np.testing.assert_array_equal(early, np.full(2, P))
        pending = comm.allreduce(np.full(1 << 16, 1.0), async_op=True)
        np.testing.assert_array_equal(call(), np.full(4, P))
        assert pending.done()
        call.start()
        assert call.wait()[0] == P

    on_ranks(P, run)


def test_calls_that_differ_are_told_of() -> None:
    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(4 + comm.rank))
        with pytest.raises(cl.MismatchError, match="allreduce of 4 float64"):
            call()
        with pytest.raises(cl.CollectiveError):
            call()

    on_ranks(2, run)


def test_a_closed_communicator_ends_its_persistent_calls() -> None:
    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(4))
        assert call()[0] == 2
        comm.barrier()
        comm.close()
        for use in (call, call.start):
            with pytest.raises(cl.ClosedError, match="allreduce"):
                use()
        assert "freed" in repr(call)

    on_ranks(2, run)


def repeat(call: cl.PersistentCall) -> None:
    for _ in range(3):
        call()


def test_closing_during_one_that_was_started_gives_no_result_and_tells_the_others() -> None:
    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(4))
        comm.barrier()
        if comm.rank == 0:
            call.start()
            comm.close()
            for _ in range(2):
                with pytest.raises(cl.ClosedError, match="allreduce"):
                    call.wait()
            for use in (call, call.start, comm.barrier):
                with pytest.raises(cl.ClosedError):
                    use()
            return
        with pytest.raises(cl.CollectiveError):
            repeat(call)  # the first may still come through

    on_ranks(2, run)


def test_an_error_that_another_call_met_first_is_raised_again() -> None:
    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(4), timeout=0.1)
        if comm.rank == 1:
            assert told.wait(20)
            return
        call.start()
        with pytest.raises(cl.CollectiveTimeoutError):
            comm.barrier()  # which ends the call before
        with pytest.raises(cl.CollectiveTimeoutError):
            call.wait()
        told.set()

    told = threading.Event()
    on_ranks(2, run)


def test_a_cycle_of_a_communicator_and_its_calls_is_collected() -> None:
    """In whatever order garbage is: what belongs to both is freed once."""

    class Holder:
        pass

    for _ in range(3):
        one: Any = Holder()
        one.me, (one.comm,) = one, cl.local(1)
        one.calls = [one.comm.persistent.allreduce(np.ones(4)) for _ in range(50)]
        for call in one.calls:
            call()
        handle = weakref.ref(one.comm._handle)
        del one, call
        gc.collect()
        assert handle() is None


def test_persistent_calls_make_no_group_of_their_own() -> None:
    def run(comm: cl.Communicator) -> None:
        persistent = comm.persistent
        with pytest.raises(cl.InvalidArgumentError, match=r"with comm\.group\(\)"):
            persistent.group()
        call = persistent.allreduce(np.ones(2))
        with comm.group():
            call()
            comm.allreduce(np.ones(2))
        assert call.wait()[0] == 2

    on_ranks(2, run)


def test_calls_that_outlive_their_communicator_are_refused() -> None:
    (comm,) = cl.local(1)
    call = comm.persistent.allreduce(np.ones(4))
    handle = call._handle
    comm.close()
    assert not handle._prepared
    call.free()
    call.free()
    for use in (call, call.start):
        with pytest.raises(cl.ClosedError):
            use()


def test_one_in_progress_is_not_freed() -> None:
    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(4))
        call.start()
        with pytest.raises(cl.InvalidArgumentError, match=r"in progress.*wait\(\)"):
            call.free()
        assert call.wait()[0] == 2
        call.free()
        assert comm.allreduce(np.ones(1))[0] == 2

    on_ranks(2, run)


def test_a_freed_call_says_so() -> None:
    (comm,) = cl.local(1)
    call = comm.persistent.allreduce(np.ones(4))
    call.free()
    call.free()
    for use in (call, call.start):
        with pytest.raises(cl.InvalidArgumentError, match="was freed"):
            use()
    assert comm.allreduce(np.ones(1))[0] == 1
    comm.close()


def test_one_that_nobody_holds_goes_when_it_is_done() -> None:
    def run(comm: cl.Communicator) -> None:
        for _ in range(5):
            comm.persistent.allreduce(np.ones(1 << 15)).start()
            gc.collect()
        np.testing.assert_array_equal(comm.allreduce(np.ones(1)), np.full(1, 2.0))

    on_ranks(2, run)


def test_it_takes_no_arguments_and_keeps_its_names() -> None:
    with cl.local(1)[0] as comm:
        call = comm.persistent.allreduce(np.ones(2))
        for arguments, options in (((1,), {}), ((), {"x": 1})):
            with pytest.raises(TypeError, match="it takes none"):
                call(*arguments, **options)
        assert call(**{}) is call(*())  # nothing is nothing
        with pytest.raises(AttributeError):
            call.unknown = 1
        assert not hasattr(call, "__dict__")


def test_one_of_a_cycle_goes() -> None:
    """What it returns may refer to it."""

    class Owner(np.ndarray[Any, Any]):
        call: Any

    with cl.local(1)[0] as comm:
        x = np.ones(2).view(Owner)
        x.call = comm.persistent.allreduce(x)
        known = weakref.ref(x.call)
        assert known() is not None
        del x
        gc.collect()
        assert known() is None


def test_an_operation_that_fails_ends_the_call() -> None:
    def broken(into: Any, other: Any) -> None:
        raise RuntimeError("no")

    def run(comm: cl.Communicator) -> None:
        call = comm.persistent.allreduce(np.ones(3), op=op)
        with pytest.raises((RuntimeError, cl.CollectiveError)):
            call()

    op = cl.op(broken, commutative=True)
    on_ranks(2, run)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda c: c.persistent.allreduce(np.ones(4), async_op=True), "start"),
        (lambda c: c.persistent.allreduce([np.ones(4)]), "one array"),
        (lambda c: c.persistent.allreduce(np.ones(8)[::2]), "contiguous"),
        (lambda c: c.persistent.allreduce(np.ones(4), op="most"), "op"),
        (lambda c: c.persistent.broadcast(np.ones(4), 7), "root"),
    ],
)
def test_what_cannot_be_persistent_is_refused(make: Any, words: str) -> None:
    (comm,) = cl.local(1)
    with pytest.raises(cl.InvalidArgumentError, match=words):
        make(comm)
    assert comm.allreduce(np.ones(1))[0] == 1
    comm.close()


def test_two_threads_do_not_meet_in_one() -> None:
    comms = cl.local(2)
    call = comms[0].persistent.allreduce(np.ones(4), timeout=20)
    waiting = threading.Thread(target=call)
    waiting.start()
    errors: list[Exception] = []
    while waiting.is_alive() and not errors:
        try:
            comms[0].persistent.allreduce(np.ones(4))
        except cl.InvalidArgumentError as error:
            errors.append(error)
    comms[1].allreduce(np.ones(4))
    waiting.join()
    assert "another thread" in str(errors[0])
    for comm in comms:
        comm.close()
