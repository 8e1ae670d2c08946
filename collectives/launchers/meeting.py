# SPDX-License-Identifier: Apache-2.0
"""Ranks find out whether they are on one machine, and agree on how to meet."""

from __future__ import annotations

import itertools
import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path

from collectives.errors import CollectiveError
from collectives.launchers.directory import Deadline, Directory
from collectives.launchers.exchange import columns
from collectives.launchers.reach import check_reachable
from collectives.launchers.refusal import exchange_or_raise, together
from collectives.launchers.secret import secret_of_meeting
from collectives.launchers.transport import AUTO, Wish, check_equal, check_streams
from collectives.launchers.wire import ANY, Wire, meet

# All ranks meet equally often, so they count alike; keys are put once.
_meetings = itertools.count()


def host() -> str:
    """Return what tells this host from all others: boot id, network namespace and host name.

    Two containers of one machine that do not share their network cannot meet on a local socket.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {os.stat('/proc/self/ns/net').st_ino} {socket.gethostname()}"


def agree(
    directory: Directory,
    rank: int,
    size: int,
    deadline: Deadline,
    here: str | None = None,
    variables: Mapping[str, str] | None = None,
    secret: bytes | None = None,
    count: int | None = None,
    wish: Wish = ANY,
    trouble: CollectiveError | None = None,
) -> tuple[str, Wire | None]:
    """Return a name that these ranks share, drawn by rank 0, and what connects their hosts.

    None: they are all on one, and no other transport is wished. ``secret``: of the user's file,
    None: rank 0 draws one. ``count`` tells this meeting from others in the same directory; None:
    this process counts. ``trouble``: why this rank cannot take part, which all are told. Raises
    that, InvalidArgumentError where ranks have different wishes, or on several hosts different
    numbers of streams, or listen where other hosts cannot reach them, or UCX is not to be used.
    """
    meeting = f"meet{next(_meetings) if count is None else count}."
    if rank == 0:
        directory.put(f"{meeting}name", f"launch-{secrets.token_hex(16)}".encode(), deadline)

    def own_words() -> str:
        if trouble is not None:
            raise trouble
        return f"{here or host()}\n{wish}\n{wish.streams}"

    said = exchange_or_raise(directory, meeting, own_words, rank, size, deadline)
    name = directory.get(f"{meeting}name", deadline).decode("ascii", "replace")
    with together(directory, deadline):
        hosts, wishes, streams = columns(said, 3)
        check_equal(rank, wishes)
    if len(set(hosts)) == 1 and wish.transport == AUTO:
        directory.fence(deadline)  # from here on rank 0 may end, and with it the directory
        return name, None
    with together(directory, deadline):
        check_streams(rank, streams)
    own = None if secret is None else secret_of_meeting(secret, name)
    wire = meet(directory, meeting, rank, names_of(hosts), deadline, variables, own, wish)
    check_reachable(directory, f"{meeting}if", rank, wire.doors, hosts, deadline, variables)
    wire.shares_cores = hosts.count(hosts[rank]) > len(os.sched_getaffinity(0))
    return name, wire


def names_of(hosts: list[str]) -> list[str]:
    """Return a name for each rank's host, short and its own: containers may all be called alike."""
    return told_apart([it.rpartition(" ")[2] for it in hosts], hosts)


def told_apart(names: list[str], hosts: list[str]) -> list[str]:
    """Return the names; a name that several hosts have is numbered from its second host on.

    A host of which nothing is known but its name, "", is the first of that name.
    """
    known: dict[str, list[str]] = {}
    for name, it in zip(names, hosts, strict=True):
        if it and it not in known.setdefault(name, []):
            known[name].append(it)
    told = []
    for name, it in zip(names, hosts, strict=True):
        number = known[name].index(it) + 1 if it else 1
        told.append(name if number == 1 else f"{name} ({number})")
    return told
