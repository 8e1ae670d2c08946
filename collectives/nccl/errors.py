# SPDX-License-Identifier: Apache-2.0
"""What NCCL's results become: one exception for each of its codes.

::

    NcclError (CollectiveError)                     everything that NCCL reports
    ├── NcclCudaError                               1: a call of CUDA failed, or there is no driver
    ├── NcclSystemError (SystemCallError)           2: a system call failed
    ├── NcclInternalError                           3: a bug in NCCL, or memory that was overwritten
    ├── NcclInvalidArgumentError (InvalidArgumentError)   4: an argument is wrong
    ├── NcclInvalidUsageError                       5: calls that do not belong together
    ├── NcclRemoteError (PeerLostError)             6: another rank died, or the network failed
    └── NcclTimeoutError (CollectiveTimeoutError)   8: NCCL's own time-out

What is wrong before NCCL is called raises what the rest of the package raises:
InvalidArgumentError, UnsupportedError for what the library found does not have, ClosedError,
CollectiveTimeoutError where the time-out of a wait is over.
"""

from __future__ import annotations

from collectives.errors import (
    CollectiveError,
    CollectiveTimeoutError,
    InvalidArgumentError,
    PeerLostError,
    SystemCallError,
)
from collectives.nccl.constants import RESULTS

_NAMES = {code: name for name, code in RESULTS.items()}


class NcclError(CollectiveError):
    """A function of NCCL returned a code; ``last`` is what NCCL itself tells of its last error."""

    code: int
    name: str
    function: str
    last: str

    def __init__(self, function: str, code: int, said: str, last: str) -> None:
        """Keep the parts, and join them to a sentence."""
        self.code, self.function, self.last = code, function, last
        self.name = _NAMES.get(code, "a code that is not known here")
        told = f"{function}: {said or 'failed'} ({self.name}, {code})"
        super().__init__(f"{told}: {last}" if last else told)


class NcclCudaError(NcclError):
    """A call of CUDA failed, or there is no driver."""


class NcclSystemError(NcclError, SystemCallError):
    """A system call failed."""


class NcclInternalError(NcclError):
    """A bug in NCCL, or memory that was overwritten."""


class NcclInvalidArgumentError(NcclError, InvalidArgumentError):
    """NCCL found an argument wrong."""


class NcclInvalidUsageError(NcclError):
    """Calls that do not belong together, or something that this libnccl does not do."""


class NcclRemoteError(NcclError, PeerLostError):
    """Another rank died, or the network failed."""


class NcclTimeoutError(NcclError, CollectiveTimeoutError):
    """NCCL's own time-out is over."""


CLASSES: dict[int, type[NcclError]] = {
    1: NcclCudaError,
    2: NcclSystemError,
    3: NcclInternalError,
    4: NcclInvalidArgumentError,
    5: NcclInvalidUsageError,
    6: NcclRemoteError,
    8: NcclTimeoutError,
}


def error_of(function: str, code: int, said: str, last: str) -> NcclError:
    """Return the exception of a code."""
    return CLASSES.get(code, NcclError)(function, code, said, last)
