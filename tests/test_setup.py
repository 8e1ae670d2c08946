# SPDX-License-Identifier: Apache-2.0
"""What `make setup` says, with a Python that installs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ("pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt")
DEBIAN = ("ucx.sh", "hwloc.sh", "iproute2.sh")  # which install packages of the system's
HINT = "setup: `source .venv/bin/activate` makes collrun and collbench available"

# Answers what scripts/prerequisites.sh and scripts/setup.sh ask a Python.
PYTHON = """#!/bin/sh
case $1 in
  -c) echo good 3.11 "$0";;
  -V) echo Python 3.11.2;;
  -m) case "$*" in *"$FAILS") echo "no $FAILS" >&2; exit 1;; esac
      [ "$2" != venv ] || { mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; };;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the scripts and what the stamps depend on."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in DEBIAN:
        (folder / "scripts" / name).write_text("#!/bin/sh\n", encoding="utf-8")
    for name in INPUTS:
        (folder / name).touch()
    for name in ("cmake", "native", "collectives"):
        (folder / name).mkdir()
        (folder / name / "file").touch()
    (folder / "collectives" / "module.py").touch()
    return folder


def run(checkout: Path, *arguments: str, fails: str = "?") -> subprocess.CompletedProcess[str]:
    """Run the script with a Python that fails where the last words of its command are `fails`."""
    python = checkout / "python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    return subprocess.run(
        [checkout / "scripts/setup.sh", *arguments],
        env={**os.environ, "PYTHON": str(python), "FAILS": fails},
        capture_output=True,
        text=True,
        check=False,
    )


def setup(checkout: Path, *arguments: str) -> list[str]:
    """Run the script; return the lines that it prints."""
    done = run(checkout, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_setup_ends_with_how_to_get_at_the_commands(checkout: Path) -> None:
    lines = setup(checkout)
    assert lines[0].startswith("setup: .venv with ")
    assert lines[-1] == HINT
    assert lines.count(HINT) == 1


def test_setup_says_nothing_where_nothing_changed(checkout: Path) -> None:
    setup(checkout)
    assert setup(checkout) == []


@pytest.mark.parametrize("changed", ["pyproject.toml", "native/file"])
def test_setup_says_it_again_after_a_change(checkout: Path, changed: str) -> None:
    setup(checkout)
    (checkout / changed).write_text("new", encoding="utf-8")
    assert setup(checkout)[-1] == HINT


def test_a_module_that_comes_or_goes_is_put_on_the_list_of_the_editable_install(
    checkout: Path,
) -> None:
    setup(checkout)
    module = checkout / "collectives" / "module.py"
    module.write_text("changed", encoding="utf-8")
    assert setup(checkout) == []
    module.rename(module.with_name("other.py"))
    assert "setup: building the package" in setup(checkout)


def test_setup_says_it_after_the_extras(checkout: Path) -> None:
    setup(checkout)
    assert setup(checkout, "extras") == ["setup: installing the packages of group extras", HINT]


@pytest.mark.parametrize("fails", ["--editable .", "--group build", "--group dev"])
def test_setup_ends_where_a_part_fails_and_makes_it_again(checkout: Path, fails: str) -> None:
    done = run(checkout, fails=fails)
    assert done.returncode == 1
    assert f"no {fails}" in done.stderr
    assert HINT not in done.stdout
    assert setup(checkout)[-1] == HINT
    assert setup(checkout) == []
