# SPDX-License-Identifier: Apache-2.0
"""collbench simulate: what it prints, and one sentence for each mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from collectives.cli.app import collbench
from collectives.topology import Link, Place, Topology
from tests.processes.jobs import environment


def test_a_barrier_is_of_no_size() -> None:
    told = CliRunner().invoke(collbench, ["simulate", "node:8", "-k", "barrier"])
    assert told.exit_code == 0, told.output
    assert told.output.startswith("barrier among 8 ranks on node:8\n")


def test_what_was_found_is_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    told = CliRunner().invoke(
        collbench, ["simulate", "node:4", "-a", "ring,circulant", "--json", str(path)]
    )
    assert told.exit_code == 0, told.output
    found = json.loads(path.read_text())["simulations"]
    assert {one["algorithm"] for one in found} == {"ring", "circulant"}
    assert found[0]["seconds"] <= found[1]["seconds"]
    assert all(sum(one["link_bytes"].values()) > 0 for one in found)
    nowhere = CliRunner().invoke(collbench, ["simulate", "node:4", "--json", "/none/found.json"])
    assert nowhere.exit_code != 0
    assert "the folder /none does not exist" in nowhere.output


@pytest.mark.parametrize("name", [b"nope.json", b"folder.json", b"\xff", b"\xff:8", b"no\xff.json"])
def test_what_is_no_topology_is_one_sentence(name: bytes, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    told = _run(name, tmp_path)
    assert told.returncode == 1
    assert told.stdout == b""
    assert told.stderr.startswith(b"collbench: ")
    assert told.stderr.count(b"\n") == 1


def test_a_file_of_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.json")
    Topology((Place("a"), Place("b")), {"network": Link(1e-6, 1e-9)}).save(path)
    told = _run(b"\xff.json", tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(b"allreduce of 1M among 2 ranks on ?.json\n")


def _run(topology: bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    command: list[str | bytes] = [sys.executable, "-m", "collectives.cli", "simulate", topology]
    return subprocess.run(command, capture_output=True, cwd=folder, timeout=60, env=environment())
