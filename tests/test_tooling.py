# SPDX-License-Identifier: Apache-2.0
"""The scripts behind make: prerequisites in one sentence, stamps, and no silent skips in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shares import few

ROOT = Path(__file__).resolve().parents[1]


def executable(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder for PATH that holds all prerequisites; tests spoil one of them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "cat", "env", "mktemp", "rm"):
        (folder / name).symlink_to(str(shutil.which(name)))
    for name in ("make", "git"):
        executable(folder / name, "exit 0")
    executable(folder / "cc", "exit 0")
    executable(folder / "g++", "echo __clang_major__ 12")
    executable(folder / "python3", "echo good 3.11 /usr/bin/python3.11")
    return folder


def prerequisites(tools: Path, **chosen: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tools / "bash", ROOT / "scripts/prerequisites.sh"],
        env={"PATH": str(tools), **chosen},
        capture_output=True,
        text=True,
        check=False,
    )


def test_prerequisites_print_the_python_to_use(tools: Path) -> None:
    done = prerequisites(tools)
    assert (done.returncode, done.stdout, done.stderr) == (0, "/usr/bin/python3.11\n", "")


@pytest.mark.parametrize("ci", [False, True])
def test_without_a_cross_compiler_arm_is_skipped_but_not_in_ci(tools: Path, ci: bool) -> None:
    for name in ("dirname", "grep", "nproc"):
        (tools / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run(
        [tools / "bash", ROOT / "scripts/aarch64_tests.sh"],
        env={"PATH": str(tools), **({"CI": "true"} if ci else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    assert "install the Debian packages g++-aarch64-linux-gnu qemu-user." in done.stderr
    assert done.returncode == (1 if ci else 0)
    assert ("tests/allowed-skips.txt" in done.stderr) == ci


@pytest.mark.parametrize(
    ("spoiled", "program", "named"),
    [
        ("make", None, "make is needed"),
        ("git", None, "git is needed"),
        ("g++", None, "C++ compiler is needed"),
        ("cc", None, "none of cc, gcc and clang runs"),
        ("g++", "echo __clang_major__ 11", "'g++' is 11"),
        ("g++", "echo 14 4", "clang 15 or newer"),
        ("python3", None, "Python 3.11 or newer is needed"),
        ("python3", "echo old 3.9 /opt/python3.9", "/opt/python3.9 is 3.9"),
        ("python3", "echo venv 3.12 /opt/python3.12", "python3.12-venv"),
        ("python3", "echo headers 3.12 /opt/python3.12", "python3.12-dev"),
    ],
)
def test_missing_prerequisite_is_named_in_one_sentence(
    tools: Path, spoiled: str, program: str | None, named: str
) -> None:
    (tools / spoiled).unlink()
    if program is not None:
        executable(tools / spoiled, program)
    assert_one_sentence(prerequisites(tools), named)


def assert_one_sentence(done: subprocess.CompletedProcess[str], named: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert named in done.stderr
    assert done.stderr.startswith("pycollectives: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"PYTHON": "python3.9"}, "'python3.9', which PYTHON names, does not run"),
        ({"CXX": "c++-9"}, "'c++-9' does not run"),
        ({"CC": "cc-9"}, "'cc-9', which CC names, does not run"),
    ],
)
def test_a_chosen_tool_that_is_not_there_is_named(
    tools: Path, chosen: dict[str, str], named: str
) -> None:
    assert_one_sentence(prerequisites(tools, **chosen), named)


def test_a_compiler_that_does_not_link_cxx_is_no_cxx_compiler(tools: Path) -> None:
    executable(tools / "gcc", 'case "$*" in *-E*) echo __clang_major__ 12;; *) exit 1;; esac')
    done = prerequisites(tools, CXX="gcc")
    assert_one_sentence(done, "'gcc' does not link C++ programs")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_gcc_is_no_cxx_compiler() -> None:
    done = subprocess.run(
        [ROOT / "scripts/prerequisites.sh"],
        env={**os.environ, "CXX": "gcc", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert_one_sentence(done, "'gcc' does not link C++ programs")


def test_a_good_python_is_preferred_to_an_unusable_one(tools: Path) -> None:
    executable(tools / "python3", "echo venv 3.11 /usr/bin/python3")
    executable(tools / "python3.12", "echo good 3.12 /opt/python3.12")
    assert prerequisites(tools).stdout == "/opt/python3.12\n"


def test_a_stamp_holds_until_its_key_changes(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/environment.sh", tmp_path / "scripts")
    source = tmp_path / "source.txt"
    source.write_text("one", encoding="utf-8")
    script = "source scripts/environment.sh; once job $(key_of source.txt) ${1:-echo} ran"

    def run(*arguments: str) -> str:
        command = ["bash", "-c", script, "bash", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False
        ).stdout

    assert [run(), run()] == ["ran\n", ""]
    source.write_text("two", encoding="utf-8")
    assert run("false") == ""  # a failure leaves no stamp
    assert [run(), run()] == ["ran\n", ""]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_changed_files_are_those_since_main_and_new_ones(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/changed_files.sh", tmp_path / "scripts")
    (tmp_path / ".gitignore").write_text("scripts\n.gitignore\n", encoding="utf-8")

    def changed() -> list[str]:
        command = [tmp_path / "scripts/changed_files.sh"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    git(tmp_path, "init", "--initial-branch=main")
    (tmp_path / "old").touch()
    assert changed() == ["old"]
    git(tmp_path, "add", "old")
    assert changed() == ["old"]
    git(tmp_path, "commit", "--message=one")
    assert changed() == ["old"]  # the first commit, as a whole
    git(tmp_path, "switch", "--create", "branch")
    (tmp_path / "committed").touch()
    git(tmp_path, "add", "committed")
    git(tmp_path, "commit", "--message=two")
    (tmp_path / "new").touch()
    assert changed() == ["committed", "new"]


@few("ci", ["", "true"], ["true"])
def test_a_skip_fails_where_ci_is_set_and_nobody_allowed_it(tmp_path: Path, ci: str) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    shutil.copy(ROOT / "tests/conftest.py", folder)
    (folder / "allowed-skips.txt").write_text("test_a.py::test_two: no reason\n", encoding="utf-8")
    (folder / "test_a.py").write_text(
        "import pytest\n"
        "@pytest.mark.skip(reason='lazy')\ndef test_one(): pass\n"
        "def test_two(): pytest.skip('allowed')\n"
        "@pytest.mark.xfail(strict=True)\ndef test_three(): assert False\n",
        encoding="utf-8",
    )
    (folder / "test_b.py").write_text(
        "import pytest\npytest.importorskip('no_such_module')\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "-p", "no:cacheprovider", "."],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTEST_ADDOPTS": "--continue-on-collection-errors"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1]
    if ci:
        assert done.returncode == 1
        assert "1 skipped, 1 xfailed, 2 errors" in last
        assert "test_a.py::test_one was skipped (Skipped: lazy)" in done.stdout
    else:
        assert done.returncode == 0
        assert "3 skipped, 1 xfailed" in last
