# SPDX-License-Identifier: Apache-2.0
"""PMIx without a launcher: where libpmix is looked for, and the directory over a made-up one."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from collectives import errors
from collectives.launchers import openmpi, pmix, pmix_library
from collectives.launchers.detect import place
from collectives.launchers.directory import Deadline
from collectives.launchers.exchange import exchange
from collectives.launchers.pmix import PmixDirectory, within
from collectives.launchers.pmix_library import is_known, opened
from collectives.launchers.pmix_places import NAME, places

LAUNCHED = {
    "OMPI_COMM_WORLD_RANK": "0",
    "OMPI_COMM_WORLD_SIZE": "2",
    "PMIX_NAMESPACE": "job",
    "PMIX_RANK": "0",
}


def processes(root: Path, maps: dict[int, str]) -> None:
    """Write what /proc says of a line of processes, 1 the first of them."""
    for process, text in maps.items():
        (root / str(process)).mkdir()
        (root / str(process) / "maps").write_text(text)
        stat = f"{process} (a ) name) S {process - 1} 1 1"
        (root / str(process) / "stat").write_text(stat)


MAPPED = "7f0-7f1 r--p 0 fe:00 3  /opt/my pmix/lib/libpmix.so.2.9\n7f1-7f2 rw-p 0 0:0 0\n"


def test_the_library_of_the_launcher_comes_first(tmp_path: Path) -> None:
    processes(tmp_path, {1: "", 2: MAPPED, 3: "7f1-7f2 rw-p 0 0:0 0 [heap]\n", 4: ""})
    found = places({}, process=4, root=str(tmp_path))
    assert found == ["/opt/my pmix/lib/libpmix.so.2.9", NAME]
    assert places({}, process=2, root=str(tmp_path)) == [NAME]  # its own is no launcher's


def test_ancestors_that_cannot_be_seen_are_no_matter(tmp_path: Path) -> None:
    processes(tmp_path, {7: ""})
    assert places({}, process=7, root=str(tmp_path)) == [NAME]


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("PMIX_PREFIX", "lib"),
        ("OPAL_PREFIX", "lib64"),
        ("OPAL_PREFIX", "lib/openmpi"),
        ("OMPI_LIBDIR_LOC", ""),
        ("OMPI_LIBDIR_LOC", "openmpi"),
    ],
)
def test_libraries_below_a_prefix_come_next(name: str, within: str, tmp_path: Path) -> None:
    library = tmp_path / within / NAME
    library.parent.mkdir(parents=True, exist_ok=True)
    library.touch()
    found = places({name: str(tmp_path)}, process=1, root=str(tmp_path / "nothing"))
    assert found == [str(library), NAME]


def test_the_sizes_are_those_of_the_headers() -> None:
    """Of pmix_common.h, as a C compiler for 64 bits lays it out."""
    kinds = (pmix_library._Process, pmix_library._Value, pmix_library._Info)
    assert [ctypes.sizeof(kind) for kind in kinds] == [260, 32, 552]
    assert pmix_library._Info.value.offset == 520
    assert pmix_library._Value.data.offset == 8


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("OpenPMIx 5.0.11rc1 (PMIx Standard: 5.1, Stable ABI: 5.0)", True),
        ("OpenPMIx 4.2.2 (PMIx Standard: 4.2)", True),
        ("PMIx 3.1.5", True),
        ("PMIx 2.2.5", False),
        ("OpenPMIx 17.0.0", False),
        ("", False),
    ],
)
def test_versions_whose_types_are_known(version: str, known: bool) -> None:
    assert is_known(version) == known


def test_without_a_library_the_error_names_both_ways_and_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    libc = "libc.so.6"  # a library, and not that one
    monkeypatch.setattr(openmpi, "find_spec", lambda name: None)
    monkeypatch.setattr(pmix, "places", lambda env: [str(tmp_path / NAME), libc])
    with pytest.raises(errors.UnsupportedError) as caught:
        place(1, LAUNCHED)
    for words in ("mpi4py", "libpmix", str(tmp_path), f"{libc} (", "COLLECTIVES_RENDEZVOUS"):
        assert words in str(caught.value)


def test_a_version_that_is_not_known_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def __init__(self, library: object) -> None:
            self.version = "OpenPMIx 17.0.0"

    monkeypatch.setattr(pmix_library, "Pmix", Other)
    with pytest.raises(errors.UnsupportedError, match=r"libc\.so\.6 \(OpenPMIx 17\.0\.0: PMIx 3 "):
        opened(["libc.so.6"])


class Server:
    """What the libraries of several ranks, here threads, share."""

    def __init__(self, size: int) -> None:
        self.values: dict[tuple[int, str], bytes] = {}
        self.barrier = threading.Barrier(size)
        self.asked: dict[int, list[int]] = {rank: [] for rank in range(size)}


class Library:
    """Stands for libpmix in one rank."""

    def __init__(self, server: Server, rank: int) -> None:
        self._server, self._rank = server, rank
        self._put: dict[tuple[int, str], bytes] = {}

    def begin(self) -> int:
        return self._rank

    def put(self, key: str, value: bytes) -> None:
        assert (self._rank, key) not in self._server.values
        self._put[self._rank, key] = value

    def fence(self) -> None:
        self._server.values |= self._put
        self._server.barrier.wait(10)

    def get(self, rank: int, key: str, seconds: int) -> bytes:
        assert 1 <= seconds <= 10
        self._server.asked[self._rank].append(rank)
        return self._server.values[rank, key]


def ranks(size: int, run: Callable[[PmixDirectory, int], Any]) -> tuple[list[Any], Server]:
    """Return what each rank returned."""
    server = Server(size)

    def rank(number: int) -> Any:
        library: Any = Library(server, number)
        return run(PmixDirectory(library, number, size, Deadline(10)), number)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(rank, range(size))), server


def test_values_are_told_at_fences() -> None:
    def run(directory: PmixDirectory, rank: int) -> list[bytes]:
        deadline = Deadline(10)
        if rank == 0:
            directory.put("first", b"\0\xff", deadline)
        directory.fence(deadline)
        directory.put(f"of{rank}", b"%d" % rank, deadline)
        with pytest.raises(errors.BootstrapError, match="no rank put 'of"):
            directory.get(f"of{rank}", deadline)
        directory.fence(deadline)
        names = ("first", *(f"of{r}" for r in range(3)))
        return [directory.get(name, deadline) for name in names]

    assert ranks(3, run)[0] == [[b"\0\xff", b"0", b"1", b"2"]] * 3


def test_all_ask_rank_0_who_alone_asks_all() -> None:
    def run(directory: PmixDirectory, rank: int) -> list[str]:
        return exchange(directory, "key", f"I am {rank}", rank, 4, Deadline(10))

    said, server = ranks(4, run)
    assert said == [[f"I am {rank}" for rank in range(4)]] * 4
    assert set(server.asked[0]) == {0, 1, 2, 3}
    assert server.asked[1] == server.asked[2] == server.asked[3] == [0]


def test_a_rank_that_pmix_counts_otherwise_is_refused() -> None:
    library: Any = Library(Server(2), 1)
    with pytest.raises(errors.InvalidArgumentError, match="says rank 0, PMIx rank 1"):
        PmixDirectory(library, 0, 2, Deadline(10))


def test_what_takes_too_long_ends_at_the_deadline() -> None:
    end = threading.Event()
    with pytest.raises(errors.CollectiveTimeoutError, match=r"after 0\.02 s nobody comes"):
        within(Deadline(0.02), lambda: end.wait(20), "nobody comes")
    end.set()


def test_what_fails_in_time_is_raised() -> None:
    def fails() -> None:
        raise errors.BootstrapError("gone")

    with pytest.raises(errors.BootstrapError, match="gone"):
        within(Deadline(10), fails, "nobody comes")
