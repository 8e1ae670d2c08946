# SPDX-License-Identifier: Apache-2.0
"""collrun --hosts between hosts of namespaces, behind a stand-in for ssh."""

from __future__ import annotations

import signal
import sys
import time

import pytest

from tests.hosts import Hosts
from tests.processes.test_collrun_hosts import SUM, Started

pytestmark = pytest.mark.hosts

DIES = (
    "import collectives as cl, numpy as np, os, signal\n"
    "with cl.init(timeout=20) as comm:\n"
    "    comm.barrier()\n"
    "    if comm.rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
    "    comm.allreduce(np.ones(2))\n"
)
CALLS = (
    "import collectives as cl, numpy as np\n"
    "with cl.init(timeout=20) as comm:\n"
    "    comm.barrier()\n"
    "    print('here', flush=True)\n"
    "    while True: comm.allreduce(np.ones(2))\n"
)


def started(hosts: Hosts, names: str, program: str, *options: object, **env: str) -> Started:
    known = " ".join(f"{host.name}={host.keeper}" for host in hosts)
    python = (sys.executable, "-c", program)
    return Started("--hosts", names, *options, *python, FAKE_HOSTS=known, **env)


def test_ranks_of_several_hosts_meet(hosts: Hosts) -> None:
    with hosts[1].counted() as traffic:
        job = started(hosts, "host0,host1:2,host2", SUM, "--port", 29513)
        code, printed, complaint = job.ended()
    assert (code, complaint) == (0, "")
    assert sorted(printed.splitlines()) == [f"[{r}] {r} [10.0, 10.0]" for r in range(4)]
    assert traffic.sent_bytes > 1000  # it went over the wire


def test_a_rank_that_is_killed_is_named_with_its_host(hosts: Hosts) -> None:
    code, _, complaint = started(hosts, "host0,host1", DIES).ended()
    assert code == 128 + signal.SIGKILL
    assert "collrun: rank 1 (process " in complaint
    assert " on host1) was ended by SIGKILL" in complaint
    assert "PeerLostError" in complaint


def test_ctrl_c_ends_ranks_of_all_hosts(hosts: Hosts) -> None:
    job = started(hosts, "host0,host1", CALLS)
    assert {job.line() for _ in range(2)} == {"[0] here\n", "[1] here\n"}
    begun = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    code, _, complaint = job.ended()
    assert code != 0
    assert "KeyboardInterrupt" in complaint
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("interface", ["lo", "^eth0"])
def test_a_loopback_is_refused_at_once(hosts: Hosts, interface: str) -> None:
    job = started(hosts, "host0,host1", SUM, COLLECTIVES_INTERFACE=interface)
    code, _, complaint = job.ended()
    assert code != 0
    assert "rank 0 listens at 127.0.0.1, which only their own host reaches" in complaint
    assert f"COLLECTIVES_INTERFACE is '{interface}'" in complaint


def test_a_port_that_is_taken_is_named(hosts: Hosts) -> None:
    with hosts[0].socket() as other:
        other.bind((hosts[0].address, 29514))
        other.listen()
        code, _, complaint = started(hosts, "host0,host1", SUM, "--port", 29514).ended()
    assert code == 1
    assert "EADDRINUSE" in complaint
