# SPDX-License-Identifier: Apache-2.0
"""The key-value store of Open MPI's mpirun, by PMIx, without MPI.

MPI may have begun in this process. It cannot begin later: Open MPI 5.0 leaves PMIx_Init out where
somebody has called it, and then does not know its rank. So mpi4py is preferred where it is there.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping

from collectives.errors import (
    BootstrapError,
    CollectiveError,
    CollectiveTimeoutError,
    InvalidArgumentError,
    UnsupportedError,
)
from collectives.launchers.bundle import packed, unpacked
from collectives.launchers.directory import Deadline
from collectives.launchers.launch import Launch
from collectives.launchers.pmix_library import Pmix, opened
from collectives.launchers.pmix_places import places


class PmixDirectory:
    """Puts are kept until the fence, and then told as one value, since PMIx asks who has put a key.

    Of what the others told, values are read where they are asked for: those of rank 0 first, whom
    all the others ask.
    """

    tells_all_at_fences = False

    def __init__(self, library: Pmix, rank: int, size: int, deadline: Deadline) -> None:
        self._library = library
        self._new: dict[str, bytes] = {}
        self._known: dict[str, bytes] = {}
        self._unread: list[list[str]] = [[] for _ in range(size)]
        self._fences = 0
        seen: list[int] = []
        within(deadline, lambda: seen.append(library.begin()), "the launcher does not answer")
        if seen != [rank]:
            raise InvalidArgumentError(
                f"the launcher says rank {rank}, PMIx rank {seen[0]}: the variables that begin "
                "with OMPI_ and PMIX_ are of different jobs"
            )

    def put(self, key: str, value: bytes, deadline: Deadline) -> None:
        """Leave a value for all ranks, from the next fence on."""
        del deadline
        self._new[key] = bytes(value)

    def get(self, key: str, deadline: Deadline) -> bytes:
        """Return what any rank put before the last fence."""
        for rank, names in enumerate(self._unread):
            while key not in self._known and names:
                told = self._library.get(rank, names.pop(), math.ceil(deadline.left()))
                self._known |= unpacked(told)
        if key not in self._known:
            raise BootstrapError(f"no rank put '{key}' before the last fence")
        return self._known[key]

    def fence(self, deadline: Deadline) -> None:
        """Wait until all ranks have called it."""
        name = f"collectives.{self._fences}"
        self._fences += 1
        self._library.put(name, packed(self._new))  # also where it is nothing: all are asked
        self._new = {}
        within(deadline, self._library.fence, "not all ranks have come to meet")
        for names in self._unread:
            names.append(name)

    def close(self) -> None:
        """Take leave of the launcher."""
        self._library.end()


def within(deadline: Deadline, call: Callable[[], object], late: str) -> None:
    """Run a call that ends when others come, and wait for it until the deadline; Ctrl-C ends it.

    PMIX_TIMEOUT counts whole seconds, not every launcher heeds it for a fence, and no signal gets
    through. So the call has a thread of its own, which stays after a time-out: it keeps no process
    from its end.
    """
    errors: list[CollectiveError] = []

    def run() -> None:
        try:
            call()
        except CollectiveError as error:
            errors.append(error)

    seconds = deadline.left()
    thread = threading.Thread(target=run, name="collectives PMIx", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise CollectiveTimeoutError(f"after {seconds:.3g} s {late}")
    if errors:
        raise errors[0]


def open_pmix(launch: Launch, deadline: Deadline, env: Mapping[str, str]) -> PmixDirectory:
    """Connect to the launcher. Raises UnsupportedError, with what was tried, without libpmix."""
    try:
        library = opened(places(env))
    except UnsupportedError as error:
        raise UnsupportedError(f"{launch.lack} ({error})") from error
    return PmixDirectory(library, launch.rank, launch.size, deadline)
