# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole: what is at their place is followed, filled or replaced."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectives.topology import Topology
from collectives.topology.value import Place
from collectives.whole_file import replace_whole, write_whole


@pytest.fixture
def umask() -> Iterator[None]:
    """Create files as most users do."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_mode_is_that_of_other_programs(tmp_path: Path, umask: None) -> None:
    path = tmp_path / "table.json"
    write_whole(path, "x")
    assert _mode(path) == 0o640
    path.chmod(0o664)
    write_whole(path, "y")
    assert (path.read_text(), _mode(path)) == ("y", 0o664)
    replace_whole(tmp_path / "own", "x")
    assert _mode(tmp_path / "own") == 0o600
    assert {p.name for p in tmp_path.iterdir()} == {"table.json", "own"}


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "deeper").mkdir()
    file, link = tmp_path / "deeper" / "file", tmp_path / "link"
    link.symlink_to("deeper/file")
    for text in ("first", "second"):  # the file is to come, and is there
        write_whole(link, text)
        assert link.is_symlink()
        assert file.read_text() == text
    assert [p.name for p in file.parent.iterdir()] == ["file"]
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="round"):
        write_whole(tmp_path / "round", "x")


def test_what_is_our_own_replaces_whatever_has_its_name(tmp_path: Path) -> None:
    notes, link, pipe = tmp_path / "notes", tmp_path / "link", tmp_path / "pipe"
    notes.write_text("my notes")
    link.symlink_to("notes")
    os.mkfifo(pipe)  # nobody reads from it: who opened it would wait
    for path in (link, pipe):
        replace_whole(path, "ours")
        assert (path.is_symlink(), path.read_text(), _mode(path)) == (False, "ours", 0o600)
    assert notes.read_text() == "my notes"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_whole(tmp_path / "folder", "ours")
    assert {p.name for p in tmp_path.iterdir()} == {"notes", "link", "pipe", "folder"}


def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    write_whole(pipe, "words")
    reader.join(10)
    assert heard == ["words"]
    assert pipe.is_fifo()
    null = tmp_path / "null"
    null.symlink_to("/dev/null")  # not the machine's own: a wrong library would replace it
    write_whole(null, "words")
    assert null.is_symlink()
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom collectives.whole_file import write_whole\n"
        f"print('before', flush=True)\nwrite_whole({name!r}, 'words\\n')\nprint('after')\n"
    )
    for piped in (True, False):
        with open(tmp_path / "out", "w+") as file:
            out = subprocess.PIPE if piped else file
            done = subprocess.run(
                [sys.executable, "-c", program], stdout=out, text=True, timeout=30, check=True
            )
        got = done.stdout if piped else (tmp_path / "out").read_text()
        assert got == "before\nwords\nafter\n"


def test_a_full_disk_is_told_with_the_name(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    ways: list[Callable[[], object]] = [
        lambda: write_whole(full, "words"),
        lambda: Topology((Place("host"),)).save(full),
    ]
    for write in ways:
        with pytest.raises(OSError, match=r"No space left on device: '.*full'") as caught:
            write()
        assert caught.value.filename == str(full)
    with pytest.raises(FileNotFoundError, match=r"none/x'$"):
        write_whole(tmp_path / "none" / "x", "words")
    (tmp_path / "deeper").mkdir()
    with pytest.raises(IsADirectoryError, match=r"deeper'$"):
        write_whole(tmp_path / "deeper", "words")


def test_what_was_there_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.json"
    path.write_text("before")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match=r"table\.json"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["table.json"]
