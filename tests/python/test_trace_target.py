# SPDX-License-Identifier: Apache-2.0
"""Where traces go: what is refused on all ranks, and disks that are full in the end."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import collectives as cl
from collectives import trace_session, whole_file
from collectives.cli.app import collbench
from collectives.tracing import TraceWarning
from tests.python.ranks import on_ranks


class Nameless(os.PathLike[str]):
    """A path that cannot say its name."""

    def __fspath__(self) -> str:
        raise KeyError("no name")


def refused(path: Any, sentence: str, culprit: int = 0, **options: Any) -> None:
    """Check that both ranks raise where one of them gives this, and go on."""

    def work(comm: cl.Communicator) -> bool:
        mine = {"path": path, **options} if comm.rank == culprit else {"path": "t.json"}
        with pytest.raises(cl.InvalidArgumentError, match=f"trace: rank {culprit}: {sentence}"):
            comm.trace(**mine).start()
        comm.barrier()
        return True

    assert on_ranks(2, work) == [True, True]


@pytest.mark.parametrize("culprit", [0, 1])
@pytest.mark.parametrize(
    "path", [3, None, b"t.json", "a\0b", "\ud800.json", "", "/", 10**5000, Nameless()], ids=type
)
def test_what_is_no_name_on_one_rank_is_told_to_all(
    path: Any, culprit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(path, "path is .*: give a file name", culprit)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("events", [0, -1, 2.5, True, 1 << 40, 10**5000], ids=type)
def test_what_is_no_number_on_one_rank_is_told_to_all(
    events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused("t.json", "events is .*: give how many to keep", 1, events=events)
    assert not list(tmp_path.iterdir())


def test_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    refused(pipe, "cannot write .*pipe: it is no regular file")
    refused(folder, "cannot write .*folder: Is a directory")
    (tmp_path / "round").symlink_to("round")
    refused(tmp_path / "round", "cannot write .*round: Too many levels")
    refused(tmp_path / ("x" * 300), "cannot write .*: File name too long")
    told = CliRunner().invoke(collbench, ["barrier", "--trace", str(pipe), "--budget", "0.1"])
    assert told.exit_code == 1
    assert "pipe: it is no regular file" in told.output
    assert isinstance(told.exception, SystemExit)


def test_links_and_devices_are_written_through(tmp_path: Path) -> None:
    link, null = tmp_path / "link", tmp_path / "null"
    link.symlink_to("t.json")
    null.symlink_to("/dev/null")

    def work(comm: cl.Communicator) -> None:
        for path in (link, link, null):  # what it leads to is to come, and is there
            with comm.trace(path):
                comm.barrier()

    on_ranks(2, work)
    assert link.is_symlink()
    assert null.is_symlink()
    assert (tmp_path / "t.json").read_text().startswith("{")


def test_a_full_device_is_told_to_all_ranks(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")

    def work(comm: cl.Communicator) -> None:
        trace = comm.trace(full)
        trace.start()
        comm.barrier()
        with pytest.raises(cl.SystemCallError, match=r"rank 0 cannot write .*full: No space left"):
            trace.stop()
        comm.barrier()

    on_ranks(2, work)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(handle: int, content: bytes) -> None:
        os.write(handle, content[: len(content) // 2])
        os.close(handle)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    there, new = tmp_path / "there.json", tmp_path / "new.json"
    there.write_text("before")
    monkeypatch.setattr(whole_file, "_fill", half)

    def work(comm: cl.Communicator) -> None:
        for path in (there, new):
            trace = comm.trace(path)
            trace.start()
            comm.barrier()
            with pytest.raises(cl.SystemCallError, match=f"{path.name}: No space left"):
                trace.stop()

    on_ranks(2, work)
    assert [path.name for path in tmp_path.iterdir()] == ["there.json"]
    assert there.read_text() == "before"


def test_no_parts_lie_beside_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise cl.PeerLostError("rank 1 died", 1)

    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    (comm,) = cl.local(1)
    trace = comm.trace(null)
    trace.start()
    comm.barrier()
    monkeypatch.setattr(trace_session, "gathered", broken)
    with pytest.warns(TraceWarning, match=r"rank 1 died.*is lost: .*null is no regular file"):
        trace.stop()
    assert [path.name for path in tmp_path.iterdir()] == ["null"]
    comm.close()
