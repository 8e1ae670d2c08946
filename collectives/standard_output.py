# SPDX-License-Identifier: Apache-2.0
"""What a command does where standard output cannot be written: it says so in a sentence, and ends.

Where nobody reads it any more, as in `... | head -1`, it ends without a word, as a pipe would end
it.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO, Any

import click

UNREAD = 128 + signal.SIGPIPE  # what a shell reports for a program that wrote to a closed pipe
UNWRITABLE = 1
INTERRUPTED = 128 + signal.SIGINT


class UnwritableError(OSError):
    """A standard stream could not be written; ``strerror`` is a sentence that says why."""


class Command(click.Command):
    """A command that ends as this module says, whether it runs or prints its help."""

    def make_context(
        self, info_name: str | None, args: list[str], *parent: Any, **extra: Any
    ) -> click.Context:
        """Read the command line, which may print help."""
        with ending_unwritable(info_name):
            return super().make_context(info_name, args, *parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with ending_unwritable(ctx.info_name):
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                say(f"{ctx.info_name}: interrupted")
                sys.exit(INTERRUPTED)


@contextlib.contextmanager
def ending_unwritable(program: str | None) -> Iterator[None]:
    """End ``program`` where what is printed inside cannot be written.

    click has an exit code of its own for a pipe that nobody reads, so this comes before it.
    """
    _fill_closed()
    if sys.stdout is None:
        say(f"{program}: cannot write to standard output: it is closed")
        sys.exit(UNWRITABLE)
    _tell_own_errors()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):
            lead_nowhere(stream)
        sys.exit(UNREAD)
    except UnwritableError as error:
        lead_nowhere(sys.stdout)
        say(f"{program}: {error.strerror}")
        sys.exit(UNWRITABLE)


@contextlib.contextmanager
def writing(stream: IO[Any], name: str) -> Iterator[None]:
    """Let go of a stream that cannot be written; raise BrokenPipeError or UnwritableError."""
    try:
        with _named(name):
            yield
    except OSError:
        lead_nowhere(stream)
        raise


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Make an UnwritableError of an error in writing, unless nobody reads."""
    try:
        yield
    except (BrokenPipeError, UnwritableError):
        raise
    except OSError as error:
        why = f"cannot write to {name}: {error.strerror}"
        raise UnwritableError(error.errno, why) from error


class _Output(io.FileIO):
    """Standard output, of which an error cannot be taken for that of another file."""

    def write(self, data: Any) -> int:
        """Write what fits; return how much that is."""
        with _named("standard output"):
            return super().write(data)


def _tell_own_errors() -> None:
    """Put such a stream in the place of Python's own, unless somebody has put another there."""
    old = sys.stdout
    if old is sys.__stdout__ and isinstance(old, io.TextIOWrapper):
        raw = io.BufferedWriter(_Output(old.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(
            raw, old.encoding, old.errors, None, old.line_buffering, old.write_through
        )


def say(line: str) -> None:
    """Print a line on standard error, if that can be written: the exit code says what matters."""
    with contextlib.suppress(OSError), writing(sys.stderr, "standard error"):
        click.echo(line, err=True)


def lead_nowhere(stream: IO[Any]) -> None:
    """Throw away what a stream gets from now on, and what its buffer could not get rid of.

    Or else the interpreter would try once more at its end, complain, and change the exit code.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _fill_closed() -> None:
    """Lead closed standard streams nowhere: what is opened next would be taken for one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        raw = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
