# SPDX-License-Identifier: Apache-2.0
"""Ranks on hosts, started by a script: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, a secret."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hosts import Hosts
from tests.hosts.faults import cut
from tests.hosts.jobs import ROOT

pytestmark = pytest.mark.hosts

PORT = 29511
SUM = (
    "import collectives as cl, numpy as np\n"
    "with cl.init({how}) as comm:\n"
    "    print(comm.rank, comm.allreduce(np.ones(3, np.int64) << comm.rank).tolist(), flush=True)\n"
)
CALLS = SUM + "    while True: comm.allreduce(np.ones(1 << 16))\n"
WITH_TORCH = (
    "import collectives as cl, numpy as np, torch, torch.distributed as dist\n"
    "with cl.init({how}) as comm:\n"
    "    dist.init_process_group('gloo')\n"
    "    x = torch.ones(2)\n"
    "    dist.all_reduce(x)\n"
    "    print(comm.rank, x.tolist(), comm.allreduce(np.ones(2)).tolist())\n"
    "    dist.destroy_process_group()\n"
)


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """Return a file with a secret."""
    path = tmp_path / "secret"
    path.write_text("5a" * 32 + "\n")
    path.chmod(0o600)
    return str(path)


def start(
    hosts: Hosts,
    rank: int,
    *,
    place: int | None = None,
    program: str = SUM,
    how: str = "timeout=20",
    size: int = 2,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a rank; rank r is on host r, or on host ``place``."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("COLLECTIVES")}
    own = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": hosts[0].address, "MASTER_PORT": PORT}
    pipe = subprocess.PIPE
    return hosts[rank if place is None else place].start(
        [sys.executable, "-c", program.format(how=how)],
        env=kept | {name: str(value) for name, value in own.items()} | dict(env or {}),
        cwd=ROOT,
        stdout=pipe,
        stderr=pipe,
    )


def ended(*ranks: subprocess.Popen[str]) -> list[tuple[int, str, str]]:
    """Wait for all; return exit code, output and complaints of each."""
    found = []
    for rank in ranks:
        printed, complaint = rank.communicate(timeout=40)
        found.append((rank.returncode, printed, complaint))
    return found


def listening(hosts: Hosts) -> bool:
    return f":{PORT}" in hosts[0].run(["ss", "-Hltn"])


def test_ranks_with_a_secret_meet(hosts: Hosts, secret: str) -> None:
    """Also where two are on one host, and by the name of a host."""
    env = {"COLLECTIVES_SECRET_FILE": secret, "MASTER_ADDR": "host0"}
    places = (0, 1, 1)
    ranks = [start(hosts, r, place=p, size=3, env=env) for r, p in enumerate(places)]
    for rank, (code, printed, complaint) in enumerate(ended(*ranks)):
        assert (code, printed) == (0, f"{rank} [7, 7, 7]\n"), complaint
        assert complaint == ""


def test_without_a_secret_the_error_says_how_to_make_one(hosts: Hosts) -> None:
    begun = time.monotonic()
    for code, printed, complaint in ended(start(hosts, 0), start(hosts, 1)):
        assert code != 0
        assert printed == ""
        assert "COLLECTIVES_SECRET_FILE is not set" in complaint
        assert "(umask 077; head -c 32 /dev/urandom" in complaint
    assert time.monotonic() - begun < 15  # nobody waits for anybody


def test_insecure_needs_none_and_warns_once(hosts: Hosts) -> None:
    how = "timeout=20, insecure=True"
    found = ended(*(start(hosts, r, how=how) for r in range(2)))
    assert [printed for _, printed, _ in found] == ["0 [3, 3, 3]\n", "1 [3, 3, 3]\n"]
    assert "".join(complaint for _, _, complaint in found).count("RuntimeWarning: insecure") == 1


def test_who_has_another_secret_and_who_has_none_stay_outside(
    hosts: Hosts, secret: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("77" * 32)
    other.chmod(0o600)
    inside = [start(hosts, 0, env={"COLLECTIVES_SECRET_FILE": secret})]
    strangers = [
        start(hosts, 1, place=2, how="timeout=2", env={"COLLECTIVES_SECRET_FILE": str(other)}),
        start(hosts, 1, place=2, how="timeout=2, insecure=True"),
    ]
    for code, _, complaint in ended(*strangers):
        assert code != 0
        assert "secret" in complaint
    inside.append(start(hosts, 1, env={"COLLECTIVES_SECRET_FILE": secret}))
    for code, _, complaint in ended(*inside):
        assert (code, complaint) == (0, "")


@pytest.mark.parametrize("culprit", [0, 1])
def test_who_has_no_good_secret_is_named_by_who_waits(
    hosts: Hosts, secret: str, tmp_path: Path, culprit: int
) -> None:
    """It cannot say why, as nobody knows that it is a rank; that somebody came is what is known."""
    empty = tmp_path / "empty"
    empty.touch(mode=0o600)
    own = [{"COLLECTIVES_SECRET_FILE": str(empty if r == culprit else secret)} for r in range(2)]
    waits = start(hosts, 1 - culprit, how="timeout=8", env=own[1 - culprit])
    if culprit == 1:
        while not listening(hosts):
            time.sleep(0.01)
    else:
        time.sleep(2)
    found = ended(start(hosts, culprit, how="timeout=8", env=own[culprit]), waits)
    assert all(code != 0 for code, _, _ in found)
    assert "COLLECTIVES_SECRET_FILE" in found[0][2]
    if culprit == 1:
        came = rf"refused, (the last of them )?from {re.escape(hosts[1].address)}"
        assert re.search(came, found[1][2])
        assert "it has not proved that it knows the secret" in found[1][2]
    else:
        assert "it refused the proof of this process" in found[1][2]


@pytest.mark.parametrize(
    "name", ["COLLECTIVES_SEND_BUFFER", "COLLECTIVES_TIMEOUT", "COLLECTIVES_ATTEMPT"]
)
def test_settings_without_sense_are_told_to_all(hosts: Hosts, secret: str, name: str) -> None:
    env = {"COLLECTIVES_SECRET_FILE": secret}
    for rank, (code, _, complaint) in enumerate(
        ended(start(hosts, 0, env=env), start(hosts, 1, env=env | {name: "x"}))
    ):
        assert code != 0
        whose = "rank 1 cannot take part: " if rank == 0 else ""
        assert f"InvalidArgumentError: {whose}{name}='x' is not" in complaint


def told_to_all(started: list[subprocess.Popen[str]], culprit: int, kind: str, reason: str) -> None:
    begun = time.monotonic()
    for rank, (code, _, complaint) in enumerate(ended(*started)):
        assert code != 0
        whose = "" if rank == culprit else f"rank {culprit} cannot take part: "
        assert f"{kind}: {whose}{reason}" in complaint
    assert time.monotonic() - begun < 10  # of 20


@pytest.mark.parametrize("culprit", [0, 1])
def test_insecure_beside_a_secret_is_told_to_all(hosts: Hosts, secret: str, culprit: int) -> None:
    env, how = {"COLLECTIVES_SECRET_FILE": secret}, "timeout=20, insecure=True"
    started = [
        start(hosts, r, env=env, how=how if r == culprit else "timeout=20") for r in range(2)
    ]
    told_to_all(started, culprit, "InvalidArgumentError", "insecure=True, but COLL")


@pytest.mark.parametrize("culprit", [0, 1])
def test_who_is_not_insecure_as_the_others_are_is_told_to_all(hosts: Hosts, culprit: int) -> None:
    started = [
        start(hosts, r, how="timeout=20" if r == culprit else "timeout=20, insecure=True")
        for r in range(2)
    ]
    told_to_all(started, culprit, "Error", "COLLECTIVES_SECRET_FILE is not set")


def test_garbage_at_the_port_does_not_matter(hosts: Hosts, secret: str) -> None:
    first = start(hosts, 0, env={"COLLECTIVES_SECRET_FILE": secret})
    while not listening(hosts):
        time.sleep(0.01)
    over = threading.Event()

    def disturb() -> None:
        while not over.is_set():
            with hosts[2].socket() as stranger:
                stranger.settimeout(2)
                try:
                    stranger.connect((hosts[0].address, PORT))
                    stranger.sendall(os.urandom(5000))
                except OSError:
                    continue

    idle = [hosts[2].socket() for _ in range(100)]
    for stranger in idle:
        stranger.connect((hosts[0].address, PORT))
    noise = threading.Thread(target=disturb)
    noise.start()
    try:
        time.sleep(0.3)
        second = start(hosts, 1, env={"COLLECTIVES_SECRET_FILE": secret})
        for code, _, complaint in ended(first, second):
            assert (code, complaint) == (0, "")
    finally:
        over.set()
        noise.join()
        for stranger in idle:
            stranger.close()


def test_an_interface_that_no_other_host_reaches_is_refused_by_init(
    hosts: Hosts, secret: str
) -> None:
    env = {"COLLECTIVES_SECRET_FILE": secret}
    lost = env | {"COLLECTIVES_INTERFACE": "lo"}
    for code, printed, complaint in ended(start(hosts, 0, env=env), start(hosts, 1, env=lost)):
        assert code != 0
        assert printed == ""
        assert "rank 1 listens at 127.0.0.1, the address of lo" in complaint


@pytest.mark.parametrize("has_others", [True, False])
def test_a_link_local_address_keeps_its_interface(secret: str, has_others: bool) -> None:
    """Interfaces have other numbers on the other host; where it has IPv4, ranks listen there."""
    enable = "for it in all eth0; do echo 0 > /proc/sys/net/ipv6/conf/$it/disable_ipv6; done; "
    with Hosts(2) as hosts:
        for r in range(2):
            more = "" if has_others else "; ip addr flush dev eth0 scope global"
            given = f"ip addr add fe80::{r + 1}/64 dev eth0 nodad"
            hosts[r].run(["sh", "-c", f"{enable}ip -6 addr flush dev eth0; {given}{more}"])
        env = {"COLLECTIVES_SECRET_FILE": secret, "MASTER_ADDR": "fe80::1%eth0"}
        numbers = {hosts[r].run(["cat", "/sys/class/net/eth0/ifindex"]) for r in range(2)}
        for rank, (code, printed, complaint) in enumerate(
            ended(*(start(hosts, r, env=env) for r in range(2)))
        ):
            if has_others or len(numbers) == 1:
                assert (code, printed) == (0, f"{rank} [3, 3, 3]\n"), complaint
            else:
                assert "rank 0 listens at [fe80::1%" in complaint


def test_a_second_rank_of_one_number_is_told(hosts: Hosts, secret: str) -> None:
    env = {"COLLECTIVES_SECRET_FILE": secret}
    first = start(hosts, 0, size=3, env=env)
    twins = [start(hosts, 1, place=p, size=3, env=env) for p in (1, 2)]
    while all(twin.poll() is None for twin in twins):
        time.sleep(0.01)
    last = start(hosts, 2, size=3, env=env)
    found = ended(*twins)
    assert sorted(code != 0 for code, _, _ in found) == [False, True]
    refused = next(complaint for code, _, complaint in found if code != 0)
    assert "it is connected to another process that is rank 1" in refused
    for code, _, complaint in ended(first, last):
        assert (code, complaint) == (0, "")


def test_a_rank_0_that_dies_ends_the_wait(hosts: Hosts, secret: str) -> None:
    """Before it listens that is not to be told from being late, so the time-out tells."""
    env = {"COLLECTIVES_SECRET_FILE": secret}
    first = start(hosts, 0, size=3, env=env)
    second = start(hosts, 1, size=3, env=env)
    while f":{PORT}" not in hosts[0].run(["ss", "-Htn", "state", "established"]):
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    begun = time.monotonic()
    code, _, complaint = ended(second)[0]
    assert code != 0
    assert "rank 0" in complaint
    assert "it has ended" in complaint
    assert time.monotonic() - begun < 5
    alone = ended(start(hosts, 1, how="timeout=1", env=env))[0]
    assert "has not met rank 0 within" in alone[2]
    assert "rank 0 at 10.77.0.1:29511 was tried in vain" in alone[2]
    ended(first)


def test_a_port_that_is_in_use_is_named(hosts: Hosts, secret: str) -> None:
    with hosts[0].socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after the tests before
        other.bind((hosts[0].address, PORT))
        other.listen()
        code, _, complaint = ended(start(hosts, 0, env={"COLLECTIVES_SECRET_FILE": secret}))[0]
    assert code != 0
    assert "EADDRINUSE" in complaint
    assert "MASTER_PORT" in complaint
    code, _, complaint = ended(start(hosts, 0, place=1, env={"COLLECTIVES_SECRET_FILE": secret}))[0]
    assert "EADDRNOTAVAIL" in complaint
    assert "MASTER_ADDR" in complaint


def test_the_time_of_silence_counts(secret: str) -> None:
    """A host that vanishes is found after the 2 s that were asked for, where 15 are usual."""
    env = {"COLLECTIVES_SECRET_FILE": secret, "COLLECTIVES_SILENCE": "2"}
    with Hosts(2) as hosts:
        ranks = [start(hosts, r, program=CALLS, how="timeout=30", env=env) for r in range(2)]
        for rank in ranks:
            assert rank.stdout is not None
            rank.stdout.readline()
        begun = time.monotonic()
        with cut(hosts[1]):
            found = ended(*ranks)
        for code, _, complaint in found:
            assert code != 0
            assert "PeerLostError" in complaint
        assert time.monotonic() - begun < 9


def test_a_host_that_vanishes_during_the_meeting_is_named_to_all(secret: str) -> None:
    """Rank 1 has come and waits for rank 2; what it is told then nobody acknowledges."""
    env = {"COLLECTIVES_SECRET_FILE": secret, "COLLECTIVES_SILENCE": "2"}
    with Hosts(3) as hosts:
        here = [start(hosts, r, size=3, how="timeout=60", env=env) for r in (1, 0)]
        while hosts[1].address not in hosts[0].run(["ss", "-Htn", "state", "established"]):
            time.sleep(0.05)
        time.sleep(1)
        begun = time.monotonic()
        with cut(hosts[1]):
            late = start(hosts, 2, size=3, how="timeout=60", env=env)
            gone, *others = ended(*here, late)
        for code, _, complaint in others:
            assert code != 0
            assert "rank 1 of job" in complaint
            assert "its machine has not answered for 2 s" in complaint
        assert gone[0] != 0
        assert time.monotonic() - begun < 30


def test_the_port_is_free_again_for_torch(hosts: Hosts, secret: str) -> None:
    """A script may give the same variables to torch.distributed."""
    pytest.importorskip("torch")
    env = {"COLLECTIVES_SECRET_FILE": secret}
    found = ended(*(start(hosts, r, program=WITH_TORCH, env=env) for r in range(2)))
    for rank, (code, printed, complaint) in enumerate(found):
        assert code == 0, complaint
        assert printed == f"{rank} [2.0, 2.0] [2.0, 2.0]\n"
