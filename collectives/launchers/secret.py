# SPDX-License-Identifier: Apache-2.0
"""The secret that ranks of several hosts share where no launcher carries one: that of a file."""

from __future__ import annotations

import hashlib
import hmac
import os
import warnings
from collections.abc import Mapping

from collectives._ffi import check, ffi, lib
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.launchers.launch import Launch

SECRET_FILE = "COLLECTIVES_SECRET_FILE"
_EVERYBODY_KNOWS = hashlib.sha256(b"pycollectives: insecure=True").digest()


def own_secret(
    launch: Launch, env: Mapping[str, str], *, insecure: bool, one_host: bool
) -> bytes | None:
    """Return the secret of this user's file, None where there is none and none is needed.

    Raises InvalidArgumentError where it is needed, with the line that makes one, or its file is not
    safe, with what to do; and for ``insecure`` where there is nothing to refuse.
    """
    if insecure:
        _refuse_senseless(launch, env, one_host)
        if launch.rank == 0:
            warnings.warn(
                "insecure=True: anybody who reaches the ports of this job can take the place of a "
                "rank, and read and change what the ranks send",
                RuntimeWarning,
                stacklevel=4,
            )
        return _EVERYBODY_KNOWS
    return None if one_host else file_secret(env, required=launch.directory == "tcp")


def file_secret(env: Mapping[str, str], *, required: bool = False) -> bytes | None:
    """Return the secret in the file that the environment names, None where it names none."""
    path = env.get(SECRET_FILE)
    if not path and not required:
        return None
    room = ffi.new("uint8_t[]", lib.COLL_SECRET_BYTES)
    check(lib.coll_read_secret(os.fsencode(path) if path else ffi.NULL, room))
    return bytes(room)


def secret_of_meeting(secret: bytes, name: str) -> bytes:
    """Return what only ranks that know ``secret`` can make of the name of their meeting."""
    return hmac.digest(secret, b"pycollectives wire " + name.encode(), "sha256")


def _refuse_senseless(launch: Launch, env: Mapping[str, str], one_host: bool) -> None:
    if one_host:
        raise InvalidArgumentError(
            "insecure=True, but the ranks of this job are on one machine, where the kernel says "
            "who is who and no secret is needed: leave it out"
        )
    if launch.directory == "none":  # nothing that could be open to others either
        raise UnsupportedError(launch.lack)
    if launch.directory != "tcp" or launch.launcher != "environment":
        raise InvalidArgumentError(
            f"insecure=True, but the ranks of {launch.launcher} share a secret that their launcher "
            "or folder carries, without a file: leave it out"
        )
    if env.get(SECRET_FILE):
        raise InvalidArgumentError(
            f"insecure=True, but {SECRET_FILE} names a secret, too: leave one of them out, on all "
            "ranks alike"
        )
