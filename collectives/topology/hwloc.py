# SPDX-License-Identifier: Apache-2.0
"""Sockets and NUMA nodes as hwloc knows them: its library is asked, and its XML read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from collectives.names import MOST_RANKS
from collectives.topology.rooms import Rooms
from collectives.topology.value import BY_HWLOC

PATIENCE = 10.0  # seconds that hwloc may take
ASKED = Path(__file__).with_name("hwloc_library.py")


def by_hwloc() -> Rooms | None:
    """Return what hwloc says; None where it is not installed, or does not say it."""
    try:
        return read_xml(told())
    except (OSError, subprocess.SubprocessError, ElementTree.ParseError, LookupError, ValueError):
        return None


def told() -> bytes:
    """Return the XML of hwloc's library. Raises OSError, SubprocessError."""
    if not Path(sys.executable or "").name.startswith(("python", "pypy")):
        raise OSError("a program with a Python inside: it would begin once more")
    command = [sys.executable, "-I", "-S", str(ASKED)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True
    )
    return done.stdout


def read_xml(text: bytes | str) -> Rooms | None:
    """Return what hwloc's XML holds; None without packages. Raises ValueError, ParseError."""
    machine = ElementTree.fromstring(text)
    packages = _rooms(machine, "Package")
    return Rooms(packages, _rooms(machine, "NUMANode"), BY_HWLOC) if packages else None


def _rooms(machine: ElementTree.Element, kind: str) -> dict[int, int]:
    """Return the number of each CPU's room of a kind.

    Of several it is the lowest: the node of DRAM before those of other memory, as the kernel says.
    """
    room_of: dict[int, int] = {}
    found = [item for item in machine.iter("object") if item.get("type") == kind]
    for position, item in enumerate(found):
        number = int(item.get("os_index", position))  # a virtual machine may not number them
        if not 0 <= number <= MOST_RANKS:
            raise ValueError(f"{kind} {number}")
        for cpu in cpus_in_mask(item.get("cpuset", "")):
            room_of[cpu] = min(number, room_of.get(cpu, number))
    return room_of


def cpus_in_mask(text: str) -> list[int]:
    """Return the numbers of the bits in "0x00000001,0x0000000f", the highest word first."""
    bits = 0
    for word in text.split(","):
        bits = bits << 32 | int(word or "0", 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]
