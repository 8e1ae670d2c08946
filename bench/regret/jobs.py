# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of a job, on this machine or on shaped hosts, and returns what rank 0 found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.hosts.jobs import Process, on_hosts
from bench.hosts.run import links
from bench.record import ROOT
from tests.hosts import Hosts

RANK = "bench.regret.rank"
VISITS = 5  # of shaped hosts, whose ranks share cores as the system likes
SPARE_S = 600.0  # beyond the limit of the cells: tuning, the last cell, start and end


class JobError(Exception):
    """The ranks did not come to their end."""


def on_machine(ranks: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Run a job on this machine, each rank on a core of its own or the next one in turn.

    Which ranks share a core decides which plan is best: left to the system, that changes between
    the run that tunes and the one that measures.
    """
    asked = asked | {"pin": True, "visits": 1}
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "found.json"
        command = [sys.executable, "-m", "collectives.launch", "-n", str(ranks), "-m", RANK]
        program = subprocess.Popen([*command, json.dumps(asked), str(part)], cwd=ROOT)
        _await([program], _patience(asked))
        return _found(part)


def on_shaped(hosts: int, mbit: float, asked: dict[str, Any], module: str = RANK) -> dict[str, Any]:
    """Run a job with one rank on each of some shaped hosts, which are made for it.

    ``module`` is what a rank runs, with what is asked and the path that rank 0 writes to.

    Raises:
        JobError: a rank failed, or the time is over.
        RuntimeError: hosts cannot be made.
    """
    asked = asked | {"pin": False, "visits": VISITS}
    with Hosts(hosts, mbit=mbit) as made, tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "found.json"
        command = [sys.executable, "-m", module, json.dumps(asked), str(part)]
        variables = {"COLLECTIVES_RENDEZVOUS": str(Path(folder) / "meeting")}
        with open(os.dup(sys.stdout.fileno()), "wb") as said:
            ranks = on_hosts(list(made), 1, command, variables, said)
            _await(ranks, _patience(asked))
        return {"links": links(made, mbit), **_found(part)}


def _patience(asked: dict[str, Any]) -> float:
    return float(asked["limit"] + asked["budget"] + SPARE_S)


def _await(programs: Sequence[Process], seconds: float) -> None:
    """Wait until all have ended; the first that fails, or time, ends the others."""
    end = time.monotonic() + seconds
    try:
        while any(program.poll() is None for program in programs):
            if any(program.returncode for program in programs):
                break
            if time.monotonic() > end:
                raise JobError(f"the ranks were not done in {seconds:.0f} s")
            time.sleep(0.05)
    finally:
        for program in programs:
            if program.poll() is None:
                program.terminate()
        for program in programs:
            _ended(program)
    if bad := [program.returncode for program in programs if program.returncode]:
        raise JobError(f"a rank ended with exit code {bad[0]}: what it said is above")


def _ended(program: Process) -> None:
    try:
        program.wait(10)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def _found(part: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(part.read_text(encoding="utf-8"))
    return found
