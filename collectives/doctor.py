# SPDX-License-Identifier: Apache-2.0
"""What this machine offers to collectives, and lacks: findings with a line of advice each."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from collectives._ffi import ffi, lib, text

GOOD, NOTE, POOR = "good", "note", "poor"
_LEAST_FILES = 4096  # descriptors that some hundred ranks of one process tree need
_LEAST_BUFFER = 4 << 20  # bytes of TCP's largest send buffer


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: ``state`` is "good", "note" or "poor", ``advice`` may be ""."""

    what: str
    state: str
    found: str
    advice: str = ""


def examined(proc: Path = Path("/proc"), sys_: Path = Path("/sys")) -> list[Finding]:
    """Look at this machine; nothing is changed, nothing is sent."""
    looks: tuple[Callable[[Path, Path], Iterator[Finding]], ...] = (
        _cores,
        _frequency,
        _memory,
        _pages,
        _limits,
        _network,
        _rdma,
        _ucx,
        _hwloc,
        _launchers,
        _frameworks,
        _gpus,
    )
    return [finding for look in looks for finding in look(proc, sys_)]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _cores(proc: Path, sys_: Path) -> Iterator[Finding]:
    usable, all_ = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    less = usable < all_
    yield Finding(
        "cores",
        GOOD if usable > 1 else NOTE,
        f"{usable} of {all_} may be used",
        "this process is bound to some: ranks that it starts share them"
        if less
        else "ranks on one core take turns: a call then costs switches, not cache lines"
        if usable == 1
        else "",
    )
    quota = _text(sys_ / "fs/cgroup/cpu.max")
    if quota is not None and not quota.startswith("max"):
        time, period = (int(n) for n in quota.split()[:2])
        yield Finding(
            "processor time",
            POOR if time / period < usable else GOOD,
            f"the control group has {time / period:.2g} cores' worth",
            "more ranks than that are stopped in the middle of calls",
        )
    guest = "hypervisor" in (_text(proc / "cpuinfo") or "")
    if guest:
        yield Finding(
            "virtual machine",
            NOTE,
            "its cores may be moved while a program runs",
            "figures come in two kinds, near and far: compare within one run (docs/limits.md)",
        )


def _frequency(_: Path, sys_: Path) -> Iterator[Finding]:
    governor = _text(sys_ / "devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor is not None:
        slow = governor in ("powersave", "conservative", "ondemand")
        yield Finding(
            "frequency governor",
            NOTE if slow else GOOD,
            governor,
            "cores that wait may be slowed down: `performance` while measuring" if slow else "",
        )


def _memory(proc: Path, _: Path) -> Iterator[Finding]:
    found = {
        line.split(":")[0]: int(line.split()[1])
        for line in (_text(proc / "meminfo") or "").splitlines()
        if line.startswith(("MemAvailable", "MemTotal"))
    }
    if "MemAvailable" in found:
        free = found["MemAvailable"] / (1 << 20)
        yield Finding(
            "memory",
            GOOD if free > 1 else POOR,
            f"{free:.1f} GiB free of {found.get('MemTotal', 0) / (1 << 20):.1f}",
            "" if free > 1 else "each rank takes some MiB, and arrays of comm.empty() their size",
        )


def _pages(_: Path, sys_: Path) -> Iterator[Finding]:
    state = _text(sys_ / "kernel/mm/transparent_hugepage/shmem_enabled")
    if state is not None:
        never = "[never]" in state or "[deny]" in state
        yield Finding(
            "large pages of shared memory",
            NOTE if never else GOOD,
            state,
            "arrays of comm.empty() of many MiB are faster with `advise` in "
            "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
            if never
            else "",
        )


def _limits(_: Path, __: Path) -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft < _LEAST_FILES
    yield Finding(
        "file descriptors",
        NOTE if few else GOOD,
        f"{soft}, at most {hard}",
        f"hundreds of ranks on several hosts want more: ulimit -n {min(hard, 65536)}"
        if few
        else "",
    )


def _network(proc: Path, sys_: Path) -> Iterator[Finding]:
    buffers = _text(proc / "sys/net/ipv4/tcp_wmem")
    if buffers is not None:
        most = int(buffers.split()[-1])
        yield Finding(
            "TCP send buffer",
            GOOD if most >= _LEAST_BUFFER else NOTE,
            f"{most} bytes at most",
            ""
            if most >= _LEAST_BUFFER
            else "a fast network with delay wants more: net.ipv4.tcp_wmem",
        )
    for link in sorted((sys_ / "class/net").glob("*")):
        speed = _text(link / "speed")
        if _text(link / "operstate") == "up" and speed is not None and int(speed) > 0:
            yield Finding(f"interface {link.name}", GOOD, f"{speed} Mbit/s")


def _rdma(_: Path, sys_: Path) -> Iterator[Finding]:
    devices = sorted(path.name for path in (sys_ / "class/infiniband").glob("*"))
    if devices:
        yield Finding(
            "RDMA",
            GOOD,
            ", ".join(devices),
            'collectives use it by UCX: init(transport="ucx"), or trusted= (docs/transports.md)',
        )


def _ucx(_: Path, __: Path) -> Iterator[Finding]:
    room = ffi.new("char[]", 128)
    there = lib.coll_ucx_version(ffi.NULL, ffi.NULL, room, 128) == 0
    yield Finding(
        "UCX",
        GOOD if there else NOTE,
        text(room) if there else "not found",
        "" if there else "for RDMA: pip install libucx-cu12, or your system's libucx",
    )


def _hwloc(_: Path, __: Path) -> Iterator[Finding]:
    from collectives.topology.hwloc import by_hwloc

    there = by_hwloc() is not None
    yield Finding(
        "hwloc",
        GOOD if there else NOTE,
        "found" if there else "not found: sockets and NUMA nodes are read from /sys",
    )


def _launchers(_: Path, __: Path) -> Iterator[Finding]:
    found = [name for name in ("mpiexec", "srun", "torchrun", "ssh") if shutil.which(name)]
    yield Finding(
        "launchers",
        GOOD,
        ", ".join(["collrun", *found]),
        "" if "ssh" in found else "collrun --hosts needs ssh",
    )


def _frameworks(_: Path, __: Path) -> Iterator[Finding]:
    names = ("torch", "cupy", "jax", "ml_dtypes", "mpi4py", "scipy")
    found = [name for name in names if _installed(name)]
    yield Finding("Python packages", GOOD, ", ".join(found) or "none of " + ", ".join(names))


def _installed(name: str) -> bool:
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _gpus(proc: Path, _: Path) -> Iterator[Finding]:
    gpus = sorted((proc / "driver/nvidia/gpus").glob("*"))
    if gpus:
        yield Finding(
            "GPUs",
            NOTE,
            f"{len(gpus)} of NVIDIA",
            "collectives of arrays in their memory have never run on one (docs/gpu.md)",
        )
