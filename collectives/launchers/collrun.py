# SPDX-License-Identifier: Apache-2.0
"""The variables of collrun, which programs and scripts may also set themselves."""

from __future__ import annotations

from collections.abc import Mapping

from collectives.environment import MASTER, RANK, SIZE, place
from collectives.errors import InvalidArgumentError
from collectives.launchers.launch import Launch


def find(env: Mapping[str, str]) -> Launch | None:
    """Return the place that collrun gave this process.

    Ranks of one machine meet without a directory, those of `--hosts` where rank 0 is.
    """
    if RANK not in env and SIZE not in env:
        return None
    given = place(env)
    return Launch(
        "collrun",
        given.rank,
        given.size,
        directory="tcp" if MASTER in env else "none",
        how=f"{RANK}, {SIZE}",
        job=given.job or "default",
        attempt=given.attempt,
        master=_master(env),
        lack="ranks of collrun are on one machine and need no key-value store",
    )


def _master(env: Mapping[str, str]) -> tuple[str, int] | None:
    if MASTER not in env:
        return None
    host, _, port = env[MASTER].rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 1 <= int(port) <= 65535:
        raise InvalidArgumentError(
            f"{MASTER}={env[MASTER]!r} is no address and port: collrun --hosts sets it; take it "
            "out of the environment if this process was not started by it"
        )
    return host, int(port)
