# SPDX-License-Identifier: Apache-2.0
"""A virtual environment per peer under build/peers/: the MPIs' libraries share file names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.peers.libraries import Library
from bench.record import ROOT

FOLDER = ROOT / "build" / "peers"
_STAMP = "complete"


class VenvError(Exception):
    """An environment could not be made; the text says why."""


def python_of(library: Library, folder: Path = FOLDER) -> Path:
    """Return the Python that has what a library needs; its environment is made if need be.

    Our own environment serves ourselves, and torch where `make test-extras` has put it there.
    """
    if all(_is_here(requirement) for requirement in library.requirements):
        return Path(sys.executable)
    place = folder / library.name
    key = "\n".join([sys.version, *library.requirements])
    stamp = place / _STAMP
    python = place / "bin" / "python"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == key and python.exists():
        return python
    shutil.rmtree(place, ignore_errors=True)
    sys.stderr.write(f"bench.peers: installing {library.title} into {place}\n")
    _run(library, [sys.executable, "-m", "venv", str(place)])
    _run(library, [str(python), "-m", "pip", "install", "--quiet", *library.requirements])
    stamp.write_text(key, encoding="utf-8")
    return python


def _is_here(requirement: str) -> bool:
    """Whether this environment has a package: exactly, where the requirement names a version."""
    name, _, wanted = requirement.partition("==")
    name = name.partition(">=")[0]
    try:
        found = version(name)
    except PackageNotFoundError:
        return False
    return not wanted or found.partition("+")[0] == wanted


def _run(library: Library, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise VenvError(
            f"{library.title} could not be installed (leave it out with --libraries):\n"
            f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        )
