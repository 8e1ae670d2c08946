# SPDX-License-Identifier: Apache-2.0
"""Networks that the user trusts: in them connections may prove nothing, as those of UCX do."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from collectives.errors import InvalidArgumentError
from collectives.launchers.interface import address_at

TRUSTED = "COLLECTIVES_TRUSTED"
MOST = 256  # networks: all ranks tell each other theirs
_SYS = Path("/sys/class/net")

Network = IPv4Network | IPv6Network


def declared(
    given: str | Iterable[str] | None, env: Mapping[str, str]
) -> tuple[Network, ...] | None:
    """Return the networks: what the program says counts before the environment; None: not said.

    Raises InvalidArgumentError for what is no network.
    """
    if given is None:
        written = env.get(TRUSTED, "").strip()
        return _networks(TRUSTED, written.split(",")) if written else None
    if isinstance(given, str):
        return _networks("trusted", given.split(",") if given.strip() else [])
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise _refused("trusted", given)
    return _networks("trusted", given)


def outside(doors: list[str], networks: tuple[Network, ...]) -> tuple[int, str] | None:
    """Return the first rank that listens in none of the networks, and where."""
    for rank, door in enumerate(doors):
        address = door.split()[0].rpartition(":")[0].strip("[]")
        if not _within(address, networks):
            return rank, address
    return None


def devices(networks: tuple[Network, ...], root: Path = _SYS) -> str:
    """Return what UCX calls the devices of this machine in these networks, "eth0,mlx5_0:1".

    An interface belongs to the network of its first address; devices of InfiniBand and RoCE to
    that of their interface.
    """
    found = []
    for _, name in socket.if_nameindex():
        address = address_at(name)
        if address is not None and _within(address.strip("[]"), networks):
            found += [name, *_of_interface(root / name)]
    return ",".join(found)


def _of_interface(folder: Path) -> list[str]:
    """Return the ports of InfiniBand or RoCE that an interface is the face of."""
    try:
        port = int((folder / "dev_port").read_text()) + 1
    except (OSError, ValueError):
        return []
    return sorted(f"{it.name}:{port}" for it in folder.glob("device/infiniband/*"))


def _within(address: str, networks: tuple[Network, ...]) -> bool:
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return any(parsed in network for network in networks)


def _networks(name: str, parts: Iterable[object]) -> tuple[Network, ...]:
    found = {_network(name, part) for part in parts}
    if len(found) > MOST:
        raise InvalidArgumentError(
            f"{name} has {len(found)} networks: give at most {MOST}, larger ones"
        )
    return tuple(sorted(found, key=str))


def _network(name: str, part: object) -> Network:
    if not isinstance(part, str | IPv4Network | IPv6Network):
        raise _refused(name, part)
    text = str(part).strip()
    try:
        wide = ip_network(text, strict=False)
    except ValueError:
        raise _refused(name, part) from None
    if "/" in text and wide.network_address != ip_address(text.partition("/")[0]):
        raise InvalidArgumentError(
            f"{name} has {text!r}, which is an address in the network {wide}: give that, or "
            f"{text.partition('/')[0]} for the address alone"
        )
    return wide


def _refused(name: str, value: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} has {value!r:.60}, which is no network: give networks as '10.1.0.0/16, fd00::/8'"
    )
