# SPDX-License-Identifier: Apache-2.0
"""The store that rank 0 keeps for the others while they meet, at an address that all know."""

from __future__ import annotations

from collectives._ffi import ffi
from collectives.errors import CollectiveError, InvalidArgumentError
from collectives.launchers.directory import Deadline
from collectives.launchers.interface import LOOPBACK, MASTER, numbers
from collectives.launchers.launch import Launch
from collectives.launchers.native import NativeDirectory


def open_master(
    launch: Launch,
    deadline: Deadline,
    secret: bytes,
    trouble: CollectiveError | None = None,
    silence: float = 0.0,
) -> NativeDirectory:
    """Meet all ranks at the address of rank 0; each proves that it knows the secret.

    ``trouble``: why this rank cannot take part, which the others are told where it gives up.
    ``silence``: seconds after which a machine that does not answer is dead; 0: 15.

    Raises InvalidArgumentError for an address that cannot be that of several hosts,
    SystemCallError where rank 0 cannot listen there, CollectiveTimeoutError naming who has not
    come, BootstrapError where a rank is refused or ends.
    """
    assert launch.master is not None
    host, port = launch.master
    address = numbers(host)
    if launch.launcher == "environment" and address.startswith(LOOPBACK):
        raise InvalidArgumentError(
            f"{MASTER}={host!r} leads to {address} here, which no other machine reaches: set it to "
            "an address in the network of all hosts, or, where all ranks are on this machine, to "
            "127.0.0.1"
        )
    options = ffi.new("coll_directory_options *")
    at = ffi.new("char[]", f"{address}:{port}".encode())
    job = ffi.new("char[]", launch.job.encode("utf-8", "surrogateescape"))
    key = ffi.new("uint8_t[]", secret)
    options.at, options.job, options.secret = at, job, key
    if trouble is not None:
        why = ffi.new("char[]", str(trouble).encode("utf-8", "replace"))
        options.trouble = why  # which lives as long as this function
    options.silence = silence
    options.attempt, options.rank, options.ranks = launch.attempt, launch.rank, launch.size
    return NativeDirectory(options, deadline)
