# SPDX-License-Identifier: Apache-2.0
"""Sockets and NUMA nodes of this machine: as hwloc says where it is installed, else as /sys does.

hwloc's program knows machines of which /sys tells half, and honours what an administrator has
corrected (HWLOC_XMLFILE); for the rest both say the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HWLOC = "lstopo-no-graphics"
SYS = Path("/sys/devices/system")
PATIENCE = 10.0  # seconds that hwloc may take


@dataclass(frozen=True)
class Rooms:
    """The package and the NUMA node of each CPU."""

    package: Mapping[int, int]
    numa: Mapping[int, int]

    def around(self, cpus: Iterable[int]) -> tuple[int, int]:
        """Return the package and NUMA node that most of these CPUs are in, the lowest of equals."""
        cpus = list(cpus)
        return _most(self.package, cpus), _most(self.numa, cpus)


def rooms() -> Rooms:
    """Return those of this machine."""
    return by_hwloc() or by_sys()


def own_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def by_hwloc() -> Rooms | None:
    """Return what hwloc says; None where it is not installed, or does not say it."""
    program = shutil.which(HWLOC)
    if program is None:
        return None
    command = [program, "--of", "xml", "--whole-system"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
        return read_xml(done.stdout.decode())
    except (OSError, subprocess.SubprocessError, ElementTree.ParseError, ValueError):
        return None


def read_xml(text: str) -> Rooms | None:
    """Return what hwloc's XML holds; None without packages."""
    package: dict[int, int] = {}
    numa: dict[int, int] = {}
    for item in ElementTree.fromstring(text).iter("object"):
        rooms_of = {"Package": package, "NUMANode": numa}.get(item.get("type", ""))
        if rooms_of is not None:
            number = int(item.get("os_index", "0"))
            rooms_of.update(dict.fromkeys(cpus_in_mask(item.get("cpuset", "")), number))
    return Rooms(package, numa) if package else None


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
    return Rooms(package, numa)


def cpus_in_list(text: str) -> list[int]:
    """Return the numbers of "0-3,8,10-11"."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def cpus_in_mask(text: str) -> list[int]:
    """Return the numbers of the bits in "0x00000001,0x0000000f", the highest word first."""
    bits = 0
    for word in text.split(","):
        bits = bits << 32 | int(word or "0", 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def _most(room_of: Mapping[int, int], cpus: list[int]) -> int:
    counts: dict[int, int] = {}
    for cpu in cpus:
        room = room_of.get(cpu, 0)
        counts[room] = counts.get(room, 0) + 1
    return min(counts, key=lambda room: (-counts[room], room), default=0)
