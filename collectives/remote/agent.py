# SPDX-License-Identifier: Apache-2.0
"""The agent on a host: runs the ranks of this host, and ends them when collrun is gone."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from collectives import environment
from collectives.errors import CollectiveError
from collectives.launchers.interface import own_address
from collectives.launchers.launch import RENDEZVOUS
from collectives.launchers.meeting import host
from collectives.launchers.secret import SECRET_FILE
from collectives.remote.messages import GREETING, LONGEST, Task, read_task
from collectives.supervise import Job, Printer, Rank

_READ, _WRITE = 0, 1
# Of the login shell or of a job around this one: they would contradict what the task says.
_FOREIGN = (RENDEZVOUS, SECRET_FILE, environment.MASTER)


class AbandonedError(Exception):
    """Collrun has ended, or let go of this host."""


def main() -> int:
    """Serve collrun over standard input and output. Returns the exit code."""
    orders = Orders()
    try:
        _say(GREETING)
        task = read_task(orders.next())
        os.chdir(task.folder)
        for name in _FOREIGN:
            os.environ.pop(name, None)
        os.environ.update(task.variables)
        address = own_address()
        network = "/".join(host().split()[:2])
        _say(f"m {address} {task.port or _free_port(address)} {network}".encode())
        word, _, master = orders.next().decode().partition(" ")
        if word != "master":
            raise ValueError(f"collrun said {word!r} where it is to name the place of rank 0")
        _run(task, master, orders)
    except (AbandonedError, BrokenPipeError):
        return 1
    except (CollectiveError, OSError, ValueError) as error:
        with suppress(BrokenPipeError):
            _say(b"f " + str(error).encode().replace(b"\n", b" "))
        return 1
    return 0


class Orders:
    """The lines that come from collrun."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._rest = b""

    def next(self) -> bytes:
        """Wait for a line. Raises AbandonedError at the end."""
        while b"\n" not in self._rest:
            self._more()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def carry_out(self, job: Job) -> None:
        """Read what has come, once, and do it."""
        self._more()
        while b"\n" in self._rest:
            word, _, number = self.next().decode().partition(" ")
            if word == "signal":
                job.pass_on(bytes([int(number)]))
            elif word == "harsher":
                job.harsher()

    def _more(self) -> None:
        data = os.read(_READ, 1 << 16)
        if not data or len(self._rest) > LONGEST:
            raise AbandonedError
        self._rest += data


def _run(task: Task, master: str, orders: Orders) -> None:
    """Run the ranks to their end. Their time of grace is collrun's to decide."""

    def printer(kind: str) -> Printer:
        def write(number: int, line: bytes) -> None:
            whole = line.endswith(b"\n")
            head = f"{kind if whole else kind.upper()} {task.ranks[number]} "
            _write(head.encode() + line + b"\n" * (not whole))

        return write

    def ended(rank: Rank, by_us: bool) -> None:
        number = task.ranks[rank.number]
        words = number, rank.code, rank.process.pid, int(by_us), int(rank.because_of_another)
        _say(f"x {' '.join(map(str, words))}".encode())

    with _secret_file(task.secret) as path:
        environments = [_environment(task, rank, master, path) for rank in task.ranks]
        printers = printer("o"), printer("e")
        job = Job(task.command, environments, printers, grace=float("inf"), on_end=ended)
        job.watch(_READ, lambda: orders.carry_out(job))
        job.run()


def _environment(task: Task, rank: int, master: str, secret: str) -> dict[str, str]:
    return {
        # A rank's output is a pipe: without this, what it printed would die with it.
        "PYTHONUNBUFFERED": "1",
        **({"OMP_NUM_THREADS": "1"} if len(task.ranks) > 1 else {}),
        **os.environ,
        environment.RANK: str(rank),
        environment.SIZE: str(task.size),
        environment.JOB: task.job,
        environment.ATTEMPT: str(task.attempt),
        environment.MASTER: master,
        SECRET_FILE: secret,
    }


@contextmanager
def _secret_file(secret: str) -> Iterator[str]:
    """Give a file in memory that the ranks, and nobody but this user, can read.

    It has no name, so it goes with this process, however that ends.
    """
    file = os.memfd_create("secret", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.fchmod(file, 0o600)
        os.write(file, secret.encode())
        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        yield f"/proc/{os.getpid()}/fd/{file}"
    finally:
        os.close(file)


def _free_port(address: str) -> int:
    """Return a port that nobody has; rank 0 will take it in a moment."""
    bare = address.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind(socket.getaddrinfo(bare, 0, family, socket.SOCK_STREAM)[0][4])
        return int(probe.getsockname()[1])


def _say(line: bytes) -> None:
    _write(line + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(_WRITE, data) :]
