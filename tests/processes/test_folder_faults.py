# SPDX-License-Identifier: Apache-2.0
"""Ranks that end while they meet in a folder: the others raise at once, and nothing is left."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectives import errors
from collectives.launchers.directory import Deadline
from collectives.launchers.files import Files
from collectives.launchers.folder import open_folder
from collectives.launchers.presence import Presence
from tests.processes.jobs import ROOT, environment
from tests.processes.test_rendezvous_folder import exchange, launch

SIZE = 3
PATIENCE = 60.0
ENDS = 30.0  # of PATIENCE: a busy machine takes its time
INIT = f"import collectives as cl; comm = cl.init(timeout={PATIENCE}); print(comm.size)"


@contextmanager
def started(folder: Path, *ranks: int, size: int = SIZE) -> Iterator[list[subprocess.Popen[str]]]:
    """Start processes that meet in a folder; wait until all that are started have come."""
    shared = {"COLLECTIVES_RENDEZVOUS": str(folder), "WORLD_SIZE": str(size)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", INIT],
            env=environment(shared | {"RANK": str(rank)}),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    ]
    try:
        Deadline(PATIENCE).until(lambda: all_seen(folder, ranks), lambda: "not all came")
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def all_seen(folder: Path, ranks: tuple[int, ...]) -> bool:
    """Return whether rank 0 has read the numbers of all, and has had time to see them alive."""
    waits = next(folder.glob("coll-*-waits"), None) if folder.exists() else None
    if waits is None:
        return False
    numbers = json.loads(waits.read_text())["numbers"]
    time.sleep(0.5)
    return all(numbers[str(rank)] for rank in ranks if rank != 0)


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=PATIENCE)[1].strip().splitlines()[-1]


@pytest.mark.processes
@pytest.mark.parametrize("culprit", [0, 1])
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_rank_that_ends_is_told(culprit: int, sign: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with started(folder, 0, 1, size=SIZE) as ranks:
        begin = time.monotonic()
        ranks[culprit].send_signal(sign)
        text = said(ranks[1 - culprit])
        assert time.monotonic() - begin < ENDS
        ranks[culprit].communicate(timeout=PATIENCE)
    killed = sign == signal.SIGKILL
    how = "has ended while the ranks met" if killed else "has left while the ranks met"
    assert text.startswith(f"collectives.errors.BootstrapError: rank {culprit} {how}")
    assert killed or "KeyboardInterrupt" in text
    assert list(folder.iterdir()) == []


@pytest.mark.processes
def test_all_who_wait_are_told_of_one_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with started(folder, 0, 1, 2, size=4) as ranks:
        ranks[2].kill()
        for rank in ranks[:2]:
            assert "BootstrapError: rank 2 has ended while the ranks met" in said(rank)
    assert list(folder.iterdir()) == []


@pytest.mark.processes
def test_a_rank_that_is_stopped_has_not_ended(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with started(folder, 0, 1) as ranks:
        ranks[1].send_signal(signal.SIGSTOP)
        with started(folder, 2) as others:
            time.sleep(1.5)
            assert [rank.poll() for rank in (ranks[0], others[0])] == [None, None]
            ranks[1].send_signal(signal.SIGCONT)
            for rank in (*ranks, *others):
                printed, complaint = rank.communicate(timeout=PATIENCE)
                assert (rank.returncode, printed) == (0, "3\n"), complaint
    assert list(folder.iterdir()) == []


def test_a_rank_that_has_met_may_end(tmp_path: Path) -> None:
    """Rank 1 reads last what all have put, and goes; rank 0 meets nobody any more, and is well."""
    folder = tmp_path / "meet"

    def rank(r: int) -> None:
        directory = open_folder(str(folder), launch(r, 2), Deadline(20))
        directory.put(f"word{r}", b"x", Deadline(20))
        directory.fence(Deadline(20))
        if r == 1:
            directory.close()
            gone.set()
            return
        assert gone.wait(20)
        time.sleep(0.3)  # longer than from one look to the next
        assert directory.get("word1", Deadline(20)) == b"x"
        directory.close()

    gone = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(rank, range(2)))
    assert list(folder.iterdir()) == []


def test_who_waits_at_a_fence_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "meet"

    def rank(r: int) -> str:
        directory = open_folder(str(folder), launch(r, 3), Deadline(20))
        if r == 2:
            time.sleep(0.5)
            directory.close()
            return ""
        with pytest.raises(errors.BootstrapError) as caught:
            directory.fence(Deadline(20))
        with pytest.raises(errors.BootstrapError, match="have failed to meet before: rank 2 has"):
            directory.get("never", Deadline(20))
        directory.close()
        assert caught.value.rank == 2
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        texts = list(pool.map(rank, range(3)))
    assert all("rank 2 has ended while the ranks met" in text for text in texts[:2])
    assert list(folder.iterdir()) == []


def test_who_cannot_take_part_and_waits_in_vain_says_why(tmp_path: Path) -> None:
    """Rank 2 does not come while rank 1, which is bound to leave, waits for it."""
    folder, trouble = tmp_path / "meet", errors.InvalidArgumentError("its settings make no sense")

    def rank(r: int) -> str:
        limit, own = (20.0, None) if r == 0 else (0.6, trouble)
        with pytest.raises(errors.CollectiveError) as caught:
            open_folder(str(folder), launch(r, 3), Deadline(limit), own)
        return str(caught.value)

    with ThreadPoolExecutor(2) as pool:
        told = next(pool.map(rank, range(2)))
    assert "rank 1 has left while the ranks met" in told
    assert told.endswith("its settings make no sense")


def test_notes_of_an_earlier_job_are_no_matter(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    files = Files(str(folder), "job", 0)
    old = json.dumps({"rank": 0, "text": "old"}).encode()
    for number in ("old0", "old1"):
        files.write(f"left-{number}", old)
        files.write(f"held-{number}", b"")
    files.write("hello-1", b"old1")
    files.write("waits", json.dumps({"name": "old0", "numbers": {"1": "old1"}}).encode())
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(open_folder, str(folder), launch(0, 2), Deadline(20))
        time.sleep(0.5)  # in which rank 0 looks at what is there
        assert not first.done()
        second = pool.submit(open_folder, str(folder), launch(1, 2), Deadline(20))
        for directory in (second.result(), first.result()):
            directory.close()
    assert list(folder.iterdir()) == []
    files.close()


def test_a_rank_whose_files_an_earlier_job_clears_comes_again(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    files = Files(str(folder), "job", 0)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(open_folder, str(folder), launch(1, 2), Deadline(20))
        Deadline(20).until(lambda: files.read("hello-1") is not None, lambda: "rank 1 is not here")
        files.clear()
        pool.submit(open_folder, str(folder), launch(0, 2), Deadline(20)).result().close()
        first.result().close()
    files.close()


@pytest.mark.parametrize("call", ["link", "replace"])
def test_a_draft_that_an_earlier_job_clears_is_written_again(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last rank of a job removes all that is left of it, and of one that begins by its name."""
    folder = str(tmp_path / "meet")
    files, earlier = Files(folder, "job", 0), Files(folder, "job", 0)
    publish = getattr(os, call)
    cleared: list[bool] = []

    def once_cleared(*names: str, **folders: int) -> None:
        if not cleared:
            cleared.append(True)
            earlier.clear()
        publish(*names, **folders)

    monkeypatch.setattr(os, call, once_cleared)
    if call == "link":
        assert files.claim("it", b"mine") == b"mine"
    else:
        files.write("it", b"mine")
        os.close(files.hold("held"))
    assert cleared
    assert files.read("it") == b"mine"
    assert sorted(files.names("")) == (["it"] if call == "link" else ["held", "it"])
    for one in (files, earlier):
        one.close()


def test_a_later_job_keeps_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    first = open_folder(str(folder), launch(0, 1), Deadline(20))
    second = open_folder(str(folder), launch(0, 1), Deadline(20))
    second.put("word", b"x", Deadline(20))
    first.close()
    assert second.get("word", Deadline(1)) == b"x"
    second.close()
    assert list(folder.iterdir()) == []


def test_where_files_cannot_be_locked_nobody_is_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    files = Files(str(tmp_path / "meet"), "job", 0)
    here, there = Presence(files, 0), Presence(files, 1)
    here.watch(1, there.number)
    here.check()
    there.release()
    time.sleep(0.3)
    here.check()
    assert exchange(tmp_path / "meet", 3, "w") == ["w0 w1 w2"] * 3
    here.release()
    files.close()


def test_where_files_cannot_be_locked_who_leaves_still_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Files, "held", lambda self, name: None)

    def rank(r: int) -> str:
        with pytest.raises(errors.CollectiveTimeoutError) as caught:
            open_folder(str(tmp_path / "meet"), launch(r, 4), Deadline(0.5 if r == 2 else 20))
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        texts = list(pool.map(rank, range(3)))
    assert all(texts[r].startswith("rank 2 has given up: after 0.5 s rank 0") for r in (0, 1))
    assert "rank 3 has not come to COLLECTIVES_RENDEZVOUS" in texts[1]
    assert f"({tmp_path / 'meet'}, job 'job', attempt 0)" in texts[1]
    assert list((tmp_path / "meet").iterdir()) == []
