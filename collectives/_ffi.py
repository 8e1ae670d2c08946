# SPDX-License-Identifier: Apache-2.0
"""The door to the compiled module: nothing else imports ``collectives._native``."""

from __future__ import annotations

from collectives.errors import CLASSES, InternalError

try:
    import collectives._native as native  # noqa: TID251  its error names what lacks
except ImportError as error:
    raise ImportError(
        f"the compiled part of pycollectives cannot be loaded ({error}). An installed package "
        "has it beside its Python files: reinstall it. In a checkout run `make setup` once, "
        "and use the environment that it made."
    ) from error

ffi, lib = native.ffi, native.lib

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


__all__ = ["IN_PROGRESS", "OK", "check", "ffi", "lib", "native", "text"]
