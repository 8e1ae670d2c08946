# SPDX-License-Identifier: Apache-2.0
"""How communicators begin: among the processes of a job, or among threads of this process."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from typing import Any

from collectives._ffi import check, ffi, lib
from collectives.communicator import Communicator
from collectives.environment import Place
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.handle import Handle
from collectives.names import MOST_RANKS, checked_seconds, integer


def join(place: Place, timeout: float | None = None) -> Communicator:
    """Meet the other processes of the job and return this rank's communicator.

    ``timeout`` (seconds) bounds the meeting and each later call; None: the place's own.
    """
    options = _options(place.rank, place.size, place.timeout, timeout)
    job = ffi.new("char[]", os.fsencode(place.job)) if place.job is not None else ffi.NULL
    options.job = job
    options.attempt = place.attempt
    meeting = _Meeting(options)
    alone = place.size == 1 or threading.current_thread() is not threading.main_thread()
    native = meeting.hold() if alone else _interruptible(meeting)
    return Communicator(Handle(native))


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


class _Meeting:
    """The meeting of the ranks: one native call that blocks until all have come."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._native: Any = None
        self._left = False

    def hold(self) -> Any:
        """Return the native communicator; raise why there is none."""
        made = ffi.new("coll_comm **")
        check(lib.coll_init(self._options, made))
        with self._lock:
            self._native = made[0]
            if self._left:
                lib.coll_close(self._native)
        return self._native

    def leave(self) -> None:
        """Give up: what the meeting has brought, or may yet bring, is closed."""
        with self._lock:
            self._left = True
            if self._native is not None:
                lib.coll_close(self._native)


def _interruptible(meeting: _Meeting) -> Any:
    """Hold a meeting on another thread, so that this one, the main one, serves Ctrl-C."""
    future: Future[Any] = Future()

    def hold() -> None:
        try:
            future.set_result(meeting.hold())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=hold, name="collectives.init", daemon=True).start()
    try:
        return future.result()
    except CollectiveError:
        raise  # the meeting's own end
    except BaseException:
        meeting.leave()
        raise


def _options(rank: int, size: int, default: float, timeout: float | None) -> Any:
    options = ffi.new("coll_options *")
    options.size = ffi.sizeof("coll_options")
    options.rank, options.ranks = rank, size
    options.timeout = default if timeout is None else checked_seconds("timeout", timeout)
    options.interruptible = 1
    return options
