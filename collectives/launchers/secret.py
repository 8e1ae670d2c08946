# SPDX-License-Identifier: Apache-2.0
"""The secret that ranks of several hosts share where no launcher carries one: that of a file."""

from __future__ import annotations

import hashlib
import hmac
import os
import warnings
from collections.abc import Mapping

from collectives._ffi import check, ffi, lib
from collectives.errors import CollectiveError, InvalidArgumentError, UnsupportedError
from collectives.launchers.directory import named
from collectives.launchers.launch import Launch

SECRET_FILE = "COLLECTIVES_SECRET_FILE"
_COMPARED = b"pycollectives: have we one secret?"
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


def secret_or_why_not(
    launch: Launch, env: Mapping[str, str], *, insecure: bool, one_host: bool
) -> tuple[bytes | None, CollectiveError | None]:
    """Return :func:`own_secret`, or why there is none, where the ranks have another way to meet.

    Where ``insecure`` stands beside a secret, the others are met by that; a rank that has none
    shows itself where they meet as one that needs none: who does without, too, is told why, and
    whoever else waits there says that somebody without the secret came. It raises where there is
    nowhere to meet, or what is wrong is ``insecure`` itself.
    """
    try:
        return own_secret(launch, env, insecure=insecure, one_host=one_host), None
    except CollectiveError as error:
        if one_host or launch.directory not in ("tcp", "none"):
            return None, error
        known = file_secret_or_why_not(env)[0] if insecure else None
        if known is not None:
            return known, error
        if insecure or launch.directory == "none":
            raise
        return _EVERYBODY_KNOWS, error


def file_secret_or_why_not(
    env: Mapping[str, str],
) -> tuple[bytes | None, CollectiveError | None]:
    """Return the secret of the file, or why it is none."""
    try:
        return file_secret(env), None
    except CollectiveError as error:
        return None, error


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


def proof_of(secret: bytes | None) -> str:
    """Return what tells equal secrets from different ones, and nothing else; "" of none.

    Of that of a meeting, so that it is another one each time.
    """
    return "" if secret is None else hmac.digest(secret, _COMPARED, "sha256").hex()


def check_secrets(rank: int, proofs: list[str]) -> None:
    """Raise InvalidArgumentError, on all ranks, where some have a file, or not all the same secret.

    ``proofs``: :func:`proof_of` of each rank.
    """
    having, lacking = (
        [r for r, it in enumerate(proofs) if bool(it) is has] for has in (True, False)
    )
    if having and lacking:
        raise InvalidArgumentError(
            f"{SECRET_FILE} is set for {_ranks(having)}, but not for {_ranks(lacking)} (this is "
            f"rank {rank}): set it for all ranks of the job, or for none"
        )
    others = [r for r, it in enumerate(proofs) if it != proofs[0]]
    if others:
        have = "has" if len(others) == 1 else "have"
        raise InvalidArgumentError(
            f"{_ranks(others)} {have} another secret than rank 0 (this is rank {rank}): copy one "
            f"file to all hosts, and let {SECRET_FILE} name it for all ranks"
        )


def _ranks(ranks: list[int]) -> str:
    return named(ranks).rpartition(" ")[0]


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
            "insecure=True, but the ranks of this job share a secret that their launcher "
            f"({launch.launcher}) or folder carries, without a file: leave it out"
        )
    if env.get(SECRET_FILE):
        raise InvalidArgumentError(
            f"insecure=True, but {SECRET_FILE} names a secret, too: leave one of them out, on all "
            "ranks alike"
        )
