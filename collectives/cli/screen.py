# SPDX-License-Identifier: Apache-2.0
"""Where text goes: colours and a live progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_PLAIN_WIDTH = 150  # of a file or pipe, which has no edge to wrap at


class Screen:
    """Lines on standard output with a progress bar below them, while it is a terminal."""

    def __init__(self, what: str, total: int) -> None:
        """Prepare for `total` steps of `what`; use it with ``with``."""
        self.console = console()
        self._live = self.console.is_terminal
        columns = (
            TextColumn("[dim]{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(
            *columns, console=self.console, transient=True, disable=not self._live
        )
        self._task = self._progress.add_task(what, total=total)

    def __enter__(self) -> Screen:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        self._progress.stop()

    def line(self, text: str, style: str | None = None) -> None:
        """Print a line above the bar, at once."""
        if self._live:
            self.console.print(
                text, style=style, markup=False, highlight=False, soft_wrap=True, emoji=False
            )
        else:
            print(text, flush=True)

    def step(self) -> None:
        """Move the bar on by one."""
        self._progress.advance(self._task)


class _Plain(Console):
    """A console that leaves it to the program what to do where nobody reads."""

    def on_broken_pipe(self) -> NoReturn:
        """Pass on what rich would end the program for, with another exit code."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console for standard output that never wraps what is not shown on a terminal."""
    return _Plain(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
