# SPDX-License-Identifier: Apache-2.0
"""``python -m collectives.run --nccl script.py``: a program with this package's ``libnccl.so.2``.

As ``python script.py`` and ``python -m module`` run a program, in this process, but with the
library loaded first.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click

from collectives.preloading import preload_nccl


def run_program(program: str, arguments: tuple[str, ...], module: bool) -> None:
    """Run the program as ``__main__``, with its arguments."""
    sys.argv = [program, *arguments]
    if module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--nccl", is_flag=True, required=True,
    help="Load this package's libnccl.so.2 first, so that the program takes it for NCCL.",
)  # fmt: skip
@click.option("-m", "--module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(nccl: bool, module: bool, program: str, arguments: tuple[str, ...]) -> None:
    """Run PROGRAM with ARGUMENTS; under collrun, torchrun or mpiexec, as any other program."""
    if nccl:
        preload_nccl()
    run_program(program, arguments, module)


if __name__ == "__main__":
    main(prog_name="python -m collectives.run")
