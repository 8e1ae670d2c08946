# SPDX-License-Identifier: Apache-2.0
"""The programs of iproute2 and util-linux that make hosts, and what is missing where one is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

PROGRAMS = {
    **dict.fromkeys(("ip", "tc", "ss", "bridge"), "iproute2"),
    **dict.fromkeys(("nsenter", "unshare"), "util-linux"),
    "mount": "mount",
}
# A plain user's PATH may lack the last two, and so may that of a service.
PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
TIMEOUT = 20.0  # seconds; each takes milliseconds


def missing() -> str | None:
    """Return in one sentence why hosts cannot be made here, or None."""
    if os.geteuid() != 0:
        return "hosts are network namespaces, which only root may make: run the tests as root."
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=PATH) is None:
            return f"hosts need the program {program}: install the package {package}."
    return None


def call(*command: str, lines: Sequence[str] = ()) -> str:
    """Run a program, ``lines`` on its standard input; return what it prints.

    Raises:
        RuntimeError: it failed; the text says the command and what it complained of.
    """
    done = subprocess.run(
        command,
        input="".join(f"{line}\n" for line in lines),
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        asked = "; ".join((" ".join(command), *lines))
        raise RuntimeError(f"'{asked}' failed with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
