# SPDX-License-Identifier: Apache-2.0
"""The address at which ranks on other machines reach this one."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from collectives._ffi import check, ffi, lib, text
from collectives.environment import MASTER as MEETING_POINT
from collectives.errors import InvalidArgumentError, SystemCallError

INTERFACE = "COLLECTIVES_INTERFACE"
MASTER = "MASTER_ADDR"
LOOPBACK = ("127.", "[::1]")  # what such addresses begin with
_NOT_THE_LOOPBACK = "^lo"
_FAR_AWAY = "192.0.2.1"  # of no network (RFC 5737): only the way there is asked for
_ROOM = 128


def own_address(variables: Mapping[str, str] | None = None) -> str:
    """Return an address of this machine, as text.

    That of COLLECTIVES_INTERFACE, else the one that leads to rank 0 of `collrun --hosts` or to
    MASTER_ADDR, else to the default route, else that of the first interface that is not the
    loopback. Raises InvalidArgumentError that names the interfaces that there are, or a
    MASTER_ADDR that is no host.
    """
    env = os.environ if variables is None else variables
    interfaces = env.get(INTERFACE) or _NOT_THE_LOOPBACK
    host = env.get(MEETING_POINT, "").rpartition(":")[0] or env.get(MASTER)
    if host:
        return _for_others(_address(interfaces, numbers(host)))
    try:
        return _address(interfaces, _FAR_AWAY)
    except SystemCallError:  # there is no default route
        return _address(interfaces, None)


def _for_others(address: str) -> str:
    """Return the address, or one of the same interface that means the same on other hosts.

    A link-local one holds the number that this host gives the interface, which others do not know.
    """
    scope = address.strip("[]").partition("%")[2]
    return (scope and address_at(socket.if_indextoname(int(scope)))) or address


def _address(interfaces: str, peer: str | None) -> str:
    room = ffi.new("char[]", _ROOM)
    towards = ffi.NULL if peer is None else ffi.new("char[]", peer.encode())
    check(lib.coll_own_address(interfaces.encode(), towards, room, _ROOM))
    return text(room)


def interface_of(address: str) -> str:
    """Return the name of the interface of which this is the first address, or nothing."""
    names = (name for _, name in socket.if_nameindex())
    return next((name for name in names if address_at(name) == address), "")


def address_at(interface: str) -> str | None:
    """Return the first address of an interface, None where it has none or is down."""
    room = ffi.new("char[]", _ROOM)
    found = lib.coll_own_address(interface.encode(), ffi.NULL, room, _ROOM) == lib.COLL_OK
    return text(room) if found else None


def numbers(host: str) -> str:
    """Return the first address of a host, as digits; that of IPv6 in brackets.

    A link-local one (fe80::1%eth0) keeps its interface, as the number that it has on this host.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), None, type=socket.SOCK_STREAM
        )[0]
    except OSError as error:
        raise InvalidArgumentError(
            f"{MASTER}={host!r} is no host that is known here: {error}"
        ) from None
    if family != socket.AF_INET6:
        return str(address[0])
    bare = str(address[0]).partition("%")[0]
    scope = address[3] if len(address) == 4 else 0
    return f"[{bare}%{scope}]" if scope else f"[{bare}]"
