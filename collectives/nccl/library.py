# SPDX-License-Identifier: Apache-2.0
"""One libnccl, opened: its version, what it has, and its functions."""

from __future__ import annotations

import os
import threading
from typing import Any

from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.nccl import find
from collectives.nccl.constants import SUCCESS
from collectives.nccl.declarations import HOST_ARRAYS, SINCE, ffi
from collectives.nccl.errors import NcclError, error_of
from collectives.nccl.versions import OLDEST, Version

# Where this package has a libnccl of its own, which takes arrays of the host.
_OURS = ("collectives", "nccl_library")


class Library:
    """One libnccl. :func:`load` opens it, once in a process.

    ``path`` is where it is, ``how`` how it was found, ``version`` the version that it tells, and
    ``host_arrays`` whether it takes arrays in memory of the host, as that of this package does
    and NVIDIA's does not.
    """

    path: str
    how: str
    version: Version
    host_arrays: bool

    def __init__(self, path: str, how: str = "path", host_arrays: bool | None = None) -> None:
        """Open a file, whatever else is loaded."""
        self.path, self.how = path, how
        try:
            self._lib: Any = ffi.dlopen(path)
        except OSError as error:
            raise UnsupportedError(_not_opened(path, how, error)) from error
        self._functions: dict[str, Any] = {}
        self._addresses: dict[str, int] = {}
        self.version = self._told_version()
        if self.version < OLDEST:
            raise UnsupportedError(
                f"{path} is NCCL {self.version}, and {OLDEST} is needed: install a newer one "
                f"(pip install nvidia-nccl-cu13), or name one by {find.VARIABLE}"
            )
        self.host_arrays = self._takes_host() if host_arrays is None else host_arrays

    def __repr__(self) -> str:
        return f"<NCCL {self.version}, {self.path}>"

    def has(self, function: str) -> bool:
        """Whether the library has a function, by its name in C."""
        try:
            self.function(function)
        except UnsupportedError:
            return False
        return True

    def capabilities(self) -> dict[str, bool]:
        """Return which of all functions that are declared here the library has."""
        return {name: self.has(name) for name in SINCE}

    def function(self, name: str) -> Any:
        """Return a function, to be called with integers. Raises UnsupportedError without it."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._look_up(name)
        return found

    def address(self, name: str) -> int:
        """Return where a function is. Raises UnsupportedError without it."""
        found = self._addresses.get(name)
        if found is None:
            found = self._addresses[name] = int(ffi.cast("uintptr_t", self.function(name)))
        return found

    def _look_up(self, name: str) -> Any:
        if name not in SINCE:
            raise InvalidArgumentError(f"{name!r} is no function of NCCL that is declared here")
        try:
            return getattr(self._lib, name)
        except AttributeError:
            raise UnsupportedError(
                f"{name} came with NCCL {SINCE[name]}, and {self.path} is {self.version}, without "
                "it: use a newer libnccl"
            ) from None

    def error(self, function: str, code: int, comm: int = 0) -> NcclError:
        """Return the exception of a result, with NCCL's last message."""
        said = _text(self.function("ncclGetErrorString")(code))
        last = _text(self.function("ncclGetLastError")(comm))
        return error_of(function, code, said, last)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function that returns a result; raise what is not success."""
        code = self.function(function)(*arguments)
        if code != SUCCESS:
            raise self.error(function, code)

    def _told_version(self) -> Version:
        number = ffi.new("int *")
        try:
            self.call("ncclGetVersion", number)
        except UnsupportedError as error:
            raise UnsupportedError(f"{self.path} is no NCCL: it has no ncclGetVersion") from error
        return Version.of_code(number[0])

    def _takes_host(self) -> bool:
        if tuple(os.path.realpath(self.path).split(os.sep)[-3:-1]) == _OURS:
            return True
        try:
            getattr(self._lib, HOST_ARRAYS)
        except AttributeError:
            return False
        return True


def _not_opened(path: str, how: str, error: OSError) -> str:
    if path == find.SONAME:
        return (
            "there is no libnccl here: pip install nvidia-nccl-cu13, or let "
            f"{find.VARIABLE} name one ({error})"
        )
    return f"{path}, {how}, cannot be loaded: {error}"


def _text(pointer: Any) -> str:
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


_lock = threading.Lock()
_opened: Library | None = None


def load(path: str | None = None, *, host_arrays: bool | None = None) -> Library:
    """Return the libnccl of this process, which the first call opens.

    Args:
        path: A file, or its folder. Without it, in this order: what COLLECTIVES_NCCL names, one
            that is loaded in this process already (as by torch), the one of a PyPI package
            (nvidia-nccl-cu13 and the like), the system's.
        host_arrays: Whether it takes arrays in memory of the host; by default it tells itself.

    Raises UnsupportedError where there is none, where it is older than 2.18, and where two copies
    would be in this process, which do not know of one another; InvalidArgumentError where the one
    that is named is not there.
    """
    global _opened
    with _lock:
        if _opened is None:
            found = find.find(path)
            opened = Library(found.path, found.how, host_arrays)
            here = find.loaded()
            find.refuse_copies(here)
            if here and opened.path == find.SONAME:  # where the loader has found it
                opened.path = here[0]
            _opened = opened
        elif path is not None:
            _refuse_another(_opened, path)
        if host_arrays is not None:
            _opened.host_arrays = host_arrays
        return _opened


def _refuse_another(opened: Library, path: str) -> None:
    wanted = find.named("path", path)
    if not find.same_file(wanted.path, opened.path):
        raise UnsupportedError(
            f"path names {wanted.path}, but {opened.path} is in use in this process: two copies of "
            "NCCL do not know of one another"
        )
