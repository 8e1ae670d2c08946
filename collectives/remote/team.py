# SPDX-License-Identifier: Apache-2.0
"""collrun's side of a job on several hosts: one ssh for each, their ranks watched together.

No process is left behind: an agent kills its ranks when its standard input ends, which it does
when this process ends, in whatever way, and when a connection breaks.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from collectives.launchers.interface import INTERFACE, LOOPBACK
from collectives.launchers.reach import unreachable
from collectives.lines import LONGEST, Lines
from collectives.remote.hosts import Share
from collectives.remote.messages import GREETING, GREETS, Task, task_line
from collectives.supervise import Outcome, Printer, dying_with, signals_to_pipe

_AGENT = ("-m", "collectives.remote")
_PARTING = 2.0  # seconds, for agents to end their ranks and themselves


class HostError(Exception):
    """A host could not be reached, or did not do what it was told; the text says which and why."""


class StoppedError(Exception):
    """A signal came before the ranks had started; ``number`` says which."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


@dataclass
class RemoteRank:
    """A rank that has ended on a host."""

    number: int
    code: int | None
    pid: int
    host: str
    because_of_another: bool = False

    @property
    def where(self) -> str:
        """Its process and host, in words."""
        return f"process {self.pid} on {self.host}"


@dataclass
class Member:
    """One host: what connects it, how far it is, and which of its ranks run."""

    share: Share
    process: subprocess.Popen[bytes]
    pidfd: int
    greeted: bool = False
    place: str = ""  # where rank 0 would meet the others, once the agent has its task
    network: str = ""  # the same word on all hosts that share one, as containers may
    running: set[int] = field(default_factory=set)
    complaint: str = ""  # the last line of ssh's own errors
    # A login shell may say anything; what an agent relays is a little longer than its own pieces.
    lines: Lines = field(default_factory=lambda: Lines(2 * LONGEST))
    ended: bool = False

    def tell(self, line: bytes) -> None:
        """Send a line; an agent that is gone is noticed by its end."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.write(line)


class Team:
    """The ranks of one job on several hosts, from their start to the end of the last."""

    def __init__(
        self,
        shares: Sequence[Share],
        reach: Sequence[str],
        task: Task,
        printers: tuple[Printer, Printer],
        complain: Callable[[str, bytes], None],
        patience: float,
    ) -> None:
        """Begin to reach the hosts by the command ``reach``, to which host and command are added.

        ``task``: of all, but for the ranks. ``printers`` take the lines of ranks, ``complain`` the
        host and a line that ssh itself says. ``patience``: seconds for all hosts to be there.
        """
        self._task, self._printers, self._complain = task, printers, complain
        self._reach = list(reach)
        self._patience = patience
        self._selector = selectors.DefaultSelector()
        self._outcome = Outcome()
        self._started = False
        self._lost = ""
        self._unread: OSError | None = None
        self._deadline = time.monotonic() + patience
        self._killing = 0  # how harsh it has become
        self._members: list[Member] = []
        try:
            for share in shares:
                self._connect(share)
        except BaseException:
            self._clean()
            raise

    def run(self) -> Outcome:
        """Wait for the end of all ranks, and leave none behind.

        Raises HostError where a host cannot be reached or is lost, StoppedError for a signal
        before the start, the printer's OSError where the ranks were ended because of it.
        """
        try:
            with signals_to_pipe() as pipe:
                self._watch(pipe, lambda: self._pass_on(os.read(pipe, 64)))
                while not all(member.ended for member in self._members):
                    self._turn()
        finally:
            self._clean()
        if self._lost and self._outcome.culprit is None:
            raise HostError(self._lost)
        if self._unread is not None and self._outcome.culprit is None:
            raise self._unread
        return self._outcome

    def _connect(self, share: Share) -> None:
        command = "exec " + shlex.join([sys.executable, *_AGENT])
        process = subprocess.Popen(
            [*self._reach, share.name.strip("[]"), command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # a Ctrl-C on the terminal reaches the ranks through us, once
            preexec_fn=dying_with(os.getpid()),  # safe: this process has no threads yet
        )
        member = Member(share, process, os.pidfd_open(process.pid))
        self._members.append(member)
        self._listen(process.stdout, lambda: self._hear(member))
        self._listen(process.stderr, lambda: self._hear_complaint(member))
        self._watch(member.pidfd, lambda: self._see_end(member))

    def _listen(self, pipe: IO[bytes] | None, action: Callable[[], bool]) -> None:
        assert pipe is not None
        fd = pipe.fileno()
        os.set_blocking(fd, False)

        def read() -> None:
            if not action():
                self._selector.unregister(fd)

        self._watch(fd, read)

    def _watch(self, fd: int, action: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, action)

    def _turn(self) -> None:
        """Wait for something to happen, and deal with it; or with that nothing has for too long."""
        endless = self._deadline == float("inf")
        timeout = None if endless else max(self._deadline - time.monotonic(), 0.0)
        for key, _ in self._selector.select(timeout):
            key.data()
        if time.monotonic() < self._deadline:
            return
        if not self._started:
            late = ", ".join(m.share.name for m in self._members if not m.place)
            raise HostError(f"{late}: no answer within {self._patience:g} s{self._complaints()}")
        self._harsher()

    def _hear(self, member: Member) -> bool:
        """Take what an agent says. Returns whether more can come."""
        assert member.process.stdout is not None
        data = member.process.stdout.read(1 << 16)
        if data is None:
            return True
        for line in (whole.removesuffix(b"\n") for whole in member.lines.take(data)):
            if not member.greeted:  # a login shell may print what it likes
                if line.startswith(GREETS):
                    self._greet(member, line)
                continue
            try:
                self._understand(member, line)
            except ValueError:
                raise HostError(
                    f"{member.share.name}: {line[:80]!r} came where its agent was to speak"
                ) from None
        return bool(data)

    def _greet(self, member: Member, line: bytes) -> None:
        if line != GREETING:
            theirs, ours = (text.decode(errors="replace").split()[-1] for text in (line, GREETING))
            raise HostError(
                f"{member.share.name} has version {theirs} of this library, this host {ours}: "
                "install the same on all"
            )
        member.greeted = True
        member.running = set(member.share.ranks)
        member.tell(task_line(replace(self._task, ranks=list(member.share.ranks))))

    def _understand(self, member: Member, line: bytes) -> None:
        kind, _, text = line.partition(b" ")
        if kind in (b"o", b"e", b"O", b"E"):
            number, _, words = text.partition(b" ")
            self._print(kind in b"eE", int(number), words + b"\n" * kind.islower())
        elif kind == b"m":
            address, port, member.network = text.decode().split(" ")
            member.place = f"{address}:{port}"
            self._start_when_all_are_there()
        elif kind == b"x":
            rank, code, pid, by_us, victim = map(int, text.split())
            ended = RemoteRank(rank, code, pid, member.share.name, victim == 1)
            self._see_rank_end(member, ended, by_us == 1)
        elif kind == b"f":
            self._lose(member, text.decode(errors="replace"))

    def _start_when_all_are_there(self) -> None:
        if all(member.place for member in self._members):
            self._check_reachable()
            self._started, self._deadline = True, float("inf")
            for member in self._members:
                member.tell(f"master {self._members[0].place}\n".encode())

    def _check_reachable(self) -> None:
        """Raise HostError where rank 0 would wait at a loopback that is not that of all."""
        first = self._members[0]
        networks = {member.network for member in self._members}
        if len(networks) == 1 or not first.place.startswith(LOOPBACK):
            return
        told = [f" {self._task.variables.get(INTERFACE, '')}"]
        why = unreachable(first.place.rpartition(":")[0], [0], told)
        raise HostError(f"{first.share.name}: {why}")

    def _print(self, error: bool, number: int, line: bytes) -> None:
        try:
            self._printers[error](number, line)
        except OSError as error_of_it:
            if self._unread is None:
                self._unread = error_of_it
                self._harsher()

    def _hear_complaint(self, member: Member) -> bool:
        assert member.process.stderr is not None
        data = member.process.stderr.read(1 << 16)
        for line in (data or b"").splitlines():
            member.complaint = line.decode(errors="replace").strip() or member.complaint
            with contextlib.suppress(OSError):
                self._complain(member.share.name, line)
        return data is None or bool(data)

    def _see_rank_end(self, member: Member, rank: RemoteRank, by_us: bool) -> None:
        member.running.discard(rank.number)
        if by_us:
            self._outcome.ended.add(rank.number)
        elif rank.code != 0:
            if not self._lost:
                self._outcome.blame(rank)
            self._deadline = min(self._deadline, time.monotonic() + self._task.grace)

    def _see_end(self, member: Member) -> None:
        """Note that ssh has ended; what the agent said last is read before."""
        self._selector.unregister(member.pidfd)
        while self._hear(member) and _more_in(member.process.stdout):
            pass
        self._hear_complaint(member)
        member.ended = True
        if member.running or not self._started:
            state = _end_of(member)
            assert state is not None
            exited = state.si_code == os.CLD_EXITED
            how = f"{'ended with' if exited else 'was ended by signal'} {state.si_status}"
            said = f": {member.complaint}" if member.complaint else ""
            self._lose(member, f"'{shlex.join(self._reach)}' {how}{said}")

    def _lose(self, member: Member, why: str) -> None:
        """Give up a host: before the start all of it, later what is left of its ranks."""
        sentence = f"{member.share.name}: {why}"
        if not self._started:
            raise HostError(sentence)
        if not member.running or self._killing > 1:
            return
        self._lost = self._lost or sentence
        self._outcome.ended |= member.running
        member.running.clear()
        self._deadline = min(self._deadline, time.monotonic() + self._task.grace)

    def _complaints(self) -> str:
        return "".join(f"; {m.share.name}: {m.complaint}" for m in self._members if m.complaint)

    def _pass_on(self, numbers: bytes) -> None:
        """Hand signals to all ranks; the second one kills."""
        if not self._started:
            raise StoppedError(numbers[0])
        for number in numbers:
            if self._outcome.passed_on:
                self._let_go()
            self._outcome.passed_on = number
            for member in self._members:
                member.tell(f"signal {number}\n".encode())

    def _harsher(self) -> None:
        """End the ranks that still run: SIGTERM, then SIGKILL, then without their agents' help."""
        self._killing += 1
        self._deadline = time.monotonic() + self._task.grace
        if self._killing > 2:
            self._let_go()
        for member in self._members:
            member.tell(b"harsher\n")

    def _let_go(self) -> None:
        """Have all ranks killed, and wait no longer than a moment for it."""
        self._killing = 3
        self._outcome.ended |= {rank for member in self._members for rank in member.running}
        for member in self._members:
            assert member.process.stdin is not None
            member.process.stdin.close()
        end = time.monotonic() + _PARTING
        while time.monotonic() < end and not all(map(_end_of, self._members)):
            time.sleep(0.01)
        for member in self._members:  # those that have ended are zombies still
            with contextlib.suppress(ProcessLookupError):
                os.killpg(member.process.pid, signal.SIGKILL)

    def _clean(self) -> None:
        self._let_go()
        for member in self._members:
            member.process.wait()
            os.close(member.pidfd)
            for pipe in (member.process.stdout, member.process.stderr):
                if pipe is not None:
                    pipe.close()
        self._selector.close()


def _end_of(member: Member) -> os.waitid_result | None:
    """Return how ssh has ended, None where it runs. It stays a zombie, and its group its own."""
    return os.waitid(os.P_PIDFD, member.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)


def _more_in(pipe: IO[bytes] | None) -> bool:
    return pipe is not None and bool(select.select([pipe], [], [], 0)[0])
