# SPDX-License-Identifier: Apache-2.0
"""Ranks whose data goes by UCX, over each of its ways that this machine has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.processes.jobs import collrun, read, read_rank

pytestmark = [pytest.mark.extras, pytest.mark.processes]

# In UCX's words. "posix" has no way to read the peer's memory, "cma" has.
WAYS = ("tcp", "posix", "posix,cma")


def started(
    n: int, program: str, folder: Path, *arguments: str, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run ``tests.processes.ucx.PROGRAM`` on ranks of this machine, to its end."""
    meeting = folder / "meeting"
    meeting.mkdir(mode=0o700)
    settings = {
        "COLLECTIVES_TRANSPORT": "ucx",
        "COLLECTIVES_RENDEZVOUS": str(meeting),
        "COLLECTIVES_INTERFACE": "lo",
        **env,
    }
    command: tuple[object, ...] = (
        "-n",
        n,
        "--grace",
        20,
        "-m",
        "tests.processes.rank",
        f"ucx.{program}",
        folder,
    )
    command += arguments
    return collrun(*command, timeout=110, env=settings)


def found(n: int, program: str, folder: Path, **env: str) -> list[Any]:
    """Return what the ranks have found."""
    done = started(n, program, folder, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout + done.stderr == ""
    return read(folder, n)


@pytest.fixture(scope="module", autouse=True)
def _possible(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip, and say why, where there is no UCX."""
    done = started(2, "meet", tmp_path_factory.mktemp("possible"))
    if "UnsupportedError" in done.stderr:
        pytest.skip("there is no UCX, or the build had no headers of it: see scripts/ucx.sh")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_every_collective_in_every_way(way: str, tmp_path: Path) -> None:
    for rank, checks in enumerate(found(3, "everything", tmp_path, UCX_TLS=way)):
        for check, wrong in checks.items():
            assert wrong == [], f"rank {rank}, {check}"


def test_messages_groups_and_whatever_else_there_is(tmp_path: Path) -> None:
    assert found(3, "whatever_else", tmp_path) == [[]] * 3


def test_many_ranks_with_what_ucx_chooses(tmp_path: Path) -> None:
    assert found(10, "some", tmp_path) == [[]] * 10


@pytest.mark.parametrize("way", WAYS)
def test_a_rank_that_leaves_early_is_heard_to_its_end(way: str, tmp_path: Path) -> None:
    assert found(3, "run_ahead", tmp_path, UCX_TLS=way) == [True] * 3


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_rank_is_told(way: str, tmp_path: Path) -> None:
    started(3, "told", tmp_path, UCX_TLS=way)
    for rank in (0, 2):
        told = read_rank(tmp_path, rank)
        assert told["kind"] == "PeerLostError", told
        assert "rank 1" in told["text"], told
        assert told["took"] < 5, told


def test_a_rank_that_does_not_come_is_named_and_all_go_on(tmp_path: Path) -> None:
    started(3, "late", tmp_path)
    for rank in range(3):
        told = read_rank(tmp_path, rank)
        assert told["kind"] == "CollectiveTimeoutError", told
        assert "rank 1" in told["text"], told


def test_trusted_networks_bound_where_ucx_is_taken(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert found(2, "goes", tmp_path / "in", COLLECTIVES_TRUSTED="127.0.0.0/8") == ["ucx"] * 2
    done = started(2, "goes", tmp_path, COLLECTIVES_TRUSTED="10.0.0.0/8, fd00::/8")
    assert done.returncode != 0
    says = "rank 0 listens at 127.0.0.1, which is in none of [10.0.0.0/8, fd00::/8] (this is rank"
    for rank in range(2):
        assert f"{says} {rank})" in done.stderr


def test_one_machine_stays_with_its_memory_where_networks_are_trusted(tmp_path: Path) -> None:
    env = {"COLLECTIVES_TRANSPORT": "auto", "COLLECTIVES_TRUSTED": "0.0.0.0/0, ::/0"}
    assert found(2, "goes", tmp_path, **env) == ["memory"] * 2


def test_without_the_library_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    done = started(2, "some", tmp_path, COLLECTIVES_UCX="/nowhere/libucp.so.0")
    assert done.returncode != 0
    assert re.search(
        r"UnsupportedError: .*/nowhere/libucp.so.0.*install Debian's libucx0", done.stderr
    )


@pytest.mark.parametrize(
    ("name", "good", "bad", "kind", "says"),
    [
        ("COLLECTIVES_UCX", "", "/nowhere", "UnsupportedError", "(/nowhere: cannot open shared"),
        ("UCX_TLS", "all", "rc_x", "BootstrapError", "cannot begin: No such device. Where UCX_TLS"),
    ],
)
def test_all_are_told_why_one_rank_has_no_ucx(
    name: str, good: str, bad: str, kind: str, says: str, tmp_path: Path
) -> None:
    started(3, "apart", tmp_path, name, good, bad, good)
    for rank in range(3):
        told = read_rank(tmp_path, rank)
        assert told["kind"] == kind, told
        assert says in told["text"], told
        assert ("rank 1 cannot take part: " in told["text"]) == (rank != 1), told
        assert told["took"] < 5, told


def test_all_are_told_that_two_ranks_have_no_way_to_each_other(tmp_path: Path) -> None:
    started(3, "apart", tmp_path, "UCX_TLS", "tcp", "posix", "tcp")
    for rank in range(3):
        told = read_rank(tmp_path, rank)
        assert told["kind"] == "PeerLostError", told
        assert re.search(r"rank \d on .* has no way to rank \d on ", told["text"]), told
        assert "UCX finds no way to it (UCX_TLS and UCX_NET_DEVICES" in told["text"], told
        assert told["took"] < 5, told


def test_a_way_that_there_is_not_is_a_sentence(tmp_path: Path) -> None:
    done = started(2, "some", tmp_path, UCX_TLS="rc_x")
    assert done.returncode != 0
    assert re.search(r"BootstrapError: UCX .* cannot .*UCX_TLS", done.stderr), done.stderr
