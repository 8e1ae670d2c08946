# SPDX-License-Identifier: Apache-2.0
"""This machine's GPUs and what links them, as NVML tells (the package nvidia-ml-py).

Rank i of the topology is GPU i. Links to another GPU are a pair's own; what leads to switches,
where all GPUs have it, or else PCI Express is the link of all levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from collectives.errors import UnsupportedError
from collectives.topology.machine import cpus_in_list, rooms
from collectives.topology.value import BY_NVML, Link, Place, Topology

# What NVML does not tell is guessed: how long an empty message takes, in seconds.
NVLINK_ALPHA, PCI_ALPHA = 1e-6, 2e-6
# Bytes per second of a lane, by generation, behind the coding of the line.
_PCI_LANE = {1: 250e6, 2: 500e6, 3: 985e6, 4: 1969e6, 5: 3938e6, 6: 7563e6}
_BUS = Path("/sys/bus/pci/devices")


class Gpu(NamedTuple):
    """What NVML says of one: links by the bus of the GPU at their other end, and to switches."""

    bus: str
    peers: Counter[str]
    switched: int
    link_rate: float  # bytes per second of one NVLink, one way; 0: there is none
    pci_rate: float  # the same of PCI Express


def topology_of_gpus(host: str, root: Path = _BUS) -> Topology:
    """Return the topology; ``root`` is where /sys has PCI devices."""
    with _nvml() as nvml:
        found = [_gpu(nvml, number) for number in range(nvml.nvmlDeviceGetCount())]
    if not found:
        raise UnsupportedError("NVML tells of no GPU on this machine")
    places = tuple(_place(gpu, host, root) for gpu in found)
    pairs = {}
    for a, one in enumerate(found):
        for b in range(a + 1, len(found)):
            if count := one.peers[found[b].bus]:
                pairs[a, b] = Link(NVLINK_ALPHA, 1 / (count * one.link_rate))
    common = _common(found)
    return Topology(places, dict.fromkeys(("numa", "package", "host"), common), pairs)


def _common(gpus: list[Gpu]) -> Link:
    """Return the link of GPUs without one of their own, as fast as the slowest GPU's."""
    switched = min(gpu.switched * gpu.link_rate for gpu in gpus)
    if switched > 0:
        return Link(NVLINK_ALPHA, 1 / switched)
    return Link(PCI_ALPHA, 1 / min(gpu.pci_rate for gpu in gpus))


@contextmanager
def _nvml() -> Iterator[Any]:
    """Open NVML; say of any of its errors that the topology is not there."""
    try:
        nvml: Any = import_module("pynvml")
    except ImportError as error:
        raise UnsupportedError(
            "the topology of GPUs is read through NVML: pip install nvidia-ml-py"
        ) from error
    try:
        nvml.nvmlInit()
        try:
            yield nvml
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        raise UnsupportedError(f"NVML does not tell of GPUs here: {error}") from error


def _gpu(nvml: Any, number: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    peers: Counter[str] = Counter()
    switched = 0
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(handle, link) != nvml.NVML_FEATURE_ENABLED:
                continue
            kind = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link)
            if kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
                switched += 1
            elif kind == nvml.NVML_NVLINK_DEVICE_TYPE_GPU:
                peers[_bus(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))] += 1
        except nvml.NVMLError:  # this GPU has fewer, or none
            break
    rate = _link_rate(nvml, handle) if peers or switched else 0.0
    if rate == 0.0:  # links of unknown speed are not told of
        peers, switched = Counter(), 0
    return Gpu(
        _bus(nvml.nvmlDeviceGetPciInfo(handle)), peers, switched, rate, _pci_rate(nvml, handle)
    )


def _link_rate(nvml: Any, handle: Any) -> float:
    field = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON])[0]
    return float(field.value.uiVal) * 1e6 if field.nvmlReturn == nvml.NVML_SUCCESS else 0.0


def _pci_rate(nvml: Any, handle: Any) -> float:
    generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
    lanes = nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)
    return _PCI_LANE[min(max(generation, 1), max(_PCI_LANE))] * int(max(lanes, 1))


def _bus(info: Any) -> str:
    """Return the address as /sys writes it: NVML has eight digits for the domain."""
    name = info.busId.decode() if isinstance(info.busId, bytes) else info.busId
    domain, _, rest = name.partition(":")
    return f"{int(domain, 16):04x}:{rest.lower()}"


def _place(gpu: Gpu, host: str, root: Path) -> Place:
    try:
        cpus = cpus_in_list((root / gpu.bus / "local_cpulist").read_text())
    except (OSError, ValueError):  # a container may not show it
        return Place(host, source=BY_NVML)
    package, numa = rooms().around(cpus)
    return Place(host, package, numa, tuple(cpus), BY_NVML)
