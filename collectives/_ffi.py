# SPDX-License-Identifier: Apache-2.0
"""The door to the compiled module: nothing else imports ``collectives._native``."""

from __future__ import annotations

# First, so that what is wrong with NumPy is told by NumPy.
import numpy as np  # noqa: F401

from collectives.errors import CLASSES, InternalError

try:
    from collectives._native import ffi, lib  # noqa: TID251
except ImportError as error:
    raise ImportError(
        f"the compiled part of pycollectives cannot be loaded ({error}). An installed package "
        "has it beside its Python files: reinstall it. In a checkout run `make setup` once, "
        "and use the environment that it made."
    ) from error

if (_installed := lib.install_plain_calls()) < 0:
    raise KeyboardInterrupt
if not _installed:
    raise ImportError(
        "the compiled part of pycollectives cannot complete itself, for the reason that stands "
        "above: where none does, reinstall the package"
    )
from collectives._native import __file__ as location  # noqa: TID251
from collectives._native import (  # noqa: TID251
    rows_of_parts,
    run_nccl_allreduce,
    run_persistent,
    run_plain,
    run_plain_parts,
)

OK: int = lib.COLL_OK
IN_PROGRESS: int = lib.COLL_IN_PROGRESS


def text(pointer: object) -> str:
    """Copy a C string."""
    return ffi.string(pointer).decode("utf-8", "replace")


def check(status: int) -> None:
    """Raise the exception that belongs to a status, with the native layer's sentence.

    Must run on the thread whose call returned the status: the sentence is kept per thread.
    """
    if status == OK:
        return
    sentence = text(lib.coll_last_error())
    rank = lib.coll_last_error_rank()
    cls = CLASSES.get(status)
    if cls is None:
        raise InternalError(f"unexpected status {status} of the native layer: {sentence}")
    raise cls(sentence, rank if rank >= 0 else None)


__all__ = [
    "IN_PROGRESS", "OK", "check", "ffi", "lib", "location", "rows_of_parts", "run_nccl_allreduce",
    "run_persistent", "run_plain", "run_plain_parts", "text",
]  # fmt: skip
