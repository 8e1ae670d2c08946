# SPDX-License-Identifier: Apache-2.0
"""What ranks of :mod:`tests.hosts.test_wire_faults` do: the victim fails, the others watch."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import collectives as cl
from collectives.environment import ATTEMPT
from tests.hosts.rank import write
from tests.processes.mismatches import CASES

LARGE = 1 << 18  # elements: some 50 messages


def told(call: Any) -> dict[str, Any]:
    """Make a call; return how it ended and when."""
    try:
        call()
    except cl.CollectiveError as error:
        found = {"error": type(error).__name__, "text": str(error), "rank": error.rank}
        return found | {"time": time.monotonic()}
    except KeyboardInterrupt:
        return {"error": "KeyboardInterrupt", "text": "", "rank": None, "time": time.monotonic()}
    return {"error": None, "text": "", "rank": None, "time": time.monotonic()}


def note(comm: cl.Communicator, name: str, value: Any = None) -> None:
    """Leave a word for the test."""
    folder, attempt = os.environ["TEST_FOLDER"], os.environ[ATTEMPT]
    write(Path(folder, f"{attempt}.{comm.rank}.{name}"), value)


def await_word(name: str) -> None:
    """Wait for a word of the test."""
    path = Path(os.environ["TEST_FOLDER"], f"{os.environ[ATTEMPT]}.{name}")
    end = time.monotonic() + 20
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.002)


def meet(comm: cl.Communicator, algorithm: str | None) -> None:
    """Connect as calls of this algorithm do; None: every two ranks."""
    comm.allreduce(np.ones(1), algorithm=algorithm or "direct_one_shot")
    note(comm, "met")


def meets(comm: cl.Communicator) -> None:
    """Connect."""
    meet(comm, None)


def blocked(comm: cl.Communicator, victim: int, algorithm: str | None, **options: Any) -> Any:
    """Wait in a call that the victim does not make."""
    meet(comm, algorithm)
    if comm.rank == victim:
        time.sleep(60)
    call = dict(options, algorithm=algorithm)
    found = told(lambda: comm.allreduce(np.ones(LARGE, np.float32), **call))
    return found | {"again": told(comm.barrier)}


def blocked_with_limit(comm: cl.Communicator, victim: int, limit: float) -> Any:
    """As :func:`blocked`, with a time-out."""
    return blocked(comm, victim, "ring", timeout=limit)


def busy(
    comm: cl.Communicator, algorithm: str | None, limit: float = 0, elements: int = LARGE
) -> Any:
    """Call until something goes wrong."""
    meet(comm, algorithm)
    x = np.ones(elements, np.float32)
    options: dict[str, Any] = {"timeout": limit} if limit else {}
    y = np.empty_like(x)

    def call() -> None:
        for _ in range(100_000):
            comm.allreduce(x, y, op="max", algorithm=algorithm, **options)

    return told(call) | {"again": told(comm.barrier)}


def counted(comm: cl.Communicator, calls: int, elements: int) -> Any:
    """Make so many calls, whatever happens meanwhile."""
    meet(comm, None)
    wrong = 0

    def call() -> None:
        nonlocal wrong
        for number in range(calls):
            x = np.full(elements, number + comm.rank, np.float32)
            total = comm.size * number + comm.size * (comm.size - 1) // 2
            wrong += not (comm.allreduce(x) == total).all()

    return told(call) | {"wrong": wrong}


def late(comm: cl.Communicator, victim: int, seconds: float) -> Any:
    """The victim computes for long; nobody may take it for lost."""
    meet(comm, None)
    if comm.rank == victim:
        time.sleep(seconds)
    result = comm.allreduce(np.full(LARGE, comm.rank + 1.0))
    return {"right": bool((result == comm.size * (comm.size + 1) / 2).all())}


def late_to_the_first(comm: cl.Communicator, victim: int, limit: float) -> Any:
    """The victim does not come to the first call, in which ranks connect."""
    if comm.rank == victim:
        await_word("enough")
    found = told(lambda: comm.allreduce(np.ones(3), timeout=limit))
    return found | {"again": told(comm.barrier)}


def misses_a_barrier(comm: cl.Communicator, limit: float) -> Any:
    """Only rank 0 comes to it."""
    meet(comm, None)
    if comm.rank != 0:
        await_word("enough")
        return None
    return told(lambda: comm.barrier(timeout=limit))


def first_call_after_a_word(comm: cl.Communicator, way: str) -> Any:
    """Connect only when the test says so: the ranks in a ring, or rank 0 and 1 by a message."""
    note(comm, "ready")
    await_word("go on")
    x = np.ones(3)
    if way == "collective" or comm.rank > 1:
        return told(lambda: comm.allreduce(x))
    return told(lambda: comm.recv(x, 1) if comm.rank == 0 else comm.send(x, 0))


def leaves(comm: cl.Communicator, victim: int, way: str) -> Any:
    """The victim goes, in several ways; the others call."""
    if way != "unmet":
        meet(comm, "ring")
    if comm.rank == victim:
        if way != "unmet":  # who goes while others are in the first call may end that one
            for rank in range(comm.size):
                await_word(f"{rank}.met")
        note(comm, "gone", time.monotonic())
        if way == "close":
            comm.close()
            time.sleep(3)  # the process lives on
        elif way == "abort":
            comm.abort("no disk left")
            time.sleep(3)
        elif way == "raise":
            raise ValueError("a mistake of the program")
        elif way == "exit":
            os._exit(0)
        else:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"again": told(comm.barrier)}
    x = np.ones(LARGE, np.float32)
    found = told(lambda: [comm.allreduce(x, op="max", algorithm="ring") for _ in range(3)])
    return found | {"again": told(comm.barrier)}


def last_call_then_leave(comm: cl.Communicator, elements: int = 4 * LARGE) -> Any:
    """Every rank closes at once behind its last call, which the others may still be in."""
    x = np.ones(elements, np.float32)
    result = comm.broadcast(x * 7 if comm.rank == 0 else x, algorithm="chain")
    comm.close()
    return {"right": bool((result == 7).all())}


def interrupted(comm: cl.Communicator, victim: int) -> Any:
    """The victim gets a Ctrl-C in a call that the others make later."""
    meet(comm, None)
    if comm.rank != victim:
        await_word("go on")
    return told(lambda: comm.allreduce(np.ones(LARGE)))


def aborted_by_thread(comm: cl.Communicator, victim: int) -> Any:
    """Another thread of the victim aborts while all move data."""
    meet(comm, None)
    x = np.ones(LARGE)
    if comm.rank == victim:
        threading.Timer(0.2, lambda: comm.abort("enough")).start()
    begin = time.monotonic()

    def call() -> None:
        for _ in range(10_000):
            comm.allreduce(x, op="max")

    return told(call) | {"begin": begin}


def closed_by_thread(comm: cl.Communicator, victim: int) -> Any:
    """Another thread of the victim closes while its main thread is blocked."""
    meet(comm, None)
    if comm.rank == victim:
        threading.Timer(0.2, comm.close).start()
    else:
        await_word("go on")
    return told(lambda: comm.allreduce(np.ones(LARGE)))


def disagree(comm: cl.Communicator, case: str) -> Any:
    """Rank 1 makes another call than the others, which may find out at the barrier behind it."""
    mine, theirs, _ = CASES[case]
    comm.allgather(np.ones(1), algorithm="direct")  # every two ranks are connected
    time.sleep(0.2)  # and have left it: whoever is still in it would be told there
    begin = time.monotonic()

    def call() -> None:
        (mine if comm.rank == 1 else theirs)(comm)
        comm.barrier()

    found = told(call)
    return found | {"seconds": found["time"] - begin, "again": told(comm.barrier)}


def missing(comm: cl.Communicator) -> Any:
    """Rank 1 leaves out a call."""
    begin = time.monotonic()

    def call() -> None:
        comm.barrier()
        if comm.rank != 1:
            comm.allreduce(np.ones(5))
        comm.broadcast(np.ones(7), root=0)
        comm.barrier()

    found = told(call)
    return found | {"seconds": found["time"] - begin, "again": told(comm.barrier)}


def shrinks(comm: cl.Communicator, limit: float = 0) -> Any:
    """Call until something goes wrong, then go on with those that live."""
    found = busy(comm, None, limit)
    if found["error"] is None:
        return found
    return found | living_on(comm)


def shrinks_if_it_may(comm: cl.Communicator) -> Any:
    """As :func:`shrinks`, where the others may go on without this rank."""
    found = busy(comm, None)
    try:
        return found | living_on(comm)
    except cl.PeerLostError as error:
        return found | {"refused": str(error)}


def shrinks_unmet(comm: cl.Communicator, victim: int, gap: float) -> Any:
    """The victim dies before the first call, to which the others come one after the other."""
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(gap * comm.rank)
    return told(lambda: comm.allreduce(np.ones(3))) | living_on(comm)


def living_on(comm: cl.Communicator) -> dict[str, Any]:
    """Go on with those that live; return how that went."""
    begin = time.monotonic()
    living = comm.shrink(timeout=10)
    took = time.monotonic() - begin
    found: dict[str, Any] = {"took": took, "size": living.size, "rank": living.rank}
    total = living.allreduce(np.full(1000, float(comm.rank)))
    found |= {"total": float(total[-1]), "wrong": int((total != total[0]).sum())}
    living.barrier()
    return found


def waits_for_message(comm: cl.Communicator, victim: int, way: str) -> Any:
    """Wait for what the victim does not send, or does not take."""
    meet(comm, "ring")
    if comm.rank == victim:
        time.sleep(60)
    x = np.ones(64 * LARGE)
    ways = {
        "recv": lambda: comm.recv(x, victim),
        "any": lambda: comm.recv(x),
        "send": lambda: comm.send(x, victim),
        "request": lambda: comm.irecv(x, victim).wait(),
    }
    return told(ways[way]) | {"again": told(comm.barrier)}


def ring_of_messages(comm: cl.Communicator, limit: float) -> Any:
    """Hand messages around until that fails; only neighbours are connected."""
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    x, y = np.ones(LARGE), np.empty(LARGE)

    def call() -> None:
        for _ in range(100_000):
            comm.sendrecv(x, to, y, source, timeout=limit)

    comm.sendrecv(x, to, y, source)
    note(comm, "met")
    return told(call)


def crowded(comm: cl.Communicator) -> Any:
    """Call until the test says that it is enough; tell where this rank listens."""
    note(comm, "doors", _listening())
    end = Path(os.environ["TEST_FOLDER"], f"{os.environ[ATTEMPT]}.enough")
    calls, wrong, enough = 0, 0, 0
    deadline = time.monotonic() + 30
    while not enough and time.monotonic() < deadline:
        result = comm.allreduce(np.full(1000, comm.rank + 1.0))
        wrong += not (result == comm.size * (comm.size + 1) / 2).all()
        calls += 1
        enough = int(comm.allreduce(np.array([int(end.exists())]), op="max")[0])
        if calls == 1:
            note(comm, "met")
    return {"calls": calls, "wrong": wrong, "enough": enough}


def first_call_among_strangers(comm: cl.Communicator) -> Any:
    """Connect only once the strangers are there."""
    note(comm, "doors", _listening())
    await_word("enough")
    return told(comm.barrier)


def _listening() -> list[list[Any]]:
    """Return the addresses at which this process listens for TCP."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as it:
                if it.family == socket.AF_INET and it.getsockopt(
                    socket.SOL_SOCKET, socket.SO_ACCEPTCONN
                ):
                    found.append(list(it.getsockname()))
        except OSError:
            continue
    return found
