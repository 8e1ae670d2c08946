# SPDX-License-Identifier: Apache-2.0
"""A key-value store that the ranks share before they are connected."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from collectives.errors import BootstrapError, CollectiveError, CollectiveTimeoutError

_FIRST_NAP, _LONGEST_NAP = 0.001, 0.05
_FAREWELL = 2.0  # seconds
_MOST_NAMED = 16  # ranks


class Deadline:
    """A point in time, ``seconds`` from now, after which to give up."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._seconds = seconds

    @property
    def seconds(self) -> float:
        """The seconds that there were."""
        return self._seconds

    def left(self) -> float:
        """Return the seconds that are left, more than 0."""
        return max(self._end - time.monotonic(), 0.001)

    def at_most(self, seconds: float) -> Deadline:
        """Return this one, or an earlier one after so many seconds from now."""
        return Deadline(min(self.left(), seconds))

    def over(self) -> bool:
        """Return whether it is past."""
        return time.monotonic() >= self._end

    def until(self, done: Callable[[], bool], what: Callable[[], str]) -> None:
        """Ask ``done`` again and again, ever more seldom; Ctrl-C ends it.

        Raises CollectiveTimeoutError with the words of ``what``.
        """
        nap = _FIRST_NAP
        while not done():
            if self.over():
                raise CollectiveTimeoutError(f"after {self._seconds:g} s {what()}")
            time.sleep(min(nap, self.left()))
            nap = min(2 * nap, _LONGEST_NAP)


def named(ranks: list[int]) -> str:
    """Return which ranks have not done something: the words before "not"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]} has"
    more = f" and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else ""
    return f"ranks {', '.join(map(str, ranks[:_MOST_NAMED]))}{more} have"


class Directory(Protocol):
    """Values by key. A key is put once: 1 to 32 letters, digits, ".", "_" and "-".

    All methods raise CollectiveTimeoutError at the deadline, and BootstrapError where the store is
    gone. After that it is of no use.
    """

    @property
    def tells_all_at_fences(self) -> bool:
        """Whether a fence brings all values here, so that get() asks nobody."""

    def put(self, key: str, value: bytes, deadline: Deadline) -> None:
        """Leave a value for all ranks."""

    def get(self, key: str, deadline: Deadline) -> bytes:
        """Return what any rank put before the last fence."""

    def fence(self, deadline: Deadline) -> None:
        """Wait until all ranks have called it."""

    def close(self) -> None:
        """Take leave, after a fence behind which nobody reads; without waiting for long."""


class Store(Protocol):
    """What a :class:`StoreDirectory` calls: any store that tells whether a key is there."""

    def put(self, key: str, value: bytes) -> None:
        """Leave a value."""

    def find(self, key: str) -> bytes | None:
        """Return a value, None where there is none yet."""

    def close(self) -> None:
        """Let go of it."""


class Members(Protocol):
    """What tells a rank that waits whether those that it waits for are still there."""

    def check(self) -> None:
        """Raise BootstrapError where one is not; asked again and again while this rank waits.

        CollectiveTimeoutError where it waited for the same as this rank, and has given up.
        """

    def leave(self, error: BaseException, deadline: Deadline) -> None:
        """Tell the others that this rank gives up, and why; not long after the deadline."""


def attended(
    members: Members, done: Callable[[], bool], what: Callable[[], str], deadline: Deadline
) -> None:
    """Wait as :meth:`Deadline.until` does, while the others are there; who gives up tells them."""

    def done_or_gone() -> bool:
        if done():
            return True
        try:
            members.check()
        except (BootstrapError, CollectiveTimeoutError):
            if not done():  # who was waited for may have come here just before it went
                raise
            return True
        return False

    try:
        deadline.until(done_or_gone, what)
    except BaseException as error:
        members.leave(error, deadline)
        raise


class StoreDirectory:
    """A directory over a store without a fence: values can be read as soon as they are there.

    ``members``: None where the store does not tell who is there.
    """

    tells_all_at_fences = False

    def __init__(self, store: Store, rank: int, size: int, members: Members | None = None) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._members = members
        self._fences = 0

    def put(self, key: str, value: bytes, deadline: Deadline) -> None:
        """Leave a value for all ranks."""
        del deadline  # a store answers at once
        self._store.put(key, value)

    def get(self, key: str, deadline: Deadline) -> bytes:
        """Return a value, as soon as it is there."""
        found: list[bytes] = []

        def there() -> bool:
            value = self._store.find(key)
            if value is not None:
                found.append(value)
            return value is not None

        self._until(
            there, lambda: f"there is no value '{key}': a rank has not come as far", deadline
        )
        return found[0]

    def fence(self, deadline: Deadline) -> None:
        """Rank 0 waits for all, and all wait for rank 0: some 3p requests, not p * p."""
        name = f"fence{self._fences}."
        self._fences += 1
        self._store.put(f"{name}{self._rank}", b"1")
        if self._rank == 0:
            for rank in range(1, self._size):
                self._await(name, str(rank), deadline)
            self._store.put(f"{name}open", b"1")
        else:
            self._await(name, "open", deadline)
            self._store.put(f"{name}seen{self._rank}", b"1")

    def _await(self, name: str, mark: str, deadline: Deadline) -> None:
        self._until(
            lambda: self._store.find(name + mark) is not None,
            lambda: self._who_lacks(name),
            deadline,
        )

    def _until(self, done: Callable[[], bool], what: Callable[[], str], deadline: Deadline) -> None:
        if self._members is None:
            deadline.until(done, what)
        else:
            attended(self._members, done, what, deadline)

    def _who_lacks(self, name: str) -> str:
        """Say which ranks have not come to a fence; asked where time is up, so not for long."""
        end = Deadline(_FAREWELL)
        late = [
            rank
            for rank in range(self._size)
            if not end.over() and self._store.find(f"{name}{rank}") is None
        ]
        if not late:
            return "all ranks have come to meet, but rank 0 has not told them in time"
        return (
            f"{named(late)} not come to meet the others (this is rank {self._rank} of {self._size})"
        )

    def close(self) -> None:
        """Let go of the store. Rank 0, with which its files or its server go, lets others leave."""
        try:
            if self._rank == 0 and self._fences > 0:
                self._see_off(Deadline(_FAREWELL))
        finally:
            self._store.close()

    def _see_off(self, deadline: Deadline) -> None:
        """Wait a moment until all have seen that the last fence is open."""
        last = self._fences - 1
        with suppress(CollectiveError):
            for rank in range(1, self._size):
                self.get(f"fence{last}.seen{rank}", deadline)
