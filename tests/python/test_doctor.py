# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds: on this machine, and on made-up ones that lack things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import collectives as cl
from collectives.cli.app import collbench
from collectives.doctor import GOOD, NOTE, POOR, Finding, examined
from collectives.tuning.guidelines import Guideline, measured
from tests.python.ranks import on_ranks


def by_name(found: list[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in found}


def test_this_machine(tmp_path: Path) -> None:
    found = by_name(examined())
    assert {"cores", "memory", "file descriptors", "UCX", "launchers"} <= set(found)
    assert all(finding.state in (GOOD, NOTE, POOR) and finding.found for finding in found.values())
    path = tmp_path / "found.json"
    shown = CliRunner().invoke(collbench, ["doctor", "--json", str(path)])
    assert shown.exit_code == 0, shown.output
    told = json.loads(path.read_text())["findings"]
    assert [one["what"] for one in told] == [one.what for one in examined()]
    assert all(what in shown.output for what in ("cores", "UCX"))


def test_guidelines() -> None:
    assert Guideline("a <= b", 8, 1.2, 1.1, 1.3).verdict == "broken"
    assert Guideline("a <= b", 8, 0.9, 0.8, 1.0).verdict == "kept"
    assert Guideline("a <= b", 8, 1.0, 0.9, 1.2).verdict == "unsure"

    def work(comm: cl.Communicator) -> list[Guideline]:
        return measured(comm, (8, 4096))

    for p in (2, 4):
        one, *others = on_ranks(p, work)
        assert all(one == other for other in others)
        assert len(one) == 2 * 2 + 1 + 5 + 2 * (p - 2)
        assert all(g.low <= g.ratio <= g.high for g in one)
    assert [g.rule for g in one if "among" in g.rule][::2] == [
        "allreduce among 2 ranks <= among 3",
        "allreduce among 3 ranks <= among 4",
    ]


@pytest.mark.parametrize(
    ("files", "what", "state", "words"),
    [
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, "processor time", POOR, "0.5 cores"),
        (
            {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"},
            "frequency governor",
            NOTE,
            "powersave",
        ),
        ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 5 kB"}, "memory", POOR, "0.0 GiB"),
        (
            {"sys/kernel/mm/transparent_hugepage/shmem_enabled": "always [never]"},
            "large pages of shared memory",
            NOTE,
            "never",
        ),
        ({"proc/sys/net/ipv4/tcp_wmem": "4096 16384 65536"}, "TCP send buffer", NOTE, "65536"),
        ({"sys/class/infiniband/mlx5_0/x": ""}, "RDMA", GOOD, "mlx5_0"),
        ({"proc/driver/nvidia/gpus/0000:01/x": ""}, "GPUs", NOTE, "1 of NVIDIA"),
        (
            {"sys/class/net/eth0/speed": "25000", "sys/class/net/eth0/operstate": "up"},
            "interface eth0",
            GOOD,
            "25000",
        ),
        ({"proc/cpuinfo": "flags: hypervisor"}, "virtual machine", NOTE, "moved"),
    ],
)
def test_machines_that_lack_things(
    files: dict[str, str], what: str, state: str, words: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    finding = by_name(examined(tmp_path / "proc", tmp_path / "sys"))[what]
    assert finding.state == state
    assert words in finding.found
