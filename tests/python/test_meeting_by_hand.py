# SPDX-License-Identifier: Apache-2.0
"""Ranks without a launcher meet where rank 0 is; the secret of a file; insecure=True; silence."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import collectives as cl
from collectives import environment, errors
from collectives.launchers import meeting, wire
from collectives.launchers.detect import detect, place
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.master import open_master
from collectives.launchers.secret import own_secret, secret_of_meeting, secret_or_why_not
from tests.ports import free_port
from tests.python.test_launchers import COLLRUN, HYDRA, PLAIN, SRUN, TORCHRUN, Shared

SECRET = "0f" * 32
HEAD = PLAIN | {"MASTER_ADDR": "192.0.2.1"}


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    """Return the path of a file as ranks want it."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def port() -> int:
    """Return a port of the loopback that is free now."""
    return free_port()


def member(rank: int, size: int, port: int, **more: str) -> dict[str, str]:
    """Return the variables of a rank of `collrun --hosts`, which may meet on the loopback."""
    return {
        "COLLECTIVES_RANK": str(rank),
        "COLLECTIVES_SIZE": str(size),
        "COLLECTIVES_MASTER": f"127.0.0.1:{port}",
    } | more


def exchanged(variables: list[dict[str, str]], seconds: float = 10) -> list[Any]:
    """Let ranks, as threads, exchange their numbers; return what each got, or its error."""

    def rank(env: dict[str, str]) -> Any:
        try:
            launch, deadline = detect(env), Deadline(seconds)
            secret = own_secret(launch, env, insecure=False, one_host=False)
            assert secret is not None
            directory = open_master(launch, deadline, secret)
            directory.put(f"n{launch.rank}", str(launch.rank).encode(), deadline)
            directory.fence(deadline)
            return b" ".join(directory.get(f"n{r}", deadline) for r in range(launch.size))
        except errors.CollectiveError as error:
            return error

    with ThreadPoolExecutor(len(variables)) as pool:
        return list(pool.map(rank, variables))


def test_ranks_with_the_secret_meet(secret_file: str, port: int) -> None:
    env = [member(r, 3, port, COLLECTIVES_SECRET_FILE=secret_file) for r in range(3)]
    assert exchanged(env) == [b"0 1 2"] * 3


def test_another_secret_gets_nowhere(secret_file: str, port: int, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("1e" * 32)
    other.chmod(0o600)
    files = (secret_file, str(other))
    env = [member(r, 2, port, COLLECTIVES_SECRET_FILE=files[r]) for r in range(2)]
    first, second = exchanged(env, 1.0)
    for error in (first, second):
        assert isinstance(error, errors.CollectiveTimeoutError | errors.BootstrapError)
    assert "has not proved that it knows the secret" in str(first)
    assert "rank 1 of job 'default', attempt 0 had not come" in str(first)
    assert "secret" in str(second)


def test_a_port_that_is_taken_is_named(secret_file: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        found = exchanged([member(0, 2, port, COLLECTIVES_SECRET_FILE=secret_file)])
    assert isinstance(found[0], errors.SystemCallError)
    assert re.search(
        rf"127.0.0.1:{port} failed: .* \(EADDRINUSE\).*no other program", str(found[0])
    )


def test_the_error_prints_the_line_that_makes_the_file(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="SECRET_FILE is not set") as caught:
        place(1, HEAD)
    line = re.search("`(.*)`", str(caught.value))
    assert line is not None
    subprocess.run(["sh", "-c", line[1]], cwd=tmp_path, check=True)
    env = HEAD | {"COLLECTIVES_SECRET_FILE": str(tmp_path / "collectives.secret")}
    made = own_secret(detect(env), env, insecure=False, one_host=False)
    assert made is not None
    assert len(made) == 32


def test_a_file_that_others_can_read_is_refused(secret_file: str) -> None:
    env = HEAD | {"COLLECTIVES_SECRET_FILE": secret_file}
    Path(secret_file).chmod(0o640)
    with pytest.raises(errors.InvalidArgumentError, match="mode 0640") as caught:
        place(1, env)
    assert SECRET not in str(caught.value)
    assert "remove it on all hosts" in str(caught.value)
    assert "`" not in str(caught.value)  # no line that overwrites what is there
    Path(secret_file).unlink()
    with pytest.raises(errors.SystemCallError, match=r"No such file.*make it once, with `"):
        place(1, env)
    with pytest.raises(errors.InvalidArgumentError, match="is a folder; give the path"):
        place(1, env | {"COLLECTIVES_SECRET_FILE": str(Path(secret_file).parent)})


def test_a_name_that_leads_to_this_machine_only_is_refused(secret_file: str) -> None:
    env = HEAD | {"MASTER_ADDR": "ip6-loopback", "COLLECTIVES_SECRET_FILE": secret_file}
    for name in ("[::1]", "::1 "):
        with pytest.raises(errors.InvalidArgumentError):
            place(1, env | {"MASTER_ADDR": name})
    with pytest.raises(errors.InvalidArgumentError, match="of one interface"):
        place(1, env | {"MASTER_ADDR": "0.0.0.0", "RANK": "0"})


def test_a_rank_that_stays_alone_says_whom_it_misses(secret_file: str, port: int) -> None:
    env = {"COLLECTIVES_SECRET_FILE": secret_file}
    first = exchanged([member(0, 3, port, **env)], 0.1)[0]
    second = exchanged([member(1, 3, port, **env)], 0.1)[0]
    assert isinstance(first, errors.CollectiveTimeoutError)
    assert "ranks 1, 2 of job 'default', attempt 0 had not come to 127.0.0.1" in str(first)
    assert isinstance(second, errors.CollectiveTimeoutError)
    assert "has not met rank 0 within" in str(second)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "on one machine"),
        (COLLRUN, "on one machine"),
        (PLAIN, "on one machine"),
        (TORCHRUN, r"share a secret that their launcher \(torchrun\)"),
        (HYDRA, r"share a secret that their launcher \(mpiexec\)"),
        (SRUN, r"share a secret that their launcher \(srun\)"),
        (HEAD | {"COLLECTIVES_RENDEZVOUS": "/x"}, "or folder carries"),
        (
            COLLRUN | {"COLLECTIVES_MASTER": "192.0.2.1:5"},
            r"share a secret that their launcher \(collrun\)",
        ),
        (HEAD | {"COLLECTIVES_SECRET_FILE": "/x"}, "leave one of them out"),
    ],
)
def test_insecure_is_refused_where_there_is_nothing_to_refuse(
    env: dict[str, str], words: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(errors.InvalidArgumentError, match=words):
            place(1, env, insecure=True)


def test_the_others_are_told_that_it_stands_beside_a_secret(secret_file: str) -> None:
    """They have the secret, and would wait for this rank in vain."""
    env = HEAD | {"COLLECTIVES_SECRET_FILE": secret_file}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known, error = secret_or_why_not(detect(env), env, insecure=True, one_host=False)
    assert known == bytes.fromhex(SECRET)
    assert "leave one of them out" in str(error)


def test_insecure_does_not_say_where_the_others_are() -> None:
    with pytest.raises(errors.UnsupportedError, match="set MASTER_ADDR"):
        place(1, {"RANK": "0", "WORLD_SIZE": "2"}, insecure=True)


def test_insecure_warns_once_on_rank_0_and_needs_no_file() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        known = {
            own_secret(detect(env), env, insecure=True, one_host=False)
            for env in (HEAD | {"RANK": "0"}, HEAD)
        }
    assert len(known) == 1
    assert [str(warning.message)[:14] for warning in seen] == ["insecure=True:"]
    assert issubclass(seen[0].category, RuntimeWarning)


def test_the_secret_of_a_file_is_never_told(secret_file: str) -> None:
    """Rank 0 says over the launcher's channel that there is one, not which."""
    store = Shared()
    here = {"COLLECTIVES_INTERFACE": "lo"}

    def met(store: Shared, *known: bytes | None) -> list[Any]:
        def rank(r: int) -> Any:
            try:
                directory = StoreDirectory(store, r, 2)
                return wire.meet(directory, "m", r, ["a", "b"], Deadline(10), here, known[r])
            except errors.InvalidArgumentError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(rank, range(2)))

    secret = secret_of_meeting(bytes.fromhex(SECRET), "name")
    assert secret != secret_of_meeting(bytes.fromhex(SECRET), "other")
    assert [found.secret for found in met(store, secret, secret)] == [secret] * 2
    assert not any(secret.hex().encode() in value for value in store.values.values())


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ("-s-", "COLLECTIVES_SECRET_FILE is set for rank 1, but not for ranks 0, 2 (this is rank"),
        ("s-s", "COLLECTIVES_SECRET_FILE is set for ranks 0, 2, but not for rank 1 (this is rank"),
        ("sso", "rank 2 has another secret than rank 0 (this is rank"),
        ("oss", "ranks 1, 2 have another secret than rank 0 (this is rank"),
    ],
)
def test_all_are_told_that_secrets_differ(files: str, says: str) -> None:
    """Under torchrun, mpiexec, srun and in a folder, whose store carries the meeting."""
    store, here = Shared(), {"COLLECTIVES_INTERFACE": "lo"}
    secrets = {"-": None, "s": b"s" * 32, "o": b"o" * 32}

    def rank(r: int) -> str:
        directory = StoreDirectory(store, r, 3)
        with pytest.raises(errors.InvalidArgumentError) as caught:
            meeting.agree(
                directory, r, 3, Deadline(10), f"boot {r} host{r}", here, secrets[files[r]], 0
            )
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        for r, text in enumerate(pool.map(rank, range(3))):
            assert text.startswith(f"{says} {r}): "), text
    told = b" ".join(store.values.values())
    assert not any(it in told for it in (b"s" * 32, b"73" * 32, b"o" * 32, b"6f" * 32))


def test_the_time_of_silence() -> None:
    assert place(1, COLLRUN | {"COLLECTIVES_SILENCE": "3"}).silence == 3.0
    for bad in ("1", "3601", "x", "nan"):
        with pytest.raises(errors.InvalidArgumentError, match=r"COLLECTIVES_SILENCE=.* 2 to 3600"):
            environment.place({"COLLECTIVES_SILENCE": bad})
    for wrong in (1, 3601, "5", True, float("nan")):
        with pytest.raises(errors.InvalidArgumentError, match=r"silence is .* from 2 to 3600"):
            cl.init(silence=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        (lambda: cl.Communicator.from_store(object(), 0, 2), "without set, get, check, add"),
        (lambda: cl.Communicator.from_store(Stored(), 2, 2), "rank is 2: ranks count from 0 to 1"),
        (lambda: cl.Communicator.from_store(Stored(), 0, 0), "size is 0"),
        (lambda: cl.Communicator.from_store(Stored(), -1, 2), "rank is -1"),
        (lambda: cl.Communicator.from_mpi(3), "comm is of type int"),
        (lambda: cl.Communicator.from_mpi(World(null=True)), "COMM_NULL"),
        (lambda: cl.Communicator.from_mpi(World(inter=True)), "an intercommunicator"),
    ],
)
def test_what_is_no_store_or_communicator_is_refused(
    begin: Callable[[], cl.Communicator], words: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=words):
        begin()


def test_a_store_in_which_nobody_else_comes() -> None:
    with pytest.raises(errors.CollectiveTimeoutError, match="rank 1 has not come"):
        cl.Communicator.from_store(Stored(), 0, 2, timeout=0.05)


def test_ranks_that_give_a_store_different_sizes() -> None:
    """Some may meet for something else, so it is told where time is up; whoever came first."""
    store = Stored()

    def met(r: int) -> int:
        with cl.Communicator.from_store(store, r, 2, timeout=20) as comm:
            return comm.size

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(met, range(2))) == [2, 2]

    def waits(r: int) -> str:
        with pytest.raises(errors.CollectiveTimeoutError) as caught:
            cl.Communicator.from_store(store, r, 4 - r, timeout=1)
        return str(caught.value)

    with ThreadPoolExecutor(2) as pool:
        of_four, of_three = pool.map(waits, range(2))
    assert "; to this store rank 1 of 3 came, too, and met nobody: give all ranks" in of_four
    assert "; to this store rank 0 of 4 came, too, and met nobody" in of_three
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(met, range(2))) == [2, 2]


def test_the_environment_says_how_data_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTIVES_INTERFACE", "lo")
    monkeypatch.setenv("COLLECTIVES_TRANSPORT", "ucx")
    monkeypatch.setenv("COLLECTIVES_TRUSTED", "10.0.0.0/8")
    store = Stored()

    def rank(r: int) -> None:
        with pytest.raises(errors.InvalidArgumentError, match=r"rank 0 listens at 127\.0\.0\.1,"):
            cl.Communicator.from_store(store, r, 2, timeout=20)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank, range(2))) == [None, None]
    monkeypatch.setenv("COLLECTIVES_TRANSPORT", "moon")
    with pytest.raises(errors.InvalidArgumentError, match="COLLECTIVES_TRANSPORT is 'moon'"):
        cl.Communicator.from_store(store, 0, 1)


def test_one_rank_needs_nobody() -> None:
    for comm in (cl.Communicator.from_store(Stored(), 0, 1), cl.Communicator.from_mpi(World())):
        with comm:
            assert (comm.rank, comm.size) == (0, 1)


class Stored:
    """What is used of a store of torch."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def set(self, key: str, value: bytes) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)

    def add(self, key: str, more: int) -> int:
        with self.lock:
            value = int(self.values.get(key, b"0")) + more
            self.values[key] = str(value).encode()
        return value


class World:
    """What is asked of a communicator of mpi4py with one rank."""

    def __init__(self, *, null: bool = False, inter: bool = False) -> None:
        self.null, self.inter = null, inter

    def __bool__(self) -> bool:
        return not self.null

    def Is_inter(self) -> bool:  # noqa: N802 (mpi4py's names)
        return self.inter

    def Get_rank(self) -> int:  # noqa: N802
        return 0

    def Get_size(self) -> int:  # noqa: N802
        return 1

    def Allgatherv(self, *_: Any) -> None:  # noqa: N802
        """Is there."""
