# SPDX-License-Identifier: Apache-2.0
"""Ranks of several machines tell each other where they listen, and share a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from collectives._ffi import check, ffi, lib, text
from collectives.errors import BootstrapError
from collectives.launchers.directory import Deadline, Directory
from collectives.launchers.exchange import columns
from collectives.launchers.interface import own_address
from collectives.launchers.refusal import exchange_or_raise, together
from collectives.launchers.secret import check_secrets, proof_of
from collectives.launchers.transport import (
    AUTO,
    UCX,
    Wish,
    own_ucx,
    settled,
    ucx_version,
    warn_outside,
)
from collectives.launchers.trusted import devices

_ROOM = 512
ANY = Wish()
_FROM_FILE = b"of a file"  # what rank 0 says in the place of a secret that it does not tell


@dataclass
class Wire:
    """What connects this rank to others: its own listener, where all listen, and the secret.

    ``hosts`` are the names of the machines, by rank. ``devices`` are those that UCX may use, ""
    leaves it to UCX. ``only_between``: it is for ranks of several machines, and a group of ranks of
    one shares its memory.
    """

    listener: Any
    doors: list[str]
    hosts: list[str]
    secret: bytes = field(repr=False)
    shares_cores: bool = False
    transport: str = "auto"
    devices: str = ""
    only_between: bool = False


def meet(
    directory: Directory,
    prefix: str,
    rank: int,
    hosts: list[str],
    deadline: Deadline,
    variables: Mapping[str, str] | None = None,
    known: bytes | None = None,
    wish: Wish = ANY,
) -> Wire:
    """Open a listener and exchange its place for those of all ranks.

    ``known``: the secret, where the ranks have it from elsewhere. Else the launcher's channel
    carries it, and rank 0 draws it: whoever may read that channel belongs to the job. ``wish``:
    equal on all ranks, which decide by it, once they know where all are, how data goes.
    """
    if rank == 0:
        told = _FROM_FILE if known is not None else made_secret().hex().encode()
        directory.put(f"{prefix}secret", told, deadline)
    listeners = []
    near = devices(wish.trusted) if wish.trusted else ""

    def own() -> str:
        listeners.append(listen(own_address(variables)))
        door = _text_of(listeners[0])
        say = own_ucx(wish, door, near)
        if wish.transport == UCX and (say or wish.trusted is None):
            ucx_version(near)  # who lacks it says so now, or the others would only see it gone
        return f"{door}\n{say}\n{proof_of(known)}"

    told_by = exchange_or_raise(directory, f"{prefix}door", own, rank, len(hosts), deadline)
    with together(directory, deadline):
        doors, say, proofs = columns(told_by, 3)
        check_secrets(rank, proofs)
    told = directory.get(f"{prefix}secret", deadline)
    directory.fence(deadline)  # from here on rank 0 may end, and with it the directory
    wire = Wire(listeners[0], doors, hosts, _secret(told, known))
    wire.transport = settled(wish, rank, doors, say)
    wire.devices = near if wire.transport == UCX else ""
    wire.only_between = wish.transport == AUTO
    if rank == 0:
        warn_outside(wish, doors)
    return wire


def _secret(told: bytes, known: bytes | None) -> bytes:
    if known is not None:
        return known
    try:
        return bytes.fromhex(told.decode())
    except ValueError as error:
        raise BootstrapError(
            "the value by which rank 0 tells all ranks their secret is damaged: start the job again"
        ) from error


def listen(address: str) -> Any:
    """Open a listener, which closes when nothing refers to it any more."""
    made = ffi.new("coll_listener **")
    check(lib.coll_listener_open(address.encode(), made))
    return ffi.gc(made[0], lib.coll_listener_close)


def _text_of(listener: Any) -> str:
    room = ffi.new("char[]", _ROOM)
    lib.coll_listener_text(listener, room, _ROOM)
    return text(room)


def made_secret() -> bytes:
    """Draw a secret from the kernel's randomness."""
    room = ffi.new("uint8_t[]", lib.COLL_SECRET_BYTES)
    check(lib.coll_make_secret(room))
    return bytes(room)
