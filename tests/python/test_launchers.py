# SPDX-License-Identifier: Apache-2.0
"""Which launcher is found, from its variables; and the verdict on hosts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from collectives import environment, errors
from collectives.launchers import meeting, openmpi
from collectives.launchers.detect import detect, open_directory, place
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.interface import own_address
from collectives.launchers.transport import Wish, wished

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "run",
    "TORCHELASTIC_RESTART_COUNT": "2",
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "PMI_FD": "9", "MPI_LOCALRANKID": "2"}
TASK = {
    "SLURM_JOB_ID": "5",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_LOCALID": "1",
}
SRUN = TASK | {"PMI_FD": "9", "PMI_JOBID": "5.0", "PMI_RANK": "3", "PMI_SIZE": "4"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "n"}
PMIX = OPEN_MPI | {"PMIX_RANK": "0"}
PLAIN = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
COLLRUN = {"COLLECTIVES_RANK": "0", "COLLECTIVES_SIZE": "2"}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed here does not matter: nothing is."""
    monkeypatch.setattr(openmpi, "find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("env", "launcher", "rank", "size", "directory"),
    [
        ({}, "none", 0, 1, "none"),
        ({"MASTER_ADDR": "x", "SLURM_JOB_ID": "5", "SLURM_PROCID": "0"}, "none", 0, 1, "none"),
        (TORCHRUN, "torchrun", 1, 4, "torch"),
        (HYDRA, "mpiexec", 2, 4, "pmi1"),
        (HYDRA | {"PMI_VERSION": "2"}, "mpiexec", 2, 4, "pmi2"),
        (SRUN, "srun", 3, 4, "pmi2"),
        (TASK, "srun", 3, 4, "none"),
        (OPEN_MPI, "Open MPI", 0, 2, "none"),
        (PMIX, "Open MPI", 0, 2, "pmix"),
        (PLAIN, "environment", 1, 2, "none"),
        (PLAIN | {"MASTER_ADDR": "head"}, "environment", 1, 2, "tcp"),
        (PLAIN | {"MASTER_ADDR": "head", "LOCAL_WORLD_SIZE": "2"}, "environment", 1, 2, "none"),
        (PLAIN | {"MASTER_ADDR": "head", "LOCAL_WORLD_SIZE": "1"}, "environment", 1, 2, "tcp"),
        (COLLRUN, "collrun", 0, 2, "none"),
        (COLLRUN | {"COLLECTIVES_MASTER": "10.0.0.1:5"}, "collrun", 0, 2, "tcp"),
        # The inner one of two wins.
        (SRUN | TORCHRUN, "torchrun", 1, 4, "torch"),
        (SRUN | OPEN_MPI, "Open MPI", 0, 2, "none"),
        (SRUN | HYDRA, "mpiexec", 2, 4, "pmi1"),
        (SRUN | TORCHRUN | HYDRA | COLLRUN, "collrun", 0, 2, "none"),
        (HYDRA | PLAIN, "mpiexec", 2, 4, "pmi1"),
    ],
)
def test_the_launcher_is_found(
    env: dict[str, str], launcher: str, rank: int, size: int, directory: str
) -> None:
    found = detect(env)
    assert (found.launcher, found.rank, found.size) == (launcher, rank, size)
    assert found.directory == directory
    folder = detect(env | {"COLLECTIVES_RENDEZVOUS": "/x"}).directory
    assert folder == ("none" if launcher == "none" else "folder")


def test_what_a_launcher_says_of_hosts_and_restarts() -> None:
    found = detect(TORCHRUN)
    assert (found.local_rank, found.hosts, found.job, found.attempt) == (0, 2, "run", 2)
    found = detect(SRUN)
    assert (found.local_rank, found.hosts, found.job) == (1, 2, "slurm 5.0")
    named = detect(PLAIN | {"COLLECTIVES_RENDEZVOUS": "/x", "COLLECTIVES_JOB": "mine"})
    assert named.job == "mine"


def test_a_module_that_is_there_opens_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmpi, "find_spec", lambda name: ModuleSpec(name, None))
    assert detect(OPEN_MPI).directory == detect(PMIX).directory == "mpi"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"RANK": "0"}, "RANK is set but WORLD_SIZE is not"),
        ({"WORLD_SIZE": "1"}, "WORLD_SIZE is set but RANK is not"),
        (PLAIN | {"RANK": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        (PLAIN | {"RANK": "x"}, "RANK='x' is not an integer"),
        (HYDRA | {"PMI_SIZE": "2"}, "PMI_RANK=2 is not below PMI_SIZE=2"),
        ({"PMI_RANK": "0"}, "PMI_RANK is set but PMI_SIZE is not: mpiexec sets both"),
        ({"OMPI_COMM_WORLD_RANK": "0"}, "OMPI_COMM_WORLD_SIZE is not"),
        ({"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "1"}, "MASTER_ADDR is not"),
        ({"COLLECTIVES_RANK": "0"}, "COLLECTIVES_RANK is set but COLLECTIVES_SIZE is not"),
        (COLLRUN | {"COLLECTIVES_MASTER": "10.0.0.1"}, "COLLECTIVES_MASTER='10.0.0.1' is no"),
        (PLAIN | {"MASTER_ADDR": "head", "MASTER_PORT": "0"}, "MASTER_PORT='0' is not an integer"),
    ],
)
def test_variables_that_contradict_each_other(env: dict[str, str], words: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        detect(env)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (OPEN_MPI, "mpi4py or libpmix"),
        (TASK, "srun --mpi=pmi2"),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "PMI_FD is not"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "set MASTER_ADDR and MASTER_PORT"),
    ],
)
def test_where_there_is_no_channel_the_error_says_what_to_do(
    env: dict[str, str], words: str
) -> None:
    with pytest.raises(errors.UnsupportedError) as caught:
        place(1, env)
    assert words in str(caught.value)
    with pytest.raises(errors.UnsupportedError):
        open_directory(detect(env), Deadline(1), env)


def test_places_that_need_no_channel() -> None:
    assert place(1, {}) == environment.Place()
    assert place(1, COLLRUN) == environment.place(COLLRUN)
    assert place(1, {"PMI_RANK": "0", "PMI_SIZE": "1"}) == environment.Place()
    settings = {"COLLECTIVES_TIMEOUT": "7", "COLLECTIVES_ATTEMPT": "1"}
    why = "MASTER_ADDR is '127.0.0.1'"
    wanted = environment.Place(1, 2, "127.0.0.1:29500", 1, 7.0, only_here=why)
    assert place(1, PLAIN | settings) == wanted


class Shared:
    """A store that the threads of a test share."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def find(self, key: str) -> bytes | None:
        return self.values.get(key)

    def close(self) -> None:
        self.values = {}


def agreements(
    monkeypatch: pytest.MonkeyPatch,
    hosts: list[str],
    transports: list[str] | None = None,
    streams: list[int] | None = None,
) -> list[tuple[str, Any]]:
    """Let ranks on these hosts agree; return what each got."""
    ways = transports or ["auto"] * len(hosts)
    store, size = Shared(), len(hosts)
    monkeypatch.setattr(meeting, "_meetings", iter([0] * size))

    def rank(r: int) -> tuple[str, Any]:
        directory = StoreDirectory(store, r, size)
        here = {"COLLECTIVES_INTERFACE": "lo"}
        wish = Wish(ways[r], streams=1 if streams is None else streams[r])
        return meeting.agree(directory, r, size, Deadline(10), hosts[r], here, wish=wish)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(rank, range(size)))


def test_ranks_of_one_machine_agree_on_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    here = meeting.host()
    first, second = (agreements(monkeypatch, [here] * 3) for _ in range(2))
    assert len(set(first)) == len(set(second)) == 1
    assert first != second
    name, wire = first[0]
    assert name.startswith("launch-")
    assert wire is None


def test_ranks_that_want_ucx_are_connected_on_one_machine_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("collectives.launchers.wire.ucx_version", lambda devices: "1.13.1")
    agreed = agreements(monkeypatch, ["a 1 host"] * 2, ["ucx"] * 2)
    assert [wire.transport for _, wire in agreed] == ["ucx"] * 2
    assert agreed[0][1].hosts == ["host"] * 2


def test_ranks_that_want_different_transports_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="rank 0 has transport 'auto' and rank 2"):
        agreements(monkeypatch, ["a 1 host"] * 3, ["auto", "auto", "ucx"])


def test_ranks_that_want_different_numbers_of_streams_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says = r"rank 0 has COLLECTIVES_STREAMS 2 and rank 2 has 4 \(this is rank"
    with pytest.raises(errors.InvalidArgumentError, match=says):
        agreements(monkeypatch, ["a 1 one", "b 2 two", "c 3 three"], None, [2, 2, 4])
    name, wire = agreements(monkeypatch, ["a 1 host"] * 2, None, [2, 4])[0]
    assert name.startswith("launch-")
    assert wire is None  # on one machine they count for nothing


@pytest.mark.parametrize(
    ("given", "env", "says"),
    [
        ("tcp", {}, "transport is 'tcp': it must be 'auto' or 'ucx'"),
        (None, {"COLLECTIVES_TRANSPORT": "UCX"}, "COLLECTIVES_TRANSPORT is 'UCX': it must be"),
        (None, {"COLLECTIVES_TRANSPORT": ""}, "COLLECTIVES_TRANSPORT is ''"),
    ],
)
def test_a_transport_that_there_is_not_is_refused(
    given: str | None, env: dict[str, str], says: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        place(variables={"RANK": "0", "WORLD_SIZE": "2", **env}, transport=given)


def test_what_the_program_says_counts_before_the_environment() -> None:
    env = {"COLLECTIVES_TRANSPORT": "ucx"}
    ways = [wished(way, None, env) for way in (None, "auto", "ucx")]
    assert ways == [Wish("ucx"), Wish("auto"), Wish("ucx")]
    assert wished(None, None, {}) == Wish("auto")


@pytest.mark.parametrize(
    "names", [("COLLECTIVES_RANK", "COLLECTIVES_SIZE"), ("RANK", "WORLD_SIZE")]
)
def test_ucx_asks_for_a_channel(names: tuple[str, str]) -> None:
    with pytest.raises(errors.UnsupportedError, match="set COLLECTIVES_RENDEZVOUS"):
        place(variables={names[0]: "0", names[1]: "2"}, transport="ucx")


@pytest.mark.parametrize("other", ["a 1 host2", "a 2 host", "b 1 host"])
def test_ranks_of_several_hosts_learn_where_all_listen(
    monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(meeting, "check_reachable", lambda *_: None)  # it is one host
    agreed = agreements(monkeypatch, ["a 1 host", "a 1 host", other])
    wires = [wire for _, wire in agreed]
    assert len({name for name, _ in agreed}) == 1
    assert len({tuple(wire.doors) for wire in wires}) == 1
    assert all(door.startswith("127.0.0.1:") for door in wires[0].doors)
    assert len(set(wires[0].doors)) == 3
    assert len({wire.secret for wire in wires}) == 1
    assert len(wires[0].secret) == 32
    assert str(wires[0].secret) not in repr(wires[0])
    last = wires[0].hosts[2]
    assert wires[0].hosts[:2] == ["host", "host"]
    assert last == ("host2" if other.endswith("host2") else "host (2)")


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"COLLECTIVES_INTERFACE": "nowhere0"}, "nowhere0"),
        ({"MASTER_ADDR": "no.such.host.invalid"}, "MASTER_ADDR='no.such.host.invalid'"),
    ],
)
def test_an_address_that_is_none_is_named(variables: dict[str, str], says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        own_address(variables)


def test_a_missing_rank_ends_at_the_deadline() -> None:
    directory = StoreDirectory(Shared(), 0, 2)
    with pytest.raises(errors.CollectiveTimeoutError, match=r"after 0\.02 s rank 1 has not come"):
        directory.fence(Deadline(0.02))
