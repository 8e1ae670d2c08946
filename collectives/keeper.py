# SPDX-License-Identifier: Apache-2.0
"""What is left to do when collrun itself is killed: to end what its ranks have started.

The kernel ends the ranks (PR_SET_PDEATHSIG), but not the processes that these have started. So a
small shell waits beside collrun on a pipe that nobody else holds. When the pipe ends without a
dismissal, it kills the process groups of the ranks.
"""

from __future__ import annotations

import contextlib
import subprocess

# Each line is the number of a group. `kill` goes on after a group that is gone.
_SCRIPT = 'while read -r g; do all="$all -$g"; done; [ -z "$all" ] || kill -s KILL -- $all'


class Keeper:
    """Kills the groups that it was told of when this process dies before it dismisses it."""

    def __init__(self) -> None:
        """Start the shell, in a session of its own, so that no signal for a job reaches it."""
        try:
            self._shell: subprocess.Popen[bytes] | None = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={},
                start_new_session=True,
            )
        except OSError:  # no shell here: only the ranks themselves end then
            self._shell = None

    def watch(self, group: int) -> None:
        """Add a process group."""
        if self._shell is not None and self._shell.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody has killed it
                self._shell.stdin.write(b"%d\n" % group)

    def dismiss(self) -> None:
        """End it: the groups are gone, and their numbers may be given to others."""
        if self._shell is not None and self._shell.stdin is not None:
            self._shell.kill()
            self._shell.wait()
            self._shell.stdin.close()
            self._shell = None
