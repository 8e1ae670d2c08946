# SPDX-License-Identifier: Apache-2.0
"""How communicators begin: among the processes of a job, or among threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from collectives._ffi import check, ffi, lib
from collectives.communicator import Communicator
from collectives.errors import CollectiveTimeoutError, InvalidArgumentError
from collectives.handle import Handle
from collectives.names import MOST_RANKS, checked_seconds, integer
from collectives.stopping import told

if TYPE_CHECKING:
    from collectives.environment import Place
    from collectives.launchers.wire import Wire


_DEFAULT_TIMEOUT = 300.0  # seconds, as everywhere


def join(place: Place, timeout: float | None = None) -> Communicator:
    """Meet the other processes of the job and return this rank's communicator.

    ``timeout`` (seconds) bounds the meeting and each later call; None: the place's own.
    """
    if place.wire is not None:
        return _wired(place, place.wire, timeout)
    with _of_process(place, timeout) as options:
        return _met(options, place.only_here)


def tell(place: Place, refusal: str, timeout: float) -> None:
    """Meet the other processes of this machine only to tell them why this rank cannot take part."""
    with _of_process(place, timeout) as options:
        reason = ffi.new("char[]", refusal.encode("utf-8", "replace"))
        options.refusal = reason
        told(lib.coll_init(options, ffi.new("coll_comm **")))


@contextmanager
def _of_process(place: Place, timeout: float | None) -> Iterator[Any]:
    """Options of a rank that meets others on this machine, with the texts that they refer to."""
    options = _options(place.rank, place.size, place.timeout, timeout)
    job = ffi.new("char[]", os.fsencode(place.job)) if place.job is not None else ffi.NULL
    trusted = ffi.new("char[]", place.trusted.encode())
    options.job, options.trusted = job, trusted
    options.attempt = place.attempt
    if threading.current_thread() is threading.main_thread():
        options.stop = lib.asked_to_stop
    yield options


def local(n: int, timeout: float | None = None) -> list[Communicator]:
    """Return ``n`` communicators, ranks 0 ... n-1, for ``n`` threads of this process.

    ``timeout`` bounds each call, in seconds; None: 300. Each communicator is used by one thread::

        comms = cl.local(4)
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda comm: comm.allreduce(np.ones(8)), comms))
    """
    size = integer(n)
    if size is None or not 1 <= size <= MOST_RANKS:
        raise InvalidArgumentError(f"local: n is {n!r}: give the number of ranks, 1 or more")
    made = ffi.new("coll_comm *[]", size)
    check(lib.coll_local(_options(0, size, 0.0, timeout), made))
    return [Communicator(Handle(native)) for native in made]


@contextmanager
def waiting(seconds: float, only_here: str = "") -> Iterator[None]:
    """Say of a meeting whose time is up how long that was, how to wait longer, and where it was.

    Another rank's time may be up before this one's.
    """
    begun = monotonic()
    try:
        yield
    except CollectiveTimeoutError as error:
        passed = monotonic() - begun
        waited = seconds if passed >= seconds else round(passed, 1)
        where = f"; it looked on this machine only, as {only_here}" if only_here else ""
        raise CollectiveTimeoutError(
            f"{error}{where}; this rank waited for {waited:.4g} s: timeout=... or "
            "COLLECTIVES_TIMEOUT sets for how long",
            error.rank,
        ) from None


def _met(options: Any, only_here: str) -> Communicator:
    """Meet the others; end it, and leave nothing, where a signal handler raises."""
    made = ffi.new("coll_comm **")
    try:
        with waiting(options.timeout or _DEFAULT_TIMEOUT, only_here):
            told(lib.coll_init(options, made))
        handle = Handle(made[0])
        made[0] = ffi.NULL  # whose it is now
        return Communicator(handle)
    except BaseException:
        if made[0] != ffi.NULL:
            lib.coll_close(made[0])
        raise


def _wired(place: Place, wire: Wire, timeout: float | None) -> Communicator:
    """Begin among ranks of several machines; connections are made when calls need them."""
    from collectives.launchers.transport import ucx_library

    options = ffi.new("coll_wire_options *")
    options.size = ffi.sizeof("coll_wire_options")
    options.rank, options.ranks = place.rank, place.size
    options.timeout = place.timeout if timeout is None else checked_seconds("timeout", timeout)
    options.silence = place.silence
    options.interruptible = 1
    options.spin = 0 if wire.shares_cores else -1
    job = ffi.new("char[]", os.fsencode(place.job or "default"))
    secret = ffi.new("uint8_t[]", wire.secret)
    doors = [ffi.new("char[]", door.encode()) for door in wire.doors]
    hosts = [ffi.new("char[]", os.fsencode(host)) for host in wire.hosts]
    by_rank = ffi.new("char *[]", doors), ffi.new("char *[]", hosts)
    options.job, options.attempt, options.secret = job, place.attempt, secret
    options.doors, options.hosts = by_rank
    transport = ffi.new("char[]", wire.transport.encode())
    library = ffi.new("char[]", os.fsencode(ucx_library()))
    devices = ffi.new("char[]", os.fsencode(wire.devices))
    options.transport, options.ucx_library = transport, library
    options.ucx_devices, options.ucx_between = devices, wire.only_between
    made = ffi.new("coll_comm **")
    ffi.gc(wire.listener, None)  # which the communicator now closes
    check(lib.coll_init_wire(options, wire.listener, made))
    return Communicator(Handle(made[0]))


def _options(rank: int, size: int, default: float, timeout: float | None) -> Any:
    options = ffi.new("coll_options *")
    options.size = ffi.sizeof("coll_options")
    options.rank, options.ranks = rank, size
    options.timeout = default if timeout is None else checked_seconds("timeout", timeout)
    options.interruptible = 1
    return options
