# SPDX-License-Identifier: Apache-2.0
"""Ranks that meet in a folder by mistake: twice, of different sizes, among damaged files."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from collectives import errors
from collectives.launchers.directory import Deadline, StoreDirectory
from collectives.launchers.exchange import exchange
from collectives.launchers.files import Files
from collectives.launchers.folder import open_folder
from collectives.launchers.notes import Hello, hello_of
from collectives.launchers.presence import Presence
from tests.processes.test_rendezvous_folder import launch

LIMIT = 20.0
SOON = 8.0  # of LIMIT; a busy machine takes its time


def meet(folder: Path, rank: int, size: int, limit: float = LIMIT) -> StoreDirectory:
    return open_folder(str(folder), launch(rank, size), Deadline(limit))


def why(folder: Path, rank: int, size: int) -> str:
    """Return what a rank raises, once it is sure that it did not wait for its time to be up."""
    begin = time.monotonic()
    with pytest.raises(errors.CollectiveError) as caught:
        meet(folder, rank, size)
    assert time.monotonic() - begin < SOON
    return f"{type(caught.value).__name__}: {caught.value}"


def wait_for(folder: Path, name: str) -> None:
    """Wait until a file is there."""
    pattern = f"coll-*-{name}"
    Deadline(LIMIT).until(lambda: any(folder.glob(pattern)), lambda: f"no {name}")


def closed(*ranks: Future[StoreDirectory]) -> None:
    for rank in reversed(ranks):
        rank.result(LIMIT).close()


def test_a_second_rank_0_is_told_and_the_first_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(meet, folder, 0, 2)
        wait_for(folder, "waits")
        text = why(folder, 0, 2)
        assert text.startswith("BootstrapError: rank 0 is there twice: another process of")
        assert not first.done()
        closed(first, pool.submit(meet, folder, 1, 2))
    assert list(folder.iterdir()) == []


def test_of_two_processes_of_a_rank_the_second_goes_on(tmp_path: Path) -> None:
    """The first may be of an earlier job, and slow to end."""
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(why, folder, 1, 2)
        wait_for(folder, "hello-1")
        second = pool.submit(meet, folder, 1, 2)
        text = first.result(LIMIT)
        assert text.startswith("BootstrapError: rank 1 is there twice: another process of")
        closed(second, pool.submit(meet, folder, 0, 2))
    assert list(folder.iterdir()) == []


def test_an_earlier_process_that_still_runs_is_no_hindrance(tmp_path: Path) -> None:
    """A job is started again under its name while a rank of the one before has not ended."""
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(2) as pool:
        old = [pool.submit(meet, folder, r, 2).result for r in range(2)]
        lead, rest = (result(LIMIT) for result in old)
        new = [pool.submit(meet, folder, r, 2) for r in range(2)]
        found = [rank.result(LIMIT) for rank in new]
        for directory in (lead, rest, *reversed(found)):
            directory.close()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("ranks", [(0, 0, 1), (0, 1, 1)])
def test_of_processes_of_one_rank_that_come_at_once_one_goes_on(
    ranks: tuple[int, ...], tmp_path: Path
) -> None:
    def come(rank: int) -> tuple[int, StoreDirectory | str]:
        try:
            return rank, meet(tmp_path / "meet", rank, 2, 3.0)
        except errors.CollectiveError as error:
            return rank, str(error)

    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(come, ranks))
    met = {rank: it for rank, it in ends if not isinstance(it, str)}
    texts = [it for _, it in ends if isinstance(it, str)]
    assert sorted(met) == [0, 1]
    assert len(texts) == 1
    # Who comes after the others have met may be of a job to come: it waits.
    assert "is there twice" in texts[0] or "was there before, and still runs" in texts[0]
    for rank in (1, 0):
        directory = met[rank]
        assert not isinstance(directory, str)
        directory.close()


def test_of_two_that_say_hello_at_one_moment_the_second_knows_of_the_first(tmp_path: Path) -> None:
    """The second looks just before the first has said it, and says it just after."""
    folder = str(tmp_path / "meet")
    files = Files(folder, "job", 1)
    first = Presence(files, 1)

    class Late(Files):
        def read(self, name: str) -> bytes | None:
            found = super().read(name)
            if not said:
                said.append(name)
                first.say_hello()
            return found

    said: list[str] = []
    late = Late(folder, "job", 1)
    second = Presence(late, 1)
    second.say_hello()
    assert said == ["hello-1"]
    assert "another process of rank 1 was there before, and still runs" in second.earlier
    assert hello_of(late, "hello-1") == Hello(second.number)
    for presence, opened in ((first, files), (second, late)):
        presence.release()
        opened.close()


def test_who_comes_after_its_rank_has_met_is_told_so_in_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(2) as pool:
        ranks = [pool.submit(meet, folder, r, 2) for r in range(2)]
        kept = [rank.result() for rank in ranks]
    for r in (1, 0):
        words = rf"another process of rank {r} was there before, and still runs"
        with pytest.raises(errors.CollectiveTimeoutError, match=words):
            meet(folder, r, 2, 0.3)
    for directory in reversed(kept):
        directory.close()


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((2, 3, 3), "rank 1 was started with WORLD_SIZE 3, rank 0 with 2"),
        ((3, 2, 3), "rank 1 was started with WORLD_SIZE 2, rank 0 with 3"),
        ((2, 2, 3), "rank 2 was started with WORLD_SIZE 3, rank 0 with 2"),
    ],
)
@pytest.mark.parametrize("late", [0, 1, 2])
def test_sizes_that_differ_are_told_to_all(
    sizes: tuple[int, ...], says: str, late: int, tmp_path: Path
) -> None:
    if sizes == (2, 2, 3) and late == 2:
        return  # the others have met, and know nothing of it

    def come(rank: int) -> str:
        time.sleep(0.4 if rank == late else 0)
        return why(tmp_path / "meet", rank, sizes[rank])

    with ThreadPoolExecutor(3) as pool:
        assert {it.split(": ", 1)[1].partition(":")[0] for it in pool.map(come, range(3))} == {says}
    assert list((tmp_path / "meet").iterdir()) == []


def test_sizes_of_an_earlier_job_are_no_matter(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    files = Files(str(folder), "job", 0)
    for rank in (1, 5):
        files.write(f"hello-{rank}", b"old 7")
    with ThreadPoolExecutor(2) as pool:
        closed(*(pool.submit(meet, folder, r, 2) for r in range(2)))
    files.close()


@pytest.mark.parametrize("lead", [True, False])
def test_a_folder_that_is_removed_is_told(lead: bool, tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(why, folder, 1 - lead, 3)
        wait_for(folder, "waits" if lead else "hello-1")
        time.sleep(0.3)
        shutil.rmtree(folder)
        text = first.result()
    assert text.startswith("SystemCallError: ")
    assert text.endswith(f"{folder}, has been removed while ranks used it")


@pytest.mark.parametrize("content", [b"\xff\0\n" * 9, b"a\0b", b"{}", b"[1]", b'{"name": 3}'])
@pytest.mark.parametrize("name", ["hello-1", "waits", "session"])
def test_damaged_files_are_named(name: str, content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(2) as pool:
        rank = pool.submit(why, folder, 0 if name == "hello-1" else 1, 3)
        Deadline(LIMIT).until(folder.exists, lambda: "no folder")
        wait_for(folder, "waits" if name == "hello-1" else "hello-1")
        files = Files(str(folder), "job", 0)
        files.write(name, content)
        files.close()
        text = rank.result()
    assert text.startswith(f"BootstrapError: the file {folder}/coll-")
    assert f"-{name}, by which ranks meet, is damaged: " in text


def test_all_are_told_of_a_damaged_file(tmp_path: Path) -> None:
    folder = tmp_path / "meet"
    with ThreadPoolExecutor(2) as pool:
        ranks = [pool.submit(why, folder, r, 3) for r in range(2)]
        wait_for(folder, "hello-1")
        time.sleep(0.5)  # in which rank 0 sees rank 1
        files = Files(str(folder), "job", 0)
        files.write("hello-1", b"a\0b")
        files.close()
        assert all("-hello-1, by which ranks meet, is damaged" in it.result() for it in ranks)


def test_who_leaves_alone_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(errors.CollectiveTimeoutError):
        meet(tmp_path / "meet", 1, 2, 0.1)
    assert list((tmp_path / "meet").iterdir()) == []


def test_a_damaged_value_is_named(tmp_path: Path) -> None:
    def come(rank: int) -> object:
        directory = meet(tmp_path / "meet", rank, 2)
        try:
            if rank == 0:
                return exchange(directory, "k", "x", rank, 2, Deadline(LIMIT))
            directory.put("k1", b"\xff\xff", Deadline(LIMIT))
            directory.fence(Deadline(LIMIT))
            return None
        finally:
            directory.close()

    with ThreadPoolExecutor(2) as pool:
        ranks = [pool.submit(come, r) for r in range(2)]
        with pytest.raises(errors.BootstrapError, match="the value 'k1', which a rank has left"):
            ranks[0].result()


def test_the_farewell_is_short_where_time_is_up(tmp_path: Path) -> None:
    """Rank 1 does not read the note: it is stopped, say."""
    folder = tmp_path / "meet"
    files = Files(str(folder), "job", 0)
    files.write("hello-1", b"stopped")
    handle = files.hold("held-stopped")
    begin = time.monotonic()
    with pytest.raises(errors.CollectiveTimeoutError):
        meet(folder, 0, 3, 1.0)
    assert time.monotonic() - begin < 2.8  # the farewell took 2 s
    os.close(handle)
    files.close()
