# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.processes.test_messages` do: they send to one another."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import collectives as cl
from collectives.environment import ATTEMPT

VICTIM = 1
LONG = 16 << 20  # float32: 64 MiB
LATE = 400_000  # float64: more than is sent before it is received


def everything() -> dict[str, Any]:
    """Send in every way; return what was wrong, by way."""
    comm = cl.init(timeout=30)
    checks = (ring, any_source, long_message, fan_in, crossed, with_collectives, in_groups)
    return {check.__name__: check(comm) for check in (*checks, around_topology)}


def ring(comm: cl.Communicator) -> str:
    """Pass numbers around, of several lengths, none included."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for n in (0, 1, 1000, 300_000):
        out, status = np.full(n, -1.0), cl.Status()
        comm.sendrecv(np.full(n, float(comm.rank)), right, out, left, status=status)
        if (out != left).any() or status != cl.Status(left, 0, n, "float64"):
            return f"{n} elements: {out[:3]}, {status}"
    return ""


def any_source(comm: cl.Communicator) -> str:
    """Rank 0 takes what comes; what each rank sends keeps its order."""
    each = 200
    if comm.rank > 0:
        for number in range(each):
            comm.send(np.full(1 + number * 7 % 90, number), 0, tag=number % 5)
        return ""
    seen = [0] * comm.size
    for _ in range(each * (comm.size - 1)):
        x, status = np.zeros(90, int), cl.Status()
        comm.recv(x, status=status)
        number = seen[status.source]
        seen[status.source] += 1
        if (status.tag, status.count) != (number % 5, 1 + number * 7 % 90) or x[0] != number:
            return f"message {number} of rank {status.source}: {status}, {x[0]}"
    return "" if comm.iprobe() is None else "more came than was sent"


def long_message(comm: cl.Communicator) -> str:
    """Send 64 MiB on from rank to rank."""
    x = np.arange(LONG, dtype=np.float32) if comm.rank == 0 else np.zeros(LONG, np.float32)
    if comm.rank > 0:
        comm.recv(x, comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(x, comm.rank + 1)
    wrong = int((x != np.arange(LONG, dtype=np.float32)).sum())
    return f"{wrong} wrong" if wrong else ""


def fan_in(comm: cl.Communicator) -> str:
    """All send to all at once, and receive the last first: what comes too early is kept."""
    n, tags = 30_000, (0, 1, 2)
    requests = [
        comm.isend(np.full(n, comm.rank * 10 + tag), to, tag)
        for tag in tags
        for to in range(comm.size)
    ]
    for tag in reversed(tags):
        for source in range(comm.size):
            x = comm.recv(np.zeros(n, int), source, tag)
            if (x != source * 10 + tag).any():
                return f"tag {tag} of rank {source}: {x[:3]}"
    for request in requests:
        request.wait()
    return ""


def crossed(comm: cl.Communicator) -> str:
    """A message that is too long harms nobody, a probe tells the length of the next."""
    peer = comm.rank ^ 1
    if peer >= comm.size:
        return ""
    requests = [comm.isend(np.arange(float(n)), peer, tag=8) for n in (5, 400_000)]
    try:
        comm.recv(np.zeros(4), peer, 8)
        return "not refused"
    except cl.InvalidArgumentError as error:
        if "has 5 float64" not in str(error):
            return str(error)
    told = comm.probe(peer, 8)
    x = comm.recv(np.zeros(told.count, told.dtype), told.source, told.tag)
    for request in requests:
        request.wait()
    return "" if x[-1] == 399_999 else f"got {x[-1]}"


def with_collectives(comm: cl.Communicator) -> str:
    """Messages that are on their way during collectives, on ranks that do no more for them."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for number in range(20):
        x, out = np.full(50_000, number), np.zeros(50_000, int)
        receive = comm.irecv(out, left, number)
        send = comm.isend(x, right, number)
        if number % 3 == 0:
            comm.barrier()
        if comm.allreduce(np.ones(40_000))[-1] != comm.size:
            return f"allreduce {number}"
        send.wait()
        if receive.wait() is not out or (out != number).any():
            return f"message {number}: {out[:3]}"
    return ""


def in_groups(comm: cl.Communicator) -> str:
    """Groups have messages of their own, under the ranks that they give."""
    with comm.dup() as twin:
        comm.isend(np.array([1]), comm.rank)
        if twin.iprobe() is not None:
            return "a message of another group came"
        if comm.recv(np.zeros(1, int), comm.rank)[0] != 1:
            return "a message to oneself was lost"
    row = comm.split(comm.rank % 2, key=-comm.rank)
    assert row is not None
    with row:
        wrong = ring(row)
        row.barrier()
        return wrong


def around_topology(comm: cl.Communicator) -> str:
    """What topology() measures with meets no message, no receive and no call of the program."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent = [np.full(2, 7.0), np.full(8, 7, np.uint8), np.full(1 << 20, 7, np.uint8), np.ones(LATE)]
    sends = [comm.isend(x, right, tag) for tag, x in enumerate(sent)]
    links = [comm.topology().links]
    for tag, x in enumerate(sent):
        if (comm.recv(np.zeros_like(x), left, tag) != x).any():
            return f"message {tag}, which was on its way, is wrong"
    out = np.zeros(1 << 20, np.uint8)
    receive, named = comm.irecv(out), comm.irecv(np.zeros(1), left, 4)
    total = comm.allreduce(np.ones(LATE), async_op=True)
    links.append(comm.topology().links)
    with comm.group():
        few = comm.allreduce(np.ones(3))
        links.append(comm.topology().links)
    for x, tag in ((np.full(4, 9, np.uint8), 3), (np.ones(1), 4)):
        sends.append(comm.isend(x, right, tag))
    for request in (receive, named, *sends):
        request.wait()
    if receive.status != cl.Status(left, 3, 4, "uint8") or list(out[:5]) != [9] * 4 + [0]:
        return f"a receive from any rank got {receive.status}: {out[:5]}"
    if (total.wait() != comm.size).any() or (few != comm.size).any():
        return "a sum around topology() is wrong"
    return "" if all(map(bool, links)) == (comm.size > 1) else f"measured: {links}"


# ---- failures ------------------------------------------------------------------------------------


def kill(comm: cl.Communicator) -> None:
    """Die at once, as by the kernel's memory killer."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in_send(comm: cl.Communicator) -> None:
    """Die with a message half sent to each."""
    requests = [comm.isend(np.ones(LONG), to) for to in range(comm.size) if to != comm.rank]
    requests[0].done()
    os.kill(os.getpid(), signal.SIGKILL)


def leave(comm: cl.Communicator) -> None:
    """Close instead of sending."""
    comm.close()


def interrupt(comm: cl.Communicator) -> Any:
    """Get a Ctrl-C in a receive of what nobody sends."""
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.1, press).start()
    try:
        comm.recv(np.zeros(1), 0, tag=99)
    except KeyboardInterrupt:
        return {"error": "KeyboardInterrupt", "seconds": time.monotonic() - pressed[0]}
    return {"error": None}


def wait_for(receive: Callable[[cl.Communicator], Any]) -> Callable[[cl.Communicator], Any]:
    """Make a rank that waits for the victim, and tells what it was told."""

    def work(comm: cl.Communicator) -> Any:
        start = time.monotonic()
        try:
            receive(comm)
        except cl.CollectiveError as error:
            told = {"error": type(error).__name__, "text": str(error), "rank": error.rank}
            return told | {"seconds": time.monotonic() - start}
        return {"error": None}

    return work


def poll(comm: cl.Communicator) -> None:
    """Ask again and again."""
    request = comm.irecv(np.zeros(LONG), VICTIM, 5)
    while not request.done():
        time.sleep(0.001)
    request.wait()


def ask(comm: cl.Communicator) -> None:
    """Ask whether there is a message, again and again."""
    while comm.iprobe(VICTIM) is None:
        time.sleep(0.001)


RECEIVE = wait_for(lambda c: c.recv(np.zeros(LONG), VICTIM))
SEND = wait_for(lambda c: c.send(np.zeros(LONG), VICTIM))

# What the victim does, what the others do, and what they are told of rank 1.
SCENARIOS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "killed, recv": (kill, RECEIVE, "died"),
    "killed, any source": (kill, wait_for(lambda c: c.recv(np.zeros(1))), "died"),
    "killed, send": (kill, SEND, "died"),
    "killed, probe": (kill, wait_for(lambda c: c.probe(VICTIM)), "died"),
    "killed, polled": (kill, wait_for(poll), "died"),
    "killed, asked": (kill, wait_for(ask), "died"),
    "killed in a send": (kill_in_send, RECEIVE, "died"),
    "left, recv": (leave, RECEIVE, "closed its communicator"),
    "left, send": (leave, SEND, "closed its communicator"),
    "interrupted": (interrupt, wait_for(lambda c: c.recv(np.zeros(1), VICTIM)), ""),
}


def fail(name: str) -> Any:
    """Play one scenario in a child of this rank, whose death is not this rank's."""
    comm_of, others, _ = SCENARIOS[name]
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.environ[ATTEMPT] = str(list(SCENARIOS).index(name))
        with os.fdopen(write_end, "w") as answer:
            comm = cl.init(timeout=20)
            comm.barrier()
            answer.write(repr((comm_of if comm.rank == VICTIM else others)(comm)))
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        told = answer.read()
    os.waitpid(pid, 0)
    return told


def failures() -> dict[str, str]:
    """Play all scenarios; return what this rank was told, in the words of Python."""
    return {name: fail(name) for name in SCENARIOS}
