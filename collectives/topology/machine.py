# SPDX-License-Identifier: Apache-2.0
"""Sockets and NUMA nodes of this machine: as hwloc says where it is installed, else as /sys does.

hwloc knows machines of which /sys tells half; for the rest both say the same. Its variables that
stand for another machine (HWLOC_XMLFILE and others) are not heeded: ranks are on this one.
"""

from __future__ import annotations

import os
from pathlib import Path

from collectives.topology.hwloc import by_hwloc
from collectives.topology.rooms import Rooms
from collectives.topology.value import BY_SYS

SYS = Path("/sys/devices/system")


def rooms() -> Rooms:
    """Return those of this machine."""
    return by_hwloc() or by_sys()


def own_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def by_sys(root: Path = SYS) -> Rooms:
    """Return what /sys says; everything is in room 0 where it says nothing."""
    package = {}
    for folder in root.glob("cpu/cpu[0-9]*"):
        file = folder / "topology" / "physical_package_id"
        if file.exists():
            package[int(folder.name.removeprefix("cpu"))] = max(int(file.read_text()), 0)
    numa = {}
    for folder in root.glob("node/node[0-9]*"):
        for cpu in cpus_in_list((folder / "cpulist").read_text()):
            numa[cpu] = int(folder.name.removeprefix("node"))
    return Rooms(package, numa, BY_SYS)


def cpus_in_list(text: str) -> list[int]:
    """Return the numbers of "0-3,8,10-11"."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.extend(range(int(first), int(last or first) + 1))
    return cpus
