# SPDX-License-Identifier: Apache-2.0
"""Where ranks listen that no other host can reach, all are told at once."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from collectives import errors
from collectives.launchers import interface, meeting, plain
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.interface import interface_of, numbers, own_address
from collectives.launchers.reach import check_reachable
from tests.python.test_launchers import PLAIN, Shared

HOSTS = ["boot1 7 a", "boot1 7 a", "boot2 7 b"]


def said(size: int, check: Callable[[StoreDirectory, int], object]) -> list[str]:
    """Return what each rank is told, nothing where all is well."""
    store = Shared()

    def rank(r: int) -> str:
        try:
            check(StoreDirectory(store, r, size), r)
        except errors.InvalidArgumentError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(rank, range(size)))


def found(
    addresses: list[str], hosts: list[str], interfaces: dict[int, str] | None = None
) -> list[str]:
    """Return what ranks are told that listen at these addresses."""
    doors = [f"{address}:{4000 + r} {address}:5000" for r, address in enumerate(addresses)]
    env = [{"COLLECTIVES_INTERFACE": (interfaces or {}).get(r, "")} for r in range(len(doors))]
    return said(
        len(doors),
        lambda it, r: check_reachable(it, "if", r, doors, hosts, Deadline(10), env[r]),
    )


def test_the_loopback_is_refused_on_several_hosts() -> None:
    told = found(["192.0.2.1", "192.0.2.1", "127.0.0.1"], HOSTS, {2: "lo"})
    assert len(set(told)) == 1
    assert "rank 2 listens at 127.0.0.1, the address of lo, which only their own host" in told[0]
    assert "(COLLECTIVES_INTERFACE is 'lo'): set COLLECTIVES_INTERFACE to" in told[0]
    assert "ranks 0, 1 listen at [::1]" in found(["[::1]", "[::1]", "[2001:db8::1]"], HOSTS)[2]


def test_link_local_addresses_whose_numbers_differ_are_refused() -> None:
    addresses = ["[fd00::1]", "[fe80::1%3]", "[fe80::2%4]"]
    told = found(addresses, HOSTS)
    assert "rank 1 listens at [fe80::1%3] and rank 2 at [fe80::2%4] (this is rank 0)" in told[0]
    assert all(told)
    assert found(["[fd00::1]", "[fe80::1%3]", "[fe80::2%3]"], HOSTS) == [""] * 3
    assert found(addresses, [HOSTS[0]] * 3) == [""] * 3


def test_the_scope_of_an_address_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    index = socket.if_nametoindex("lo")
    assert numbers("fe80::1%lo") == numbers("[fe80::1%lo]") == f"[fe80::1%{index}]"
    assert numbers("fd00::1") == "[fd00::1]"
    with pytest.raises(errors.InvalidArgumentError, match="MASTER_ADDR='fe80::1%nowhere0'"):
        numbers("fe80::1%nowhere0")
    # Another host gives the interface another number: an address that it has besides is better.
    monkeypatch.setattr(interface, "_address", lambda *_: f"[fe80::7%{index}]")
    assert own_address({"MASTER_ADDR": "fe80::1%lo"}) == "127.0.0.1"
    # And another name.
    job = {plain.find(PLAIN | {"MASTER_ADDR": f"fe80::1%{name}"}) for name in ("eth0", "ens3")}
    assert {it.job for it in job if it is not None} == {"fe80::1:29500"}


def test_one_address_on_two_hosts_is_refused() -> None:
    told = found(["172.17.0.1"] * 3, HOSTS, {0: "docker0", 2: "^eth0"})
    assert len(set(told)) == 1
    assert "ranks 0, 1, 2 listen at 172.17.0.1, though they are on different hosts" in told[0]
    assert "(COLLECTIVES_INTERFACE is '^eth0' and 'docker0')" in told[0]
    assert "(without COLLECTIVES_INTERFACE)" in found(["172.17.0.1"] * 3, HOSTS)[0]


@pytest.mark.parametrize(
    ("addresses", "hosts"),
    [
        (["192.0.2.1", "192.0.2.1", "192.0.2.2"], HOSTS),
        (["[2001:db8::1]", "[fe80::1%2]", "127.1.2.3"], ["boot 7 a"] * 3),
        (["127.0.0.1"] * 3, ["boot 7 a", "boot 7 a", "boot 7 b"]),  # two names, one network
    ],
)
def test_what_can_be_reached_is_not_refused(addresses: list[str], hosts: list[str]) -> None:
    assert found(addresses, hosts) == [""] * 3


def test_the_meeting_asks() -> None:
    env = {"COLLECTIVES_INTERFACE": "lo"}
    hosts = ["boot1 7 a", "boot2 7 b"]
    told = said(2, lambda it, r: meeting.agree(it, r, 2, Deadline(10), hosts[r], env, count=0))
    assert all("ranks 0, 1 listen at 127.0.0.1, the address of lo" in it for it in told)


def test_an_interface_has_a_name() -> None:
    assert interface_of("127.0.0.1") == "lo"
    assert interface_of("192.0.2.77") == ""
