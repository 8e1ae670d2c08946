# SPDX-License-Identifier: Apache-2.0
"""One rank of a test between hosts: runs functions, each in a child, as its standard input asks.

Reads lines ``ATTEMPT MODULE.FUNCTION [JSON ARGUMENTS]``; the child's number goes to
FOLDER/ATTEMPT.RANK.pid, and what the function returns to FOLDER/ATTEMPT.RANK.json.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import collectives as cl
from collectives.environment import ATTEMPT


def write(path: Path, found: Any) -> None:
    """Write a whole file, or none."""
    draft = path.with_suffix(f"{path.suffix}.{os.getpid()}")
    draft.write_text(json.dumps(found))
    draft.rename(path)


def child(folder: Path, attempt: str, program: str, arguments: list[Any]) -> int:
    """Run one function; its end is that of a process."""
    os.environ[ATTEMPT] = attempt
    os.environ["TEST_FOLDER"] = str(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    module, _, function = program.partition(".")
    name = f"{attempt}.{os.environ['RANK']}"
    write(folder / f"{name}.pid", os.getpid())
    work = getattr(importlib.import_module(f"tests.hosts.{module}"), function)
    comm = cl.init(timeout=30)
    write(folder / f"{name}.json", work(comm, *arguments))
    comm.close()
    return 0


def main(folder: str) -> int:
    """Serve until standard input ends; in a child, return how its function ended."""
    for line in sys.stdin:
        attempt, program, *rest = line.split(maxsplit=2)
        pid = os.fork()
        if pid == 0:
            return child(Path(folder), attempt, program, json.loads(rest[0]) if rest else [])
        _, status = os.waitpid(pid, 0)
        write(Path(folder) / f"{attempt}.{os.environ['RANK']}.end", status)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
