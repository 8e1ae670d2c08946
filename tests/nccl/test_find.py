# SPDX-License-Identifier: Apache-2.0
"""Which libnccl is taken, and that there is never a second one. In processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collectives import nccl
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.nccl import find
from tests.nccl.standin import build

MAPS = """\
55e0-55e1 r--p 00000000 fe:01 101 /usr/bin/python3
7f00-7f01 r--p 00000000 fe:01 202 {first}
7f01-7f02 r-xp 00001000 fe:01 202 {first}
7f10-7f11 r--p 00000000 fe:01 303 /usr/lib/libnccl-net.so.2
7f20-7f21 rw-p 00000000 00:00 0
7f30-7f31 r--p 00000000 fe:01 404 {second}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A libnccl in a folder of its own."""
    folder = tmp_path / "ours"
    folder.mkdir()
    return build(folder / find.SONAME)


def maps(folder: Path, first: str, second: str = "/lib/libc.so.6") -> str:
    path = folder / "maps"
    path.write_text(MAPS.format(first=first, second=second))
    return str(path)


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name != find.VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", f"from collectives import nccl\n{program}"],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_library_that_is_loaded_is_found_once(tmp_path: Path) -> None:
    one = maps(tmp_path, "/opt/a b/libnccl.so.2.30.7")
    assert find.loaded(one) == ["/opt/a b/libnccl.so.2.30.7"]
    assert find.find(maps=one) == find.Found("/opt/a b/libnccl.so.2.30.7", "loaded in this process")
    gone = maps(tmp_path, "/opt/libnccl.so.2 (deleted)")
    assert find.loaded(gone) == ["/opt/libnccl.so.2"]


def test_two_copies_are_refused(tmp_path: Path) -> None:
    both = maps(tmp_path, "/a/libnccl.so.2", "/b/libnccl.so")
    with pytest.raises(UnsupportedError, match=r"2 copies of NCCL .* /a/libnccl.so.2 and /b/libn"):
        find.find(maps=both)


def test_a_second_copy_is_refused(tmp_path: Path, library: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"path names .*ours/libnccl.so.2, but /a/libnccl"):
        find.find(str(library), maps(tmp_path, "/a/libnccl.so.2"))
    linked = tmp_path / "libnccl.so.2"
    linked.symlink_to(library)
    found = find.find(str(linked), maps(tmp_path, str(library)))
    assert found == find.Found(str(linked), "path")


def test_what_is_named_must_be_there(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = maps(tmp_path, "/lib/libm.so.6")
    assert find.find(str(library.parent), none) == find.Found(str(library), "path")
    monkeypatch.setenv(find.VARIABLE, str(library))
    assert find.find(maps=none) == find.Found(str(library), find.VARIABLE)
    monkeypatch.setenv(find.VARIABLE, str(tmp_path / "no.so"))
    with pytest.raises(InvalidArgumentError, match=r"COLLECTIVES_NCCL names .*no.so, where no lib"):
        find.find(maps=none)


def test_packages_come_before_the_system(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = maps(tmp_path, "/lib/libm.so.6")
    monkeypatch.delenv(find.VARIABLE, raising=False)
    monkeypatch.setattr(find, "find_spec", lambda name: None)
    assert find.find(maps=none) == find.Found(find.SONAME, "the system's")
    folder = tmp_path / "nvidia" / "nccl"
    (folder / "lib").mkdir(parents=True)
    library.rename(folder / "lib" / find.SONAME)

    class Spec:
        submodule_search_locations = (str(folder),)

    monkeypatch.setattr(find, "find_spec", lambda name: Spec)
    assert find.find(maps=none).path == str(folder / "lib" / find.SONAME)

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(find, "find_spec", missing)
    assert find.find(maps=none).how == "the system's"


@pytest.mark.processes
def test_the_environment_names_the_library(library: Path) -> None:
    done = run(
        "lib = nccl.load()\n"
        "assert nccl.load() is lib and nccl.load(lib.path) is lib\n"
        "print(lib.path, lib.how, lib.version, lib.host_arrays)\n",
        COLLECTIVES_NCCL=str(library),
    )
    assert done.stdout.split() == [str(library), find.VARIABLE, "2.30.7", "True"], done.stderr


@pytest.mark.processes
def test_what_is_loaded_is_taken_and_another_one_refused(library: Path, tmp_path: Path) -> None:
    other = build(tmp_path / find.SONAME)
    done = run(
        f"import ctypes\nctypes.CDLL({str(library)!r})\n"
        "from collectives.errors import UnsupportedError\n"
        "try:\n"
        f"    nccl.load({str(other)!r})\n"
        "except UnsupportedError as error:\n"
        "    print('copies' in str(error))\n"
        "lib = nccl.load()\n"
        "print(lib.path, lib.how)\n"
        "try:\n"
        f"    nccl.load({str(other)!r})\n"
        "except UnsupportedError as error:\n"
        "    print('in use' in str(error))\n"
        "nccl.init_rank(1, nccl.unique_id(), 0).close()\n"
        f"ctypes.CDLL({str(other)!r})\n"
        "try:\n"
        "    nccl.init_rank(1, nccl.unique_id(), 0)\n"
        "except UnsupportedError as error:\n"
        "    print('was loaded in this process, beside' in str(error))\n"
    )
    assert done.stdout.split("\n")[:4] == [
        "True", f"{library} loaded in this process", "True", "True"
    ], done.stderr  # fmt: skip


def test_without_a_library_it_is_said_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader:
        def dlopen(self, path: str) -> None:
            raise OSError(f"cannot load {path}")

    monkeypatch.setattr("collectives.nccl.library.ffi", Loader())
    with pytest.raises(UnsupportedError, match="no libnccl here: pip install nvidia-nccl-cu13"):
        nccl.Library(find.SONAME)


@pytest.mark.processes
def test_what_is_no_nccl_is_told(tmp_path: Path) -> None:
    wrong = tmp_path / find.SONAME
    wrong.write_bytes(b"no library")
    done = run("nccl.load()", COLLECTIVES_NCCL=str(wrong))
    assert "UnsupportedError" in done.stderr
    assert f"{wrong}, {find.VARIABLE}, cannot be loaded" in done.stderr
