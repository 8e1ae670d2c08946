# SPDX-License-Identifier: Apache-2.0
"""Nothing is left of hosts: after their end, an exception, and a run that was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.hosts.namespaces import NAMED, fresh, names, orphaned, started, sweep
from tests.hosts.tools import call

pytestmark = pytest.mark.hosts

# A run that makes two hosts with a program and its child in each, tells of them, and waits.
RUN = """
import subprocess, sys
from tests.hosts import Hosts
with Hosts(2) as hosts:
    script = ["sh", "-c", "trap '' INT TERM HUP; sleep 600 & echo $! $$; wait"]
    programs = [host.start(script, stdout=subprocess.PIPE) for host in hosts]
    print(hosts.first, *(word for it in programs for word in it.stdout.readline().split()))
    sys.stdout.flush()
    sys.stdin.read()
"""


def machine() -> list[object]:
    """Return what hosts could have changed of the machine itself."""
    files = ("/etc/hosts", "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/tcp_congestion_control")
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    return [
        {link["ifname"] for link in json.loads(call("ip", "-j", "link", "show"))},
        [mount for mount in mounts if str(NAMED) not in mount],
        *(Path(name).read_text(encoding="utf-8") for name in files if Path(name).exists()),
    ]


def await_death(pids: list[int]) -> None:
    """Wait until these processes are gone, or fail."""
    end = time.monotonic() + 10
    while alive := [pid for pid in pids if started(pid) is not None]:
        assert time.monotonic() < end, f"processes {alive} are still there"
        time.sleep(0.002)


def test_the_machine_itself_stays_as_it_is() -> None:
    before = machine()
    with Hosts(2):
        assert machine() == before
    assert machine() == before


def test_nothing_is_left_after_the_end() -> None:
    with Hosts(2) as hosts:
        first = hosts.first
        assert len(names(first)) == 3  # two hosts and the switch
        program = hosts[0].start(["sh", "-c", "sleep 600 & wait"])
    assert names(first) == []
    assert program.wait(timeout=10) == -signal.SIGKILL
    assert len(hosts) == 0
    hosts.close()  # a second time


def test_nothing_is_left_after_an_exception() -> None:
    stopped = []

    def fail(hosts: Hosts) -> None:
        stopped.append(hosts[1].start(["sleep", "600"]))
        os.kill(stopped[0].pid, signal.SIGSTOP)
        raise KeyError(hosts.first)

    with pytest.raises(KeyError) as caught, Hosts(2) as hosts:
        fail(hosts)
    assert names(*caught.value.args) == []
    assert stopped[0].wait(timeout=10) == -signal.SIGKILL


def test_nothing_is_left_where_hosts_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.hosts.hosts.CONGESTION", "no such control")
    hosts = Hosts(2)
    with pytest.raises(RuntimeError, match="a host has congestion control"):
        hosts.__enter__()
    assert hosts.first != ""
    assert names(hosts.first) == []


@pytest.fixture
def killed() -> tuple[str, list[int]]:
    """Kill a run that has hosts; return what its names begin with, and the programs in them.

    From then on other runs on this machine may sweep it, so what it has is looked at before.
    """
    root = Path(__file__).resolve().parents[2]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=root, stdin=pipe, stdout=pipe, text=True
    ) as run:
        assert run.stdout is not None
        first, *words = run.stdout.readline().split()
        pids = [int(word) for word in words]
        assert len(names(first)) == 3
        assert [started(pid) is not None for pid in pids] == [True] * 4
        run.kill()
    return first, pids


def test_the_next_run_sweeps_what_a_killed_one_left(killed: tuple[str, list[int]]) -> None:
    first, pids = killed
    with Hosts(1) as hosts:
        assert names(first) == []
        assert names(hosts.first) != []
    await_death(pids)


def test_two_sweeps_at_once_do_not_hinder_each_other(killed: tuple[str, list[int]]) -> None:
    first, pids = killed
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", "from tests.hosts.namespaces import sweep; sweep()"]
    sweeps = [subprocess.Popen(command, cwd=root) for _ in range(2)]
    assert [one.wait(timeout=20) for one in sweeps] == [0, 0]
    assert names(first) == []
    await_death(pids)


def test_only_names_of_dead_runs_are_swept() -> None:
    with Hosts(1) as hosts:
        assert not any(name.startswith(hosts.first) for name in sweep())
        assert len(names(hosts.first)) == 2
        assert hosts[0].run(["echo", "alive"]) == "alive\n"


def test_a_name_says_which_process_it_belongs_to() -> None:
    own = f"{fresh()}-0"
    assert not orphaned(own)
    prefix, pid, start, *rest = own.removeprefix("coll-").split("-")
    # The same process number, but of a process that began earlier.
    assert orphaned("-".join(["coll", prefix, pid, str(int(start) - 1), *rest]))
    assert not orphaned("someone-elses-name")
    assert not orphaned("coll-hosts-of-another-kind")
    assert fresh() != fresh()
