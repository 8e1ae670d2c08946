# SPDX-License-Identifier: Apache-2.0
"""Run the processes of a job, relay what they print and what they are signalled, and end them.

One loop over file descriptors: the ranks' pipes, their pidfds and a wake-up pipe for signals. No
rank outlives the loop, and none outlives this process either: should it be killed, the kernel
kills the ranks, and a keeper what they have started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol

from collectives.cause import Note
from collectives.keeper import Keeper
from collectives.lines import Lines

DRAIN_S = 0.5  # for helper processes of the ranks to end after them, and to close the pipes

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)

# Takes one line of a rank, with its line feed, to where it is to be seen; of a long one a piece
# (lines.py). An OSError of it ends the job: nobody looks any more, or it cannot be written.
Printer = Callable[[int, bytes], None]


@dataclass
class Rank:
    """One process of the job. ``code`` is its exit code, negative for a signal, None: it runs.

    ``because_of_another``: it has said that it failed because another rank had.
    """

    number: int
    process: subprocess.Popen[bytes]
    pidfd: int
    note: Note
    code: int | None = None
    because_of_another: bool = False

    @property
    def where(self) -> str:
        """Its process, in words."""
        return f"process {self.process.pid}"


class Culprit(Protocol):
    """What is told of the rank at fault."""

    number: int
    code: int | None
    because_of_another: bool

    @property
    def where(self) -> str:
        """Its process, and its host if there are several, in words."""


@dataclass
class Outcome:
    """How a job ended: the rank at fault, None without one, and the ranks that had to be ended."""

    culprit: Culprit | None = None
    ended: set[int] = field(default_factory=set)
    passed_on: int = 0  # the signal to this process that was passed on to the ranks

    def blame(self, rank: Culprit) -> None:
        """Note a rank that has failed: the first that did so by itself.

        Peers of a killed rank fail too, and a large one takes longer to die than they do.
        """
        before = self.culprit
        if before is None:
            self.culprit = rank
            return
        killed_first = (before.code or 0) > 0 > (rank.code or 0) and not self.passed_on
        if killed_first or (before.because_of_another and not rank.because_of_another):
            self.culprit = rank


class Job:
    """The ranks of one job, from their start to the end of the last."""

    def __init__(
        self,
        command: Sequence[str],
        environments: Sequence[Mapping[str, str]],
        printers: tuple[Printer, Printer] | None = None,
        feed: bool = False,
        grace: float = 2.0,
        on_end: Callable[[Rank, bool], None] | None = None,
    ) -> None:
        """Start ``command`` once for each environment.

        ``printers`` take the lines of standard output and error; without them the ranks write
        where this process does. With ``feed``, rank 0 reads this process's standard input.
        ``grace``: seconds that the others have to end by themselves after one has failed, and
        once more after SIGTERM. ``on_end`` is told each rank's end, and whether it was ended.
        """
        self._on_end = on_end
        self._grace = grace
        self._selector = selectors.DefaultSelector()
        self._open_pipes = 0
        self._outcome = Outcome()
        self._unread: OSError | None = None
        self._deadline = float("inf")  # of the next, harsher means
        self._means = iter((signal.SIGTERM, signal.SIGKILL))
        self._ranks: list[Rank] = []
        self._keeper = Keeper()
        try:
            for number, environment in enumerate(environments):
                stdin = subprocess.PIPE if feed and number == 0 else subprocess.DEVNULL
                self._start(number, command, environment, printers, stdin)
        except BaseException:
            self._clean()
            raise

    def run(self) -> Outcome:
        """Wait for the end of all ranks; on the way, whatever happens, leave none behind.

        Raises the printer's OSError where the ranks had to be ended because of it, unless one had
        failed before.
        """
        try:
            self._feed()
            with signals_to_pipe() as pipe:
                self.watch(pipe, lambda: self.pass_on(os.read(pipe, 64)))
                while any(rank.code is None for rank in self._ranks):
                    self._turn(self._deadline)
                    if time.monotonic() >= self._deadline:
                        self.harsher()
                drained = time.monotonic() + DRAIN_S
                while self._open_pipes and time.monotonic() < drained:
                    self._turn(drained)
        finally:
            self._clean()
        if self._unread is not None and self._outcome.culprit is None:
            raise self._unread
        return self._outcome

    def _start(
        self,
        number: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        printers: tuple[Printer, Printer] | None,
        stdin: int,
    ) -> None:
        note = Note()
        process = subprocess.Popen(
            command,
            env={**environment, **note.variable},
            pass_fds=(note.writing,),
            stdin=stdin,
            stdout=subprocess.PIPE if printers else None,
            stderr=subprocess.PIPE if printers else None,
            bufsize=0,
            process_group=0,  # a Ctrl-C on the terminal reaches the ranks through us, once
            preexec_fn=self._kept_by(os.getpid()),  # safe: this process has no threads yet
        )
        note.handed_over()
        rank = Rank(number, process, os.pidfd_open(process.pid), note)
        self._ranks.append(rank)
        self.watch(rank.pidfd, lambda: self._see_end(rank))
        if printers:
            self._relay(number, process.stdout, printers[0])
            self._relay(number, process.stderr, printers[1])

    def _kept_by(self, parent: int) -> Callable[[], None]:
        """Return what a rank runs first: it asks to die with ``parent``, and tells the keeper.

        By itself, as ``parent`` may be killed before it can.
        """
        die = dying_with(parent)

        def prepare() -> None:
            die()
            self._keeper.watch(os.getpid())

        return prepare

    def watch(self, fd: int, action: Callable[[], None]) -> None:
        """Call ``action`` in a turn of run() whenever a descriptor can be read."""
        self._selector.register(fd, selectors.EVENT_READ, action)

    def _relay(self, number: int, source: IO[bytes] | None, printer: Printer) -> None:
        """Print what comes out of a pipe, line by line."""
        assert source is not None
        fd, lines = source.fileno(), Lines()

        def read() -> None:
            data = os.read(fd, 1 << 16)
            if not data:
                self._selector.unregister(fd)
                self._open_pipes -= 1
            for line in lines.take(data) if data else lines.last():
                try:
                    printer(number, line)
                except OSError as error:
                    self._end_unread(error)

        self.watch(fd, read)
        self._open_pipes += 1

    def _end_unread(self, error: OSError) -> None:
        """End the ranks when nobody gets what they print, as a pipe would end a program."""
        if self._unread is None:
            self._unread = error
            self.harsher()

    def _feed(self) -> None:
        """Copy standard input to the rank that asked for it."""
        for rank in self._ranks:
            if rank.process.stdin is not None:
                ends = (0, rank.process.stdin)
                threading.Thread(target=_copy, args=ends, daemon=True).start()

    def _turn(self, until: float) -> None:
        """Wait for something to happen, and deal with it."""
        timeout = None if until == float("inf") else max(until - time.monotonic(), 0.0)
        for key, _ in self._selector.select(timeout):
            key.data()

    def _see_end(self, rank: Rank) -> None:
        """Note how a rank ended. It stays a zombie: its group's number must not be given away."""
        self._selector.unregister(rank.pidfd)
        state = os.waitid(os.P_PIDFD, rank.pidfd, os.WEXITED | os.WNOWAIT)
        assert state is not None
        rank.code = state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
        rank.because_of_another = rank.note.take()
        if self._on_end is not None:
            self._on_end(rank, rank.number in self._outcome.ended)
        if rank.code == 0 or rank.number in self._outcome.ended:
            return
        self._outcome.blame(rank)
        self._deadline = min(self._deadline, time.monotonic() + self._grace)

    def pass_on(self, numbers: bytes) -> None:
        """Hand signals to all ranks; the second one kills."""
        for number in numbers:
            if self._outcome.passed_on:
                self._signal(signal.SIGKILL)
            else:
                self._outcome.passed_on = number
                self._signal(number)

    def harsher(self) -> None:
        """End the ranks that still run: first with SIGTERM, then with SIGKILL."""
        means = next(self._means, signal.SIGKILL)
        self._outcome.ended |= {rank.number for rank in self._ranks if rank.code is None}
        self._signal(means)
        self._deadline = time.monotonic() + self._grace

    def _signal(self, number: int) -> None:
        for rank in self._ranks:
            if rank.code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(rank.process.pid, number)
                    os.killpg(rank.process.pid, signal.SIGCONT)  # or a stopped one would not see it

    def _clean(self) -> None:
        """Kill what is left in the ranks' process groups, and reap."""
        for rank in self._ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(rank.process.pid, signal.SIGKILL)
            rank.process.wait()
            os.close(rank.pidfd)
            rank.note.close()
            for pipe in (rank.process.stdout, rank.process.stderr):
                if pipe is not None:
                    pipe.close()
        self._keeper.dismiss()
        self._selector.close()


def dying_with(parent: int) -> Callable[[], None]:
    """Return what a child runs first: it asks to be killed when ``parent`` dies."""

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before the child could ask
            os._exit(1)

    return prepare


def _copy(source: int, target: IO[bytes]) -> None:
    with contextlib.suppress(OSError), target:
        while data := os.read(source, 1 << 16):
            while data:
                data = data[os.write(target.fileno(), data) :]


@contextlib.contextmanager
def signals_to_pipe() -> Iterator[int]:
    """Write the numbers of signals to a pipe; yield its reading end."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    wanted = [n for n in _FORWARDED if signal.getsignal(n) is not signal.SIG_IGN]
    before = {n: signal.signal(n, lambda *_: None) for n in wanted}
    wake_up = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(wake_up)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
