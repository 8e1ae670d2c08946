# SPDX-License-Identifier: Apache-2.0
"""Jobs that are started once: each rank tells when it entered, had joined, and had called."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.hosts.teams import mpiexec_over
from bench.record import ROOT
from tests.hosts import Host

PATIENCE_S = 120.0
RANK = "bench.hosts.ranks.start"
COMMAND = (sys.executable, "-m", RANK)

Process = subprocess.Popen[Any]
# Starts all processes of a job, with a folder of its own; they print into the file.
Launch = Callable[[Path, IO[bytes]], list[Process]]


class StartError(Exception):
    """A job did not start; the text has what it said."""


@dataclass(frozen=True)
class Start:
    """Seconds of one job.

    `started`: from the start of its first process until its last rank had joined; `init`: of these
    those after the last rank's entry; `first`: the first call, until the last rank had its result.
    """

    started: float
    init: float
    first: float


def summed(begin: float, text: str, ranks: int) -> Start:
    """Return what the lines RANK ENTERED JOINED CALLED of all ranks come to.

    Raises:
        StartError: lines are missing.
    """
    told = {int(words[0]): [float(word) for word in words[1:]] for words in _lines(text)}
    if sorted(told) != list(range(ranks)):
        missing = [rank for rank in range(ranks) if rank not in told]
        raise StartError(f"of {ranks} ranks {len(missing)} told nothing: {missing[:8]}")
    entered, joined, called = (max(moments) for moments in zip(*told.values(), strict=True))
    return Start(joined - begin, joined - entered, called - joined)


def _lines(text: str) -> list[list[str]]:
    lines = [line.split() for line in text.splitlines()]
    return [words for words in lines if len(words) == 4 and words[0].isdecimal()]


def once(launch: Launch, ranks: int, folder: Path) -> Start:
    """Start a job, wait for its end, and return its times.

    Raises:
        StartError: it failed, or was not done in two minutes.
    """
    folder.mkdir(mode=0o700)
    said = folder / "said"
    processes: list[Process] = []
    begin = time.monotonic()
    try:
        with said.open("ab") as file:  # appended to, by all
            processes = launch(folder, file)
        codes = [
            process.wait(max(begin + PATIENCE_S - time.monotonic(), 0)) for process in processes
        ]
    except subprocess.TimeoutExpired:
        raise StartError(f"it was not done in {PATIENCE_S:.0f} s: {_tail(said)}") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    if any(codes):
        raise StartError(_tail(said))
    return summed(begin, said.read_text(encoding="utf-8", errors="replace"), ranks)


def native_in_folder(program: Path, ranks: int, hosts: int) -> Launch:
    """Return what starts native processes, which meet in a folder."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        command = [str(program), "folder", str(folder), str(hosts)]
        return [
            subprocess.Popen(command, env=_places(rank, ranks), stdout=said, stderr=said)
            for rank in range(ranks)
        ]

    return launch


def native_by_master(program: Path, ranks: int, hosts: int, port: int) -> Launch:
    """Return what starts native processes, of which rank 0 keeps a store."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        del folder
        command = [str(program), "master", f"127.0.0.1:{port}", str(hosts)]
        secret = {"SECRET": secrets.token_hex(32)}
        return [
            subprocess.Popen(command, env=_places(rank, ranks) | secret, stdout=said, stderr=said)
            for rank in range(ranks)
        ]

    return launch


def native_by_pmi(program: Path, ranks: int, hosts: int, mpich: Path) -> Launch:
    """Return what starts native processes with MPICH's launcher."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        del folder
        command = [str(mpich.with_name("mpiexec")), "-n", str(ranks), str(program), "pmi"]
        return [_launcher([*command, str(hosts)], said)]

    return launch


def python_in_folder(hosts: Sequence[Host], each: int) -> Launch:
    """Return what starts Python ranks on hosts, which meet in a folder."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        meeting = {"COLLECTIVES_RENDEZVOUS": str(folder / "meeting")}
        return on_hosts(hosts, each, COMMAND, meeting, said)

    return launch


def python_by_master(hosts: Sequence[Host], each: int, port: int) -> Launch:
    """Return what starts Python ranks on hosts, of which rank 0 keeps a store."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        file = folder / "secret"
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(32), encoding="ascii")
        variables = {
            "MASTER_ADDR": hosts[0].address,
            "MASTER_PORT": str(port),
            "COLLECTIVES_SECRET_FILE": str(file),
        }
        return on_hosts(hosts, each, COMMAND, variables, said)

    return launch


def python_by_torch(hosts: Sequence[Host], each: int, port: int) -> Launch:
    """Return what starts torchrun on hosts, whose ranks meet in torch's store."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        del folder
        command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={len(hosts)}"]
        command += [f"--nproc-per-node={each}", f"--master-addr={hosts[0].address}"]
        command += [f"--master-port={port}"]
        return [
            _start(host, [*command, f"--node-rank={node}", "-m", RANK], _environment(), said)
            for node, host in enumerate(hosts)
        ]

    return launch


def python_by_pmi(hosts: Sequence[Host], each: int, mpich: Path) -> Launch:
    """Return what starts Python ranks on hosts with MPICH's launcher."""

    def launch(folder: Path, said: IO[bytes]) -> list[Process]:
        command = mpiexec_over(hosts, each, mpich, folder / "enter")
        return [_start(hosts[0], [*command, sys.executable, "-m", RANK], _environment(), said)]

    return launch


def on_hosts(
    hosts: Sequence[Host],
    each: int,
    command: Sequence[str],
    variables: dict[str, str],
    said: IO[bytes],
) -> list[Process]:
    """Start a command on hosts, as ranks that know their places; `variables` say how they meet."""
    ranks = each * len(hosts)
    return [
        _start(hosts[rank // each], command, _places(rank, ranks) | variables, said)
        for rank in range(ranks)
    ]


def _start(host: Host, command: Sequence[str], env: dict[str, str], said: IO[bytes]) -> Process:
    output = said.fileno()
    return host.start(
        command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )


def _launcher(command: Sequence[str], said: IO[bytes]) -> Process:
    null = subprocess.DEVNULL
    return subprocess.Popen(
        command, cwd=ROOT, env=_environment(), stdin=null, stdout=said, stderr=said
    )


def _environment() -> dict[str, str]:
    """Return this process's, without what would tell ranks another way to meet."""
    ours = ("COLLECTIVES", "PMI", "MASTER_", "TORCHELASTIC")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"OMP_NUM_THREADS": "1"}


def _places(rank: int, ranks: int) -> dict[str, str]:
    return _environment() | {"RANK": str(rank), "WORLD_SIZE": str(ranks)}


def _tail(said: Path) -> str:
    return said.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
