# SPDX-License-Identifier: Apache-2.0
"""The exceptions: one class for each status of the native layer.

::

    CollectiveError (RuntimeError)       everything this library raises on purpose
    ├── InvalidArgumentError (ValueError)        your own argument is wrong; nothing was sent
    ├── UnsupportedError (NotImplementedError)   legal, but this build or algorithm cannot serve it
    ├── MismatchError                            the ranks did not make the same call
    ├── CollectiveTimeoutError (TimeoutError)    the time-out of the call ran out
    ├── PeerLostError (ConnectionError)          another rank died or left; see ``.rank``
    ├── AbortedError                             some rank aborted the communicator
    ├── ClosedError                              this rank closed it, or it is the forking parent's
    ├── OutOfMemoryError (MemoryError)
    ├── SystemCallError (OSError)                a system call failed; the text names it
    ├── BootstrapError (ConnectionError)         the ranks could not find each other
    └── InternalError                            a bug in this library: please report it

After InvalidArgumentError and UnsupportedError the communicator works on. After the others it has
failed on every rank, and each later call raises the first cause again: close it and start anew.
(But for a MismatchError of lengths that a v-form finds by itself: docs/errors.md.)
"""

from __future__ import annotations


class CollectiveError(RuntimeError):
    """Base of all errors of this library; ``rank`` is the rank at fault, None without one."""

    rank: int | None

    def __init__(self, message: str, rank: int | None = None) -> None:
        """Keep the sentence and the rank at fault."""
        super().__init__(message)
        self.rank = rank


class InvalidArgumentError(CollectiveError, ValueError):
    """An argument of this rank's own call is wrong. Nothing was sent."""


class UnsupportedError(CollectiveError, NotImplementedError):
    """A legal wish that this build or this algorithm cannot serve. Nothing was sent."""


class MismatchError(CollectiveError):
    """The ranks did not make the same call: kind, op, dtype, count, root or algorithm differ.

    Or, in a group or a structure, lengths, keys or overlaps of its arrays. Or a message waits for a
    rank that waits in a collective for the one with the message. ``rank`` is one of the two that
    the text names, not the same one on all ranks.
    """


class CollectiveTimeoutError(CollectiveError, TimeoutError):
    """The time-out of the call ran out; ``rank`` is the one that was waited for."""


class PeerLostError(CollectiveError, ConnectionError):
    """Another rank, ``rank``, died or left."""


class AbortedError(CollectiveError):
    """Some rank aborted the communicator; the text gives its reason."""


class ClosedError(CollectiveError):
    """The communicator was closed by this rank, or belongs to the parent of this process."""


class OutOfMemoryError(CollectiveError, MemoryError):
    """Memory for the communicator, a plan, a copy or a result could not be had."""


class SystemCallError(CollectiveError, OSError):
    """A system call failed; the text names it."""


class BootstrapError(CollectiveError, ConnectionError):
    """The ranks could not find each other."""


class InternalError(CollectiveError):
    """A bug in this library."""


# In the order of coll_status, whose numbers never change. 0 is success, 12 is "in progress".
CLASSES: dict[int, type[CollectiveError]] = {
    1: InvalidArgumentError,
    2: UnsupportedError,
    3: MismatchError,
    4: CollectiveTimeoutError,
    5: PeerLostError,
    6: AbortedError,
    7: ClosedError,
    8: OutOfMemoryError,
    9: SystemCallError,
    10: BootstrapError,
    11: InternalError,
}
