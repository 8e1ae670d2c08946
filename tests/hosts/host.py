# SPDX-License-Identifier: Apache-2.0
"""One host: where it is, and programs, sockets and counters in it."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.hosts import counters, shape
from tests.hosts.namespaces import NAMED
from tests.hosts.shape import Shape
from tests.hosts.tools import PATH

DEVICE = "eth0"
Words = Sequence[str | os.PathLike[str]]
Stream = int | IO[str] | None
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Host:
    """A host of ``Hosts``.

    ``name``: what uname says in it. ``address``: of its one link, ``DEVICE``. ``namespace``: the
    network, as `ip netns` names it. ``switch``, ``port``: the namespace and name of the link's
    other end. ``keeper``: the process whose namespaces (network, UTS, mount) are the host's.
    ``programs``: what was started in it.
    """

    name: str
    address: str
    namespace: str
    switch: str
    port: str
    keeper: int
    programs: list[subprocess.Popen[str]] = field(default_factory=list, compare=False, repr=False)

    def start(
        self,
        command: Words,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
        inherited: Sequence[int] = (),
    ) -> subprocess.Popen[str]:
        """Start a program in this host; its process number is that of the ``Popen``.

        ``inherited``: descriptors of ours that it has, too, under the same numbers.
        ``Hosts`` ends it at the latest. Entering the mount namespace leaves the working folder,
        so a shell goes back there and becomes the program.
        """
        enter = ["nsenter", f"--target={self.keeper}", "--net", "--uts", "--mount", "--"]
        go = ["sh", "-c", 'cd "$0" && exec "$@"', os.fspath(cwd or Path.cwd())]
        environment = dict(os.environ if env is None else env)
        program = subprocess.Popen(
            [*enter, *go, *_words(command)],
            env={**environment, "PATH": environment.get("PATH", PATH)},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=inherited,
            text=True,
        )
        self.programs.append(program)
        return program

    def run(
        self, command: Words, *, timeout: float = 30.0, env: Mapping[str, str] | None = None
    ) -> str:
        """Run a program in this host to its end; return what it prints.

        Raises:
            RuntimeError: it failed; the text has its complaint.
            subprocess.TimeoutExpired: it was not done after ``timeout`` seconds, and is killed.
        """
        pipe = subprocess.PIPE
        with self.start(command, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as it:
            try:
                printed, complaint = it.communicate(timeout=timeout)
            except BaseException:
                it.kill()
                raise
        if it.returncode != 0:
            words = " ".join(_words(command))
            raise RuntimeError(f"{self.name}: '{words}' failed with {it.returncode}: {complaint}")
        return printed

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put this thread, and no other, into the network of the host: for sockets, no programs.

        A socket stays in the network in which it was made.
        """
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(NAMED / self.namespace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _enter(there)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _enter(own)
        finally:
            os.close(own)

    def socket(self, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
        """Return a new IPv4 socket in the network of this host, for this process to use."""
        with self.entered():
            return socket.socket(socket.AF_INET, kind)

    def counted(self) -> AbstractContextManager[counters.Traffic]:
        """``with host.counted() as traffic``: behind it, what passed the host's link inside."""
        return counters.counted(self.namespace, DEVICE)

    def shapes(self) -> tuple[Shape | None, Shape | None]:
        """Return how the link is shaped: what the host sends, and what it receives."""
        return shape.shape_of(self.namespace, DEVICE), shape.shape_of(self.switch, self.port)

    def put(self, sent: Shape | None, received: Shape | None) -> None:
        """Shape the link anew, also while bytes flow; None: no limit."""
        shape.put(self.namespace, DEVICE, sent)
        shape.put(self.switch, self.port, received)


def _words(command: Words) -> list[str]:
    return [os.fspath(word) for word in command]


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _NEW_NETWORK) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns into a network failed: {os.strerror(error)}")
