# SPDX-License-Identifier: Apache-2.0
"""The rooms of one machine: the socket and the NUMA node that each CPU is in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rooms:
    """The package and the NUMA node of each CPU, and who says so, one of ``value.SOURCES``."""

    package: Mapping[int, int]
    numa: Mapping[int, int]
    source: str = ""

    def around(self, cpus: Iterable[int]) -> tuple[int, int]:
        """Return the package and NUMA node that most of these CPUs are in, the lowest of equals."""
        cpus = list(cpus)
        return _most(self.package, cpus), _most(self.numa, cpus)


def _most(room_of: Mapping[int, int], cpus: list[int]) -> int:
    counts: dict[int, int] = {}
    for cpu in cpus:
        room = room_of.get(cpu, 0)
        counts[room] = counts.get(room, 0) + 1
    return min(counts, key=lambda room: (-counts[room], room), default=0)
