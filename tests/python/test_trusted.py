# SPDX-License-Identifier: Apache-2.0
"""Networks that are trusted: what is one, who is in them, and what ranks make of it together."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

import collectives as cl
from collectives.launchers import meeting, transport, trusted, wire
from collectives.launchers.detect import place
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.transport import Wish, settled, wished
from collectives.launchers.trusted import declared, devices, outside
from tests.python.test_exchange import Seen, Shared

ROOT = Path(__file__).parents[2]
FEW = tuple(ip_network(text) for text in ("10.1.0.0/16", "fd00::/8"))
IN, ALSO_IN, OUT = "10.1.2.3:5 10.1.2.3:6", "[fd00::7%eth0]:5 [fd00::7%eth0]:6", "10.2.0.1:5"


@pytest.mark.parametrize(
    "given",
    [
        "10.1.0.0/16, fd00::/8",
        " fd00::/8,10.1.0.0/16,10.1.0.0/255.255.0.0 ",
        ["fd00::/8", "10.1.0.0/16"],
        (network for network in FEW),
    ],
)
def test_networks_in_any_order_and_spelling_are_the_same(given: Any) -> None:
    assert declared(given, {}) == FEW


def test_what_the_program_says_counts_before_the_environment() -> None:
    env = {"COLLECTIVES_TRUSTED": "10.1.0.0/16,fd00::/8"}
    assert declared(None, env) == FEW
    assert declared("10.9.8.7", env) == (ip_network("10.9.8.7/32"),)
    assert declared("", env) == declared([], env) == ()
    assert declared(None, {}) is declared(None, {"COLLECTIVES_TRUSTED": " "}) is None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("10.1.0.0/33", "trusted has '10.1.0.0/33', which is no network: give networks as"),
        ("10.1.0.0/16,", "trusted has '', which is no network"),
        ("eth0", "'eth0', which is no network"),
        (["10.1.0.0/16, fd00::/8"], "which is no network"),
        ("10.1.2.3/16", "an address in the network 10.1.0.0/16: give that, or 10.1.2.3 for the"),
        ("fd00::1/8", "an address in the network fd00::/8"),
        (5, "trusted has 5"),
        ([5], "trusted has 5"),
        ([True], "trusted has True"),
        (b"10.1.0.0/16", "trusted has b'10"),
        ({"10.1.0.0/16": 1}, "trusted has {'10"),
        ([None], "trusted has None"),
        ("x" * 500, "trusted has 'x{59}, which"),
        ([f"10.0.{i}.0/24" for i in range(256)] + ["fd00::/8"], "has 257 networks: give at most"),
    ],
)
def test_what_is_no_network_is_refused(given: Any, says: str) -> None:
    with pytest.raises(cl.InvalidArgumentError, match=says):
        place(variables={}, trusted=given)


def test_a_variable_without_sense_is_named() -> None:
    with pytest.raises(cl.InvalidArgumentError, match="COLLECTIVES_TRUSTED has 'moon'"):
        place(variables={"COLLECTIVES_TRUSTED": "10.0.0.0/8,moon"})


def test_who_listens_outside_is_named() -> None:
    assert outside([IN, ALSO_IN, "[::ffff:10.1.7.7]:9"], FEW) is None
    assert outside([IN, OUT, "192.0.2.1:7"], FEW) == (1, "10.2.0.1")
    assert outside([ALSO_IN, "[fe80::1%eth0]:7"], FEW) == (1, "fe80::1%eth0")
    assert outside([IN], ()) == (0, "10.1.2.3")


def test_devices_of_trusted_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {"lo": "127.0.0.1", "eth0": "10.1.2.3", "ib0": "[fd00::7]", "eth1": "192.0.2.1"}
    names = [*addresses, "down"]
    monkeypatch.setattr("socket.if_nameindex", lambda: list(enumerate(names)))
    monkeypatch.setattr(trusted, "address_at", addresses.get)
    for name, card, port in (("ib0", "mlx5_0", "1\n"), ("eth1", "mlx5_1", "0"), ("eth0", "", "0")):
        (tmp_path / name / "device" / "infiniband" / card).mkdir(parents=True)
        (tmp_path / name / "dev_port").write_text(port)
    assert devices(FEW, tmp_path) == "eth0,ib0,mlx5_0:2"
    assert devices((ip_network("192.0.2.0/24"),), tmp_path) == "eth1,mlx5_1:1"
    assert devices((), tmp_path) == ""


@pytest.mark.parametrize(
    ("wish", "doors", "say", "goes"),
    [
        (Wish("auto"), [IN, OUT], ["", ""], "auto"),
        (Wish("ucx"), [IN, OUT], ["", ""], "ucx"),
        (Wish("auto", FEW), [IN, ALSO_IN], ["1.13.1", "1.13.1"], "ucx"),
        (Wish("auto", FEW), [IN, ALSO_IN], ["1.13.1", "1.15.0"], "auto"),
        (Wish("auto", FEW), [IN, ALSO_IN], ["1.13.1", ""], "auto"),
        (Wish("auto", FEW), [IN, IN], ["", ""], "auto"),
        (Wish("auto", ()), [IN, IN], ["", ""], "auto"),
        (Wish("ucx", FEW), [IN, ALSO_IN], ["wanted", "wanted"], "ucx"),
    ],
)
def test_what_ranks_take(wish: Wish, doors: list[str], say: list[str], goes: str) -> None:
    assert {settled(wish, rank, doors, say) for rank in range(2)} == {goes}


@pytest.mark.parametrize(
    ("wish", "doors", "says"),
    [
        (Wish("ucx", FEW), [IN, OUT], "rank 1 listens at 10.2.0.1, which is in none of .10.1.0.0"),
        (Wish("ucx", ()), [IN, IN], r"rank 0 listens at 10.1.2.3, which is in none of \[\] "),
        (Wish("ucx", FEW), [IN, IN], "rank 0 is on a machine where the first address of each"),
    ],
)
def test_ucx_outside_is_refused(wish: Wish, doors: list[str], says: str) -> None:
    for rank in range(2):
        with pytest.raises(cl.InvalidArgumentError, match=f"{says}.*this is rank {rank}"):
            settled(wish, rank, doors, ["", "wanted"])


def test_a_rank_asks_for_its_ucx_in_trusted_networks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library() -> str:
        raise AssertionError("it is not to be looked for")

    monkeypatch.setattr(transport, "ucx_library", no_library)
    for wish, door in ((Wish(), IN), (Wish("auto", ()), IN), (Wish("auto", FEW), OUT)):
        assert transport.own_ucx(wish, door, "eth0") == ""
    assert transport.own_ucx(Wish("ucx", FEW), IN, "eth0") == "wanted"


def test_without_ucx_a_rank_asks_for_none() -> None:
    """In a process of its own: a library that was opened before stays open."""
    program = (
        "from collectives.launchers import transport\n"
        "from tests.python.test_trusted import FEW, IN, Wish\n"
        "assert transport.own_ucx(Wish('auto', FEW), IN, 'eth0') == ''\n"
    )
    env = os.environ | {"COLLECTIVES_UCX": "/nowhere/libucp.so.0"}
    subprocess.run([sys.executable, "-c", program], env=env, cwd=ROOT, check=True)


def test_where_no_device_is_trusted_ucx_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UCX_NET_DEVICES", raising=False)
    assert transport.own_ucx(Wish("ucx", FEW), IN, "") == ""
    monkeypatch.setenv("UCX_NET_DEVICES", "eth7")
    assert transport.own_ucx(Wish("ucx", FEW), IN, "") == "wanted"


def agreed(wishes: list[Wish], hosts: list[str] | None = None) -> list[Any]:
    """Return what each rank gets, a wire, None or an error, from a meeting at the loopback."""
    store, size = Shared(), len(wishes)
    where = hosts or [f"boot {rank} host" for rank in range(size)]
    env = {"COLLECTIVES_INTERFACE": "lo"}

    def rank(r: int) -> Any:
        directory = StoreDirectory(Seen(store), r, size)
        try:
            return meeting.agree(
                directory, r, size, Deadline(20), where[r], env, count=0, wish=wishes[r]
            )[1]
        except cl.InvalidArgumentError as error:
            return str(error)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(rank, range(size)))


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ranks of several hosts listen at the loopback."""
    monkeypatch.setattr(meeting, "check_reachable", lambda *_: None)


def able(versions: list[str]) -> Callable[..., str]:
    """Return what stands for own_ucx(), where ranks have these versions in any order."""
    return lambda *_: versions.pop()


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(("last", "goes"), [("1.13.1", "ucx"), ("", "auto"), ("1.12.0", "auto")])
def test_hosts_in_trusted_networks_take_ucx_where_all_have_it(
    last: str, goes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "own_ucx", able(["1.13.1", "1.13.1", last]))
    found = agreed([wished(None, "127.0.0.0/8", {})] * 3)
    assert [one.transport for one in found] == [goes] * 3
    assert {one.devices for one in found} == ({"lo"} if goes == "ucx" else {""})


def test_one_machine_stays_with_its_memory() -> None:
    assert agreed([wished("auto", "0.0.0.0/0", {})] * 2, ["boot 1 host"] * 2) == [None, None]


def test_all_are_told_who_is_outside() -> None:
    for rank, told in enumerate(agreed([wished("ucx", "10.0.0.0/8", {})] * 3)):
        assert "rank 0 listens at 127.0.0.1, which is in none of [10.0.0.0/8]" in told
        assert f"this is rank {rank}" in told


def test_ranks_that_trust_other_networks_are_told() -> None:
    wishes = [wished(None, given, {}) for given in ("10.0.0.0/8", "10.0.0.0/8", None)]
    for rank, told in enumerate(agreed(wishes)):
        assert (
            "rank 0 has trusted [10.0.0.0/8] and rank 2 has no networks, as none are said "
            f"(this is rank {rank}): give all ranks the same, by init(trusted=...) or COLLECTIVES_T"
        ) in told
