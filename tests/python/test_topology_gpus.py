# SPDX-License-Identifier: Apache-2.0
"""What links GPUs: from what NVML tells, for which a module of the test stands in."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import collectives as cl
from collectives.topology import Link, gpus
from collectives.topology.rooms import Rooms

GPU, SWITCH, CPU = 0, 2, 1


class NVMLError(Exception):
    """What NVML refuses."""


class Nvml:
    """A machine: of each GPU, what its NVLinks lead to (a number: that GPU), None: not active."""

    NVML_NVLINK_MAX_LINKS = 36
    NVML_FEATURE_ENABLED = 1
    NVML_NVLINK_DEVICE_TYPE_GPU, NVML_NVLINK_DEVICE_TYPE_SWITCH = GPU, SWITCH
    NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90
    NVML_SUCCESS = 0
    NVMLError = NVMLError

    def __init__(
        self, *links: list[int | str | None], speed: int = 25_000, lanes: int = 16
    ) -> None:
        self.links, self.speed, self.lanes = links, speed, lanes
        self.opened = 0

    def nvmlInit(self) -> None:  # noqa: N802 - its names
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.links)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:  # noqa: N802
        return number

    def nvmlDeviceGetNvLinkState(self, gpu: int, link: int) -> int:  # noqa: N802
        if link >= len(self.links[gpu]):
            raise NVMLError("Invalid Argument")
        return int(self.links[gpu][link] is not None)

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, gpu: int, link: int) -> int:  # noqa: N802
        end = self.links[gpu][link]
        return {"switch": SWITCH, "cpu": CPU}.get(str(end), GPU)

    def nvmlDeviceGetNvLinkRemotePciInfo(self, gpu: int, link: int) -> Any:  # noqa: N802
        return self.nvmlDeviceGetPciInfo(self.links[gpu][link])

    def nvmlDeviceGetPciInfo(self, gpu: Any) -> Any:  # noqa: N802
        return SimpleNamespace(busId=f"00000000:{gpu:02X}:00.0".encode())

    def nvmlDeviceGetFieldValues(self, gpu: int, fields: list[int]) -> Any:  # noqa: N802
        assert fields == [90]
        status = 0 if self.speed else 3
        return [SimpleNamespace(nvmlReturn=status, value=SimpleNamespace(uiVal=self.speed))]

    def nvmlDeviceGetMaxPcieLinkGeneration(self, gpu: int) -> int:  # noqa: N802
        return 4

    def nvmlDeviceGetMaxPcieLinkWidth(self, gpu: int) -> int:  # noqa: N802
        return self.lanes


def told(monkeypatch: pytest.MonkeyPatch, nvml: Nvml, root: Path = Path("/none")) -> cl.Topology:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    found = gpus.topology_of_gpus("here", root)
    assert nvml.opened == 0
    return found


def test_nvlinks_are_links_of_their_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four GPUs of which two pairs are joined by two links, one by one: the others have PCI."""
    found = told(monkeypatch, Nvml([1, 1, 2], [0, None, 0], [0, 3, 3], [2, 2, "cpu"]))
    assert found.size == 4
    two, pci = Link(1e-6, 1 / 50e9), Link(2e-6, 1 / (16 * 1969e6))
    assert found.pairs == {(0, 1): two, (0, 2): Link(1e-6, 1 / 25e9), (2, 3): two}
    assert found.link(1, 3) == pci
    assert {place.source for place in found.places} == {"NVML"}
    assert "ranks 0 and 1" in str(found)


def test_switches_are_the_ports_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(monkeypatch, Nvml(["switch"] * 18, ["switch"] * 18, ["switch"] * 17, speed=26_562))
    assert not found.pairs
    assert found.link(0, 2) == Link(1e-6, 1 / (17 * 26_562e6))
    assert cl.pack(found).rate > 0


def test_links_of_unknown_speed_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(monkeypatch, Nvml([1], [0], speed=0, lanes=8))
    assert not found.pairs
    assert found.link(0, 1) == Link(2e-6, 1 / (8 * 1969e6))


def test_sockets_are_those_of_the_cpus_nearby(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for gpu, cpus in enumerate(("0-1\n", "2-3\n")):
        (tmp_path / f"0000:{gpu:02x}:00.0").mkdir()
        (tmp_path / f"0000:{gpu:02x}:00.0" / "local_cpulist").write_text(cpus)
    split = {0: 0, 1: 0, 2: 1, 3: 1}
    monkeypatch.setattr(gpus, "rooms", lambda: Rooms(split, split))
    found = told(monkeypatch, Nvml([], []), tmp_path)
    assert [place.package for place in found.places] == [0, 1]
    assert found.places[1].cpus == (2, 3)
    assert found.level(0, 1) == "host"


def test_without_nvml_gpu_or_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cl.UnsupportedError, match="NVML tells of no GPU"):
        told(monkeypatch, Nvml())

    class Without(Nvml):
        def nvmlInit(self) -> None:  # noqa: N802
            raise NVMLError("Driver Not Loaded")

    with pytest.raises(cl.UnsupportedError, match="does not tell of GPUs here: Driver Not Loaded"):
        told(monkeypatch, Without([]))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(cl.UnsupportedError, match="pip install nvidia-ml-py"):
        cl.Topology.of_gpus()


@pytest.mark.extras
def test_the_real_package_has_these_names_and_says_that_there_is_no_driver() -> None:
    pynvml = import_module("pynvml")
    for name in (name for name in vars(Nvml) if name.startswith(("nvml", "NVML"))):
        assert hasattr(pynvml, name), name
    assert pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH == SWITCH
    assert pynvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON == 90
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        with pytest.raises(cl.UnsupportedError, match="NVML does not tell of GPUs here"):
            cl.Topology.of_gpus()
    else:  # a machine with a GPU
        pynvml.nvmlShutdown()
        assert cl.Topology.of_gpus("here").size > 0
