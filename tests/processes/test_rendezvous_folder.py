# SPDX-License-Identifier: Apache-2.0
"""A shared folder as a key-value store: races, what a killed job left, and who may use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from collectives import errors
from collectives.launchers.directory import Deadline
from collectives.launchers.files import Files
from collectives.launchers.folder import open_folder
from collectives.launchers.launch import Launch
from tests.processes.jobs import ROOT, environment


def launch(rank: int, size: int, job: str = "job", attempt: int = 0) -> Launch:
    return Launch("environment", rank, size, "folder", "", job=job, attempt=attempt)


def exchange(folder: Path, size: int, word: str, job: str = "job", attempt: int = 0) -> list[str]:
    """Let ``size`` ranks, as threads, exchange words; return what each got."""

    def rank(r: int) -> str:
        deadline = Deadline(20)
        directory = open_folder(str(folder), launch(r, size, job, attempt), deadline)
        directory.put(f"word.{r}", f"{word}{r}".encode(), deadline)
        directory.fence(deadline)
        got = b" ".join(directory.get(f"word.{other}", deadline) for other in range(size))
        directory.fence(deadline)
        directory.close()
        return got.decode()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(rank, range(size)))


def test_values_reach_all_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    assert exchange(folder, 4, "w") == ["w0 w1 w2 w3"] * 4
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []
    assert exchange(folder, 1, "w") == ["w0"]


def test_jobs_and_attempts_do_not_meet(tmp_path: Path) -> None:
    jobs = [("a", 0), ("a", 1), ("b/..", 0)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        got = list(pool.map(lambda j: exchange(tmp_path / "meet", 3, f"{j[0]}{j[1]}.", *j), jobs))
    for (job, attempt), words in zip(jobs, got, strict=True):
        assert words == [" ".join(f"{job}{attempt}.{rank}" for rank in range(3))] * 3


def test_what_a_killed_job_left_is_no_matter(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    files = Files(str(folder), "job", 0)
    files.write("hello-1", b"old1")
    files.write("hello-2", b"old2")
    numbers = {"1": "old1", "2": "old2"}
    files.write("session", json.dumps({"name": "old", "numbers": numbers}).encode())
    for rank in (1, 2):
        files.write(f"in-old-joined-{rank}", b"1")
        files.write(f"in-old-fence0.{rank}", b"1")
        files.write(f"in-old-word.{rank}", b"old")
    Files(str(folder), "other", 0).write("hello-1", b"of another job")
    assert exchange(folder, 3, "new") == ["new0 new1 new2"] * 3
    assert len(list(folder.iterdir())) == 1
    files.close()


def test_a_rank_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    folder, late = tmp_path / "meet", threading.Event()
    files = Files(str(folder), "job", 0)
    files.write("hello-1", b"old")  # rank 0 names a session for this one first

    def lead() -> None:
        open_folder(str(folder), launch(0, 2), Deadline(20))
        late.set()

    thread = threading.Thread(target=lead)
    thread.start()
    Deadline(20).until(lambda: files.read("session") is not None, lambda: "no session")
    assert not late.is_set()
    open_folder(str(folder), launch(1, 2), Deadline(20))
    thread.join(20)
    assert late.is_set()


def test_who_has_not_come_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.CollectiveTimeoutError, match="ranks 1, 2 have not come"):
        open_folder(str(tmp_path / "meet"), launch(0, 3), Deadline(0.02))
    with pytest.raises(errors.CollectiveTimeoutError, match="rank 0 has not come"):
        open_folder(str(tmp_path / "meet"), launch(1, 3), Deadline(0.02))


def test_who_waits_is_told_whom_rank_0_misses(tmp_path: Path) -> None:
    """Rank 2 never comes, and rank 1 has less patience than rank 0, and leaves."""

    def told(rank: int) -> str:
        kind = errors.CollectiveTimeoutError
        with pytest.raises(kind) as caught:
            open_folder(str(tmp_path / "meet"), launch(rank, 3), Deadline(20 if rank == 0 else 0.5))
        return str(caught.value)

    for _ in range(2):  # what the first left is no matter
        with ThreadPoolExecutor(2) as pool:
            assert all("rank 2 has not come to" in it for it in pool.map(told, range(2)))
    assert "rank 0 has not come to" in told(1)


def test_a_folder_that_others_reach_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o750)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    (tmp_path / "file").write_text("")
    for path, cls, words in [
        (str(tmp_path / "open"), errors.InvalidArgumentError, "with mode 750"),
        ("relative", errors.InvalidArgumentError, "give an absolute path"),
        (str(tmp_path / "link"), errors.SystemCallError, "cannot open"),
        (str(tmp_path / "file"), errors.SystemCallError, "cannot open"),
        (str(tmp_path / "not/there"), errors.SystemCallError, "cannot make"),
    ]:
        with pytest.raises(cls) as caught:
            open_folder(path, launch(0, 1), Deadline(1))
        assert words in str(caught.value)


def test_a_folder_or_file_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(str(tmp_path / "meet"), "job", 0)
    files.write("session", b"{}")
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(errors.InvalidArgumentError, match="is not a file of this user"):
        files.read("session")
    with pytest.raises(errors.InvalidArgumentError, match="others could speak to the ranks"):
        Files(str(tmp_path / "meet"), "job", 0)
    files.close()


@pytest.mark.processes
def test_init_meets_through_a_folder(tmp_path: Path) -> None:
    program = "import collectives as cl, numpy as np; print(cl.allreduce(np.ones(1)).tolist())"
    shared = {"COLLECTIVES_RENDEZVOUS": str(tmp_path / "meet"), "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment(shared | {"RANK": str(rank)}),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    assert [rank.communicate(timeout=60)[0] for rank in ranks] == ["[2.0]\n"] * 2
    assert list((tmp_path / "meet").iterdir()) == []
