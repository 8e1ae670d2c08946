# SPDX-License-Identifier: Apache-2.0
"""Messages among threads: what Python adds to the native calls, and what it refuses."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives._ffi import lib
from collectives.arrays import DTYPES, numpy_dtype

F = np.float32
LONG = 200_000  # elements: many times what fits on the way between two ranks


@pytest.fixture
def pair() -> Iterator[list[cl.Communicator]]:
    comms = cl.local(2, timeout=20)
    yield comms
    for comm in comms:
        comm.close()


Call = Callable[[], Any]


def frozen(x: Any) -> Any:
    x.flags.writeable = False
    return x


def test_a_message_is_received_into_the_array_that_is_returned(pair: list[Any]) -> None:
    pair[0].send(np.arange(6, dtype=F), 1, tag=3)
    x, status = np.zeros((2, 3), F), cl.Status()
    assert pair[1].recv(x, 0, 3, status=status) is x
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert status == cl.Status(source=0, tag=3, count=6, dtype="float32")


def test_receives_are_for_any_message_unless_told(pair: list[Any]) -> None:
    for tag in (9, 4):
        pair[0].send(np.array([tag]), to=1, tag=tag)
    status = cl.Status()
    assert pair[1].recv(np.zeros(1, int), tag=4, status=status).tolist() == [4]
    assert pair[1].recv(np.zeros(1, int), cl.ANY_SOURCE, cl.ANY_TAG, status=status)[0] == 9
    assert (status.source, status.tag) == (0, 9)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(pair: list[Any], name: str) -> None:
    dtype = numpy_dtype(DTYPES[name])
    x, status = (np.arange(5 * dtype.itemsize) % 2).astype(np.uint8).view(dtype), cl.Status()
    pair[0].send(x, 1)
    assert pair[1].recv(np.zeros(5, dtype), status=status).tobytes() == x.tobytes()
    assert (status.count, status.dtype) == (5, name)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (np.arange(20.0)[::2], np.zeros(10)),
        (np.arange(10.0), np.zeros(20)[::2]),
        (np.arange(10.0).reshape(2, 5).T, np.zeros((5, 2))),
        (frozen(np.arange(10.0)), np.zeros((2, 5)).T),
        (np.arange(10.0).data, np.zeros(10)),
    ],
)
@pytest.mark.parametrize("form", ["recv", "irecv", "sendrecv"])
def test_arrays_of_any_stride(pair: list[Any], form: str, given: Any, target: Any) -> None:
    target[...] = -1
    if form == "recv":
        pair[0].send(given, 1)
        got = pair[1].recv(target)
    elif form == "irecv":
        request = pair[1].irecv(target)
        pair[0].isend(given, 1).wait()
        got = request.wait()
    else:
        got = pair[0].sendrecv(given, 0, target)
    assert got is target
    assert target.ravel().tolist() == np.asarray(given).ravel().tolist()


def test_a_shorter_message_fills_the_beginning_in_c_order(pair: list[Any]) -> None:
    target = np.full((2, 4), -1.0)[:, ::2]
    pair[0].send(np.ones(3), 1)
    assert pair[1].recv(target).tolist() == [[1, 1], [1, -1]]


def test_a_message_that_is_too_long_is_lost_alone(pair: list[Any], threads: Any) -> None:
    pair[0].send(np.arange(5.0), 1, 7)
    x, status = np.zeros(3), cl.Status()
    with pytest.raises(cl.InvalidArgumentError, match=r"has 5 float64, but .* room for 3"):
        pair[1].recv(x, 0, 7, status=status)
    assert status == cl.Status(0, 7, 5, "float64")
    assert x.tolist() == [0, 0, 0]
    request = pair[1].irecv(x)
    pair[0].send(np.arange(4.0), 1)
    assert request.done()
    for _ in range(2):
        with pytest.raises(cl.InvalidArgumentError, match="has 4 float64"):
            request.wait()
    assert request.status == cl.Status(0, 0, 4, "float64")
    assert repr(request) == "<Request irecv, failed>"
    assert threads(pair, lambda comm: float(comm.allreduce(np.ones(1))[0])) == [2, 2]


def test_another_dtype_ends_the_communicator_for_both(pair: list[Any]) -> None:
    pair[0].send(np.zeros(2, np.int32), 1, 5)
    calls: list[Call] = [lambda: pair[1].recv(np.zeros(2, F), 0), pair[0].barrier]
    for call in calls:
        with pytest.raises(
            cl.MismatchError, match="rank 0 sends 2 int32, rank 1 receives float32"
        ) as caught:
            call()
        assert caught.value.rank == 0


def test_nothing_and_oneself(pair: list[Any]) -> None:
    comm = pair[0]
    comm.send(np.zeros((0, 3)), 0)
    assert comm.recv(np.zeros((0, 3))).shape == (0, 3)
    comm.send(np.arange(LONG), 0)
    assert comm.recv(np.zeros(LONG, int)).tolist() == list(range(LONG))
    out = comm.sendrecv(np.arange(LONG), 0, np.zeros(LONG, int), 0)
    assert out[-1] == LONG - 1


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_a_ring_of_sendrecv_between_collectives(threads: Any, p: int) -> None:
    def work(comm: cl.Communicator) -> bool:
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        for n in (1, LONG):
            x, out = np.full(n, comm.rank), np.zeros(n, int)
            comm.sendrecv(x, right, out, left, send_tag=n, recv_tag=n)
            assert (out == left).all()
            assert comm.allreduce(np.ones(1))[0] == comm.size
        return True

    comms = cl.local(p, timeout=30)
    assert all(threads(comms, work))
    for comm in comms:
        comm.close()


# ---- probes ----------------------------------------------------------------------------------


def test_a_probe_tells_and_takes_nothing(pair: list[Any]) -> None:
    assert pair[1].iprobe() is None
    pair[0].send(np.zeros(7, np.int64), 1, 2)
    told = cl.Status(0, 2, 7, "int64")
    assert pair[1].probe() == pair[1].probe(0, 2) == pair[1].iprobe() == told
    assert pair[1].iprobe(tag=3) is None
    pair[1].recv(np.zeros(told.count, told.dtype), told.source, told.tag)
    assert pair[1].iprobe() is None


def test_time_outs_of_questions_change_nothing(pair: list[Any]) -> None:
    with pytest.raises(cl.CollectiveTimeoutError, match=r"probe of rank 0 .*gave up"):
        pair[1].probe(0, timeout=0.02)
    request = pair[1].irecv(np.zeros(1))
    with pytest.raises(cl.CollectiveTimeoutError, match="the request goes on"):
        request.result(timeout=0.02)
    assert repr(request) == "<Request irecv, in flight>"
    pair[0].send(np.ones(1), 1)
    assert request.wait(timeout=5).tolist() == [1]


def test_a_time_out_of_a_message_ends_the_communicator(pair: list[Any]) -> None:
    calls: list[Call] = [lambda: pair[1].recv(np.zeros(1), 0, timeout=0.02), pair[0].barrier]
    for call in calls:
        with pytest.raises(cl.CollectiveTimeoutError, match="recv from rank 0") as caught:
            call()
        assert caught.value.rank == 0


# ---- requests --------------------------------------------------------------------------------


def test_requests_end_in_any_order(pair: list[Any]) -> None:
    targets = [np.zeros(LONG) for _ in range(3)]
    receives = [pair[1].irecv(x, 0, tag) for tag, x in enumerate(targets)]
    assert not any(request.done() for request in receives)
    sender = threading.Thread(
        target=lambda: [
            r.wait() for r in [pair[0].isend(np.full(LONG, float(t)), 1, t) for t in (2, 0, 1)]
        ]
    )
    sender.start()
    for tag in (1, 0, 2):
        assert receives[tag].wait() is targets[tag]
        assert (targets[tag] == tag).all()
        assert receives[tag].status == cl.Status(0, tag, LONG, "float64")
    sender.join(10)


def test_a_request_tells_how_it_ended(pair: list[Any]) -> None:
    request = pair[0].isend(np.ones(1), 1)
    assert request.wait() is None
    assert request.done()
    assert request.status is None
    assert repr(request) == "<Request isend, done>"
    receive = pair[1].irecv(np.zeros(1), 0)
    assert receive.wait() is receive.result()


def test_a_dropped_request_goes_on(pair: list[Any]) -> None:
    x = np.zeros(LONG)
    pair[1].irecv(x)  # nobody holds it, nor what is sent
    pair[0].isend(np.ones(LONG), 1)
    gc.collect()
    deadline = time.monotonic() + 10
    while x[-1] == 0 and time.monotonic() < deadline:
        for comm in pair:
            comm.iprobe()
    assert (x == 1).all()
    for comm in pair:
        comm.isend(np.ones(1), comm.rank).wait()
        assert not comm._dropped


def test_requests_of_a_communicator_that_failed_raise_the_cause(pair: list[Any]) -> None:
    request, other = pair[1].irecv(np.zeros(1)), pair[1].irecv(np.zeros(1))
    pair[0].abort("enough")
    assert request.done()
    for wait in (request.wait, other.wait):
        with pytest.raises(cl.AbortedError, match="enough"):
            wait()
    late = pair[1]
    late.close()
    with pytest.raises(cl.ClosedError):
        late.isend(np.ones(1), 0)


def test_requests_of_a_closed_communicator_say_so(pair: list[Any]) -> None:
    request = pair[0].irecv(np.zeros(1))
    pair[0].close()
    assert request.done()
    with pytest.raises(cl.ClosedError, match="rank 0 has closed"):
        request.wait()


def test_a_request_is_awaited(pair: list[Any]) -> None:
    async def receive() -> Any:
        request = pair[1].irecv(np.zeros(LONG))
        threading.Timer(0.02, lambda: pair[0].send(np.ones(LONG), 1)).start()
        return await request

    assert (asyncio.run(receive()) == 1).all()


def test_messages_beside_collectives_in_flight(pair: list[Any]) -> None:
    pair[1].send(np.ones(2), 0, 1)
    pending = pair[0].allreduce(np.ones(3), async_op=True)
    request, late = pair[0].irecv, np.zeros(2)
    assert pair[0].iprobe() is None
    assert not pending.done()
    assert pair[1].allreduce(np.ones(3)).tolist() == [2, 2, 2]
    assert pair[0].recv(late).tolist() == [1, 1]  # after it
    assert pending.done()
    pair[1].isend(np.zeros(1), 0)
    assert request(np.ones(1)).wait().tolist() == [0]


def test_any_is_what_the_c_interface_says() -> None:
    assert (cl.ANY_SOURCE, cl.ANY_TAG) == (lib.COLL_ANY_SOURCE, lib.COLL_ANY_TAG)


# ---- others ------------------------------------------------------------------------------------


def test_a_message_does_not_count_as_a_collective(pair: list[Any]) -> None:
    pair[0].send(np.ones(1), 1)
    pair[1].recv(np.zeros(1))
    assert [comm.sequence for comm in pair] == [0, 0]


def test_a_rank_that_left_is_named(pair: list[Any]) -> None:
    pair[1].close()
    calls: list[Call] = [
        lambda: pair[0].recv(np.zeros(1), 1),
        lambda: pair[0].send(np.zeros(1), 1),
    ]
    for call in calls:
        with pytest.raises(cl.PeerLostError, match=r"rank 1 \(pid .* closed") as caught:
            call()
        assert caught.value.rank == 1


BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "to": (lambda c: c.send(np.ones(1), 2), "send: to is 2: give a rank from 0 to 1"),
    "to any": (lambda c: c.send(np.ones(1), cl.ANY_SOURCE), "send: to is -1"),
    "to a bool": (lambda c: c.isend(np.ones(1), True), "isend: to is True"),
    "tag": (lambda c: c.send(np.ones(1), 1, -1), "send: tag is -1: give a number from 0 to"),
    "tag too large": (lambda c: c.isend(np.ones(1), 1, 2**31), "isend: tag is 2147483648"),
    "tag a word": (lambda c: c.recv(np.ones(1), 1, "a"), "recv: tag is 'a': .*or ANY_TAG"),
    "source": (lambda c: c.recv(np.ones(1), 2), "recv: source is 2: .*1, or ANY_SOURCE"),
    "source a float": (lambda c: c.irecv(np.ones(1), 1.0), "recv: source is 1.0"),
    "source of a probe": (lambda c: c.probe(-2), "probe: source is -2"),
    "tag of a probe": (lambda c: c.iprobe(1, -2), "iprobe: tag is -2"),
    "tag of sendrecv": (
        lambda c: c.sendrecv(np.ones(1), 1, np.ones(1), 1, -1),
        "sendrecv: send_tag is -1",
    ),
    "other tag of sendrecv": (
        lambda c: c.sendrecv(np.ones(1), 1, np.ones(1), 1, 0, -5),
        "sendrecv: recv_tag is -5",
    ),
    "the same array": (
        lambda c: (lambda x: c.sendrecv(x, 1, x, 1))(np.ones(3)),
        "sendrecv: the two arrays overlap",
    ),
    "read-only": (lambda c: c.recv(frozen(np.ones(1))), "recv: x is read-only"),
    "read-only in the background": (lambda c: c.irecv(b"abc"), "irecv: x is read-only"),
    "a list": (lambda c: c.send([1.0], 1), "send: x is of type list"),
    "dtype": (lambda c: c.send(np.ones(1, object), 1), "send: x has dtype object"),
    "status": (lambda c: c.recv(np.ones(1), status={}), r"recv: status is {}: pass a coll"),
    "timeout": (lambda c: c.recv(np.ones(1), timeout=0), "recv: timeout is 0: give seconds"),
    "timeout of a send": (lambda c: c.send(np.ones(1), 1, timeout="a"), "send: timeout is 'a'"),
    "timeout of a wait": (lambda c: c.irecv(np.ones(1)).wait(timeout=-1), "wait: timeout is -1"),
}


@pytest.mark.parametrize("case", BAD)
def test_is_refused_and_harms_nobody(pair: list[Any], case: str) -> None:
    call, words = BAD[case]
    with pytest.raises(cl.InvalidArgumentError, match=words):
        call(pair[0])
    assert pair[1].iprobe() is None


def test_two_threads_in_one_communicator_are_told(pair: list[Any]) -> None:
    request = pair[0].irecv(np.zeros(1), 1, 5)
    waiting = threading.Thread(target=lambda: pair[0].recv(np.zeros(1), 1, 4))
    waiting.start()
    deadline = time.monotonic() + 10
    while not pair[0]._handle._in_call and time.monotonic() < deadline:
        time.sleep(0.001)
    calls: list[Call] = [request.done, request.wait, lambda: pair[0].send(np.ones(1), 1)]
    for call in calls:
        with pytest.raises(cl.InvalidArgumentError, match="another thread is in a call"):
            call()
    for tag in (4, 5):
        pair[1].send(np.ones(1), 0, tag)
    waiting.join(10)
    assert request.wait().tolist() == [1]
