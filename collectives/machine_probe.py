# SPDX-License-Identifier: Apache-2.0
"""Measures what this machine costs the ranks of a communicator, and names the machine."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from collectives._ffi import ffi, lib
from collectives.machine_costs import MachineCosts, costs_of

if TYPE_CHECKING:
    from collectives.communicator import Communicator

_MODEL = ("vendor_id", "cpu family", "model", "model name", "CPU implementer", "CPU part")


def measured_costs(comm: Communicator, budget_s: float = 0.2) -> MachineCosts:
    """Return what the machine costs, the same on all ranks, after about ``budget_s`` seconds.

    Every rank must call it, with the same budget (0.001 to 60 s); the ranks must share memory.

    Raises:
        InvalidArgumentError: the budget is none.
        UnsupportedError: the ranks are on several machines.
        TimeoutError: a rank did not come.
    """
    machine = ffi.new("coll_machine *")
    comm.barrier()
    comm._handle.call("probe", lib.coll_measure_machine, float(budget_s), machine, ffi.NULL)
    comm.barrier()
    return costs_of(machine)


def host_fingerprint() -> str:
    """Return what names the kind of this machine: 16 hex digits, the same after each boot.

    It depends on the CPU's model, on how many cores this process may use, and on their caches.
    """
    words = [platform.machine(), *_model(Path("/proc/cpuinfo"))]
    words.append(str(len(os.sched_getaffinity(0))))
    words += _caches(Path("/sys/devices/system/cpu/cpu0/cache"))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _model(path: Path) -> list[str]:
    """Return the lines that say what the first CPU is."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    first = text.split("\n\n")[0]
    return [line for line in first.splitlines() if line.split(":")[0].strip() in _MODEL]


def _caches(folder: Path) -> list[str]:
    """Return the level, kind and size of each cache."""
    found = []
    for cache in sorted(folder.glob("index*")):
        try:
            words = [(cache / name).read_text().strip() for name in ("level", "type", "size")]
        except OSError:
            continue
        found.append(" ".join(words))
    return found
