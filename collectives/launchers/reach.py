# SPDX-License-Identifier: Apache-2.0
"""Whether ranks listen where other hosts can reach them, as far as the addresses tell."""

from __future__ import annotations

import os
from collections.abc import Mapping

from collectives.errors import InvalidArgumentError
from collectives.launchers.directory import Deadline, Directory
from collectives.launchers.exchange import exchange
from collectives.launchers.interface import INTERFACE, LOOPBACK, interface_of

_MOST_NAMED = 16  # ranks


def check_reachable(
    directory: Directory,
    key: str,
    rank: int,
    doors: list[str],
    hosts: list[str],
    deadline: Deadline,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Raise InvalidArgumentError, on all ranks, where a rank listens where no other host finds it.

    That is at the loopback, or at an address that a rank of another network has, too, as the
    bridges of containers do. ``doors`` and ``hosts`` are what all have told, so all judge alike,
    and only then tell each other the names of the interfaces, under ``key``.
    """
    addresses = [door.split()[0].rpartition(":")[0] for door in doors]
    networks = [" ".join(host.split()[:2]) for host in hosts]
    address = _fault(addresses, networks)
    if address is None:
        _check_scopes(rank, addresses, networks)
        return
    env = os.environ if variables is None else variables
    own = f"{interface_of(addresses[rank])} {env.get(INTERFACE, '')}"
    told = exchange(directory, key, own, rank, len(doors), deadline)
    directory.fence(deadline)  # from here on rank 0 may end, and with it the directory
    here = [r for r, its in enumerate(addresses) if its == address]
    raise InvalidArgumentError(unreachable(address, here, told))


def _check_scopes(rank: int, addresses: list[str], networks: list[str]) -> None:
    """Raise, on all ranks, where link-local addresses have scopes that differ between hosts."""
    scopes = {r: it.strip("[]").partition("%")[2] for r, it in enumerate(addresses) if "%" in it}
    if len(set(networks)) == 1 or len(set(scopes.values())) < 2:
        return
    first = min(scopes)
    other = next(r for r in scopes if scopes[r] != scopes[first])
    raise InvalidArgumentError(
        f"rank {first} listens at {addresses[first]} and rank {other} at {addresses[other]} (this "
        f"is rank {rank}): link-local addresses, whose interfaces have different numbers on these "
        f"hosts: give the interface an IPv4 address, or one of fd00::/8, or name another one in "
        f"{INTERFACE}"
    )


def _fault(addresses: list[str], networks: list[str]) -> str | None:
    """Return the first address that other hosts cannot reach."""
    if len(set(networks)) == 1:
        return None
    first: dict[str, str] = {}
    for address, network in zip(addresses, networks, strict=True):
        if address.startswith(LOOPBACK) or first.setdefault(address, network) != network:
            return address
    return None


def unreachable(address: str, ranks: list[int], told: list[str]) -> str:
    """Say that ranks listen at an address where others do not find them.

    ``told``: of each rank the interface that has the address, and COLLECTIVES_INTERFACE.
    """
    names = sorted({name for r in ranks if (name := told[r].partition(" ")[0])})
    given = sorted({value for r in ranks if (value := told[r].partition(" ")[2])})
    interface = f", the address of {' and '.join(names)}" if names else ""
    why = (
        "which only their own host reaches"
        if address.startswith(LOOPBACK)
        else "though they are on different hosts, so other hosts cannot tell them apart"
    )
    chosen = f"{INTERFACE} is {' and '.join(map(repr, given))}" if given else f"without {INTERFACE}"
    some = ", ".join(map(str, ranks[:_MOST_NAMED])) + (", ..." if len(ranks) > _MOST_NAMED else "")
    listen = f"ranks {some} listen" if len(ranks) > 1 else f"rank {some} listens"
    return (
        f"the ranks of this job are on several hosts, and {listen} at {address}{interface}, "
        f"{why} ({chosen}): set {INTERFACE} to an interface in the network of all hosts, as eth0, "
        "or leave the wrong ones out, as ^lo,docker0"
    )
