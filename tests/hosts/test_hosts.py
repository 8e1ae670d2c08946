# SPDX-License-Identifier: Apache-2.0
"""Hosts have names, networks and links of their own; programs and counters in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.hosts.hosts import MOST
from tests.hosts.identity import identity
from tests.hosts.pairs import carry, connected
from tests.hosts.tools import missing

pytestmark = pytest.mark.hosts


def test_every_host_has_its_name_address_and_network(hosts: Hosts) -> None:
    assert [host.run(["uname", "-n"]) for host in hosts] == ["host0\n", "host1\n", "host2\n"]
    for host in hosts:
        shown = host.run(["ip", "-4", "-brief", "address"])
        assert host.address in shown
        assert "127.0.0.1" in shown
        # What programs find in /sys are the links of the host, not those of the machine.
        assert {"eth0", "lo"} <= set(host.run(["ls", "/sys/class/net"]).split())
        assert host.run(["readlink", "/sys/class/net/eth0"]) != ""


def test_hosts_know_one_another_by_name(hosts: Hosts) -> None:
    known = hosts[0].run(["getent", "ahostsv4", "host2"])
    assert known.split()[0] == hosts[2].address


def test_all_hosts_run_reno(hosts: Hosts) -> None:
    for host in hosts:
        assert host.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]) == "reno\n"


def test_a_host_is_boot_network_and_name(hosts: Hosts) -> None:
    found = [identity(host) for host in hosts]
    assert len({who.network for who in found}) == 3
    assert {who.boot_id for who in found} == {
        Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    }
    assert [identity(host) for host in hosts] == found  # other processes, the same hosts
    assert Path("/proc/self/ns/net").stat().st_ino not in {who.network for who in found}


def test_a_program_runs_where_it_was_started_from(hosts: Hosts, tmp_path: Path) -> None:
    assert hosts[0].run(["pwd"]) == f"{Path.cwd()}\n"
    with hosts[1].start(["pwd"], cwd=tmp_path, stdout=subprocess.PIPE) as program:
        assert program.communicate()[0] == f"{tmp_path}\n"


def test_the_process_of_a_program_is_the_program(hosts: Hosts) -> None:
    with hosts[0].start(["sh", "-c", "echo $$; cat"], stdin=-1, stdout=-1) as program:
        assert program.stdout is not None
        assert int(program.stdout.readline()) == program.pid
        program.kill()
    assert program.returncode == -9


def test_a_program_that_fails_says_where_and_why(hosts: Hosts) -> None:
    with pytest.raises(RuntimeError, match=r"host1: 'cat /nowhere' failed with 1: .*No such file"):
        hosts[1].run(["cat", "/nowhere"])


def test_counters_show_what_passed_and_only_that(hosts: Hosts) -> None:
    payload = bytes(1_000_000)
    with connected(hosts[0], hosts[1]) as (ours, theirs):
        with (
            hosts[0].counted() as source,
            hosts[1].counted() as target,
            hosts[2].counted() as other,
        ):
            assert carry(ours, theirs, payload) == payload
        for counted in (source.sent_bytes, target.received_bytes):
            assert len(payload) < counted < 1.1 * len(payload)
        assert 0 < source.received_bytes < 0.1 * len(payload)  # acknowledgements
        assert target.sent_packets > 0
        assert other.received_bytes < 1000


def test_counters_hold_what_passed_before_an_exception(hosts: Hosts) -> None:
    def fail_behind_bytes() -> None:
        assert carry(ours, theirs, bytes(5000)) == bytes(5000)
        raise KeyError

    with (
        connected(hosts[0], hosts[1]) as (ours, theirs),
        pytest.raises(KeyError),
        hosts[0].counted() as traffic,
    ):
        fail_behind_bytes()
    assert traffic.sent_bytes > 5000


def test_a_shape_is_installed_both_ways_and_bytes_pass_it() -> None:
    with Hosts(2, mbit=500) as hosts:
        for host in hosts:
            for shape in host.shapes():
                assert shape is not None
                assert (shape.mbit, shape.queue_ms) == (500, 50)
                assert shape.bucket == pytest.approx(256 * 1024, rel=0.01)
        payload = bytes(1 << 20)
        with connected(hosts[0], hosts[1]) as (ours, theirs), hosts[1].counted() as traffic:
            assert carry(ours, theirs, payload) == payload
        assert traffic.received_bytes > len(payload)


def test_hosts_without_a_rate_are_not_shaped(hosts: Hosts) -> None:
    assert [host.shapes() for host in hosts] == [(None, None)] * 3


def test_what_is_missing_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing() is None
    monkeypatch.setattr("tests.hosts.tools.PATH", "/nowhere")
    assert missing() == "hosts need the program ip: install the package iproute2."
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RuntimeError, match="only root may make: run the tests as root"):
        Hosts(1).__enter__()


@pytest.mark.parametrize("n", [0, MOST + 1])
def test_a_wrong_number_of_hosts_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=rf"Hosts\({n}\): from 1 to {MOST}"):
        Hosts(n)
