# SPDX-License-Identifier: Apache-2.0
"""libpmix, opened at run time: its types and functions, as PMIx 3 to 6 have them.

Plain calls that block; :mod:`~collectives.launchers.pmix` knows deadlines.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from typing import Any

from collectives.errors import BootstrapError, CollectiveTimeoutError, UnsupportedError
from collectives.launchers.pmix_places import NAME

_TIMED_OUT = -24  # PMIX_ERR_TIMEOUT
_OLDEST, _NEWEST = 3, 6  # of these the layouts below were compared with the headers
_GLOBAL = 3  # PMIX_GLOBAL: for all ranks of the job, wherever they are
_BOOL, _INT, _BYTES = 1, 6, 27  # PMIX_BOOL, PMIX_INT, PMIX_BYTE_OBJECT


class _Process(ctypes.Structure):
    _fields_ = (("namespace", ctypes.c_char * 256), ("rank", ctypes.c_uint32))


class _ByteObject(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Data(ctypes.Union):
    # The largest of its many members is pmix_envar_t: two pointers and a char.
    _fields_ = (
        ("flag", ctypes.c_bool),
        ("integer", ctypes.c_int),
        ("bo", _ByteObject),
        ("envar", ctypes.c_void_p * 3),
    )


class _Value(ctypes.Structure):
    _fields_ = (("type", ctypes.c_uint16), ("data", _Data))


class _Info(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char * 512), ("flags", ctypes.c_uint32), ("value", _Value))


_INFO = [ctypes.POINTER(_Info), ctypes.c_size_t]
_FUNCTIONS = {
    "PMIx_Init": [ctypes.POINTER(_Process), *_INFO],
    "PMIx_Finalize": _INFO,
    "PMIx_Put": [ctypes.c_uint8, ctypes.c_char_p, ctypes.POINTER(_Value)],
    "PMIx_Commit": [],
    "PMIx_Fence": [ctypes.POINTER(_Process), ctypes.c_size_t, *_INFO],
    "PMIx_Get": [
        ctypes.POINTER(_Process),
        ctypes.c_char_p,
        *_INFO,
        ctypes.POINTER(ctypes.POINTER(_Value)),
    ],
}
_THAT_TELL = {"PMIx_Get_version": [], "PMIx_Error_string": [ctypes.c_int]}


class Pmix:
    """The functions that a directory needs. Raises OSError, AttributeError where they are not."""

    def __init__(self, library: ctypes.CDLL) -> None:
        for names, result in ((_FUNCTIONS, ctypes.c_int), (_THAT_TELL, ctypes.c_char_p)):
            for name, arguments in names.items():
                getattr(library, name).argtypes = arguments
                getattr(library, name).restype = result
        self._library = library
        self._own = _Process()

    @property
    def version(self) -> str:
        """What the library says of itself, "OpenPMIx 5.0.11 (...)"."""
        return str(self._library.PMIx_Get_version().decode(errors="replace"))

    def begin(self) -> int:
        """Connect to the launcher and return the rank. MPI may do so, too: PMIx counts both."""
        self._check("connect to it", self._library.PMIx_Init(ctypes.byref(self._own), None, 0))
        return int(self._own.rank)

    def put(self, key: str, value: bytes) -> None:
        """Leave a value for all ranks, from the next fence on."""
        room = ctypes.create_string_buffer(value, len(value))
        held = _Value(_BYTES)
        held.data.bo = _ByteObject(ctypes.addressof(room), len(value))
        self._check(
            "take a value", self._library.PMIx_Put(_GLOBAL, key.encode(), ctypes.byref(held))
        )
        self._check("take values", self._library.PMIx_Commit())

    def fence(self) -> None:
        """Wait until all ranks of the job have called it; it brings what they put to all hosts."""
        wish = _wish(b"pmix.collect", _BOOL, "flag", True)
        self._check("let ranks meet", self._library.PMIx_Fence(None, 0, wish, 1))

    def get(self, rank: int, key: str, seconds: int) -> bytes:
        """Return a value of a rank that it put before a fence."""
        wish = _wish(b"pmix.timeout", _INT, "integer", seconds)
        of = _Process(self._own.namespace, rank)
        found = ctypes.POINTER(_Value)()
        status = self._library.PMIx_Get(
            ctypes.byref(of), key.encode(), wish, 1, ctypes.byref(found)
        )
        self._check(f"tell what rank {rank} has put", status)
        try:
            value = found.contents
            if value.type != _BYTES:
                raise BootstrapError(f"rank {rank} has put a value of type {value.type} in PMIx")
            bo = value.data.bo
            data = ctypes.string_at(bo.bytes, bo.size)
            _free(bo.bytes)
            return data
        finally:
            _free(ctypes.cast(found, ctypes.c_void_p))

    def end(self) -> None:
        """Take leave of the launcher. Who ends without that counts as crashed."""
        self._library.PMIx_Finalize(None, 0)

    def _check(self, what: str, status: int) -> None:
        if status != 0:
            words = self._library.PMIx_Error_string(status).decode(errors="replace")
            kind = CollectiveTimeoutError if status == _TIMED_OUT else BootstrapError
            raise kind(f"the launcher's store (PMIx) cannot {what}: {words}")


def _wish(key: bytes, kind: int, member: str, value: int) -> Any:
    info = _Info(key, 0, _Value(kind))
    setattr(info.value.data, member, value)
    return ctypes.byref(info)


_free = ctypes.CDLL(None).free  # PMIx hands out what malloc() gave
_free.argtypes, _free.restype = [ctypes.c_void_p], None


def opened(places: Sequence[str]) -> Pmix:
    """Return the first of these libraries that can be used.

    Where MPI has loaded one, that is it, for a process has one of them only. Raises
    UnsupportedError, which names all that were tried.
    """
    reasons = []
    for place in (NAME, *places) if _is_loaded() else places:
        try:
            found = Pmix(ctypes.CDLL(place))
        except (OSError, AttributeError) as error:
            reasons.append(f"{place} ({error})")
            continue
        if is_known(found.version):
            return found
        reasons.append(f"{place} ({found.version}: PMIx {_OLDEST} to {_NEWEST} can be used)")
    raise UnsupportedError(f"tried {'; '.join(reasons)}")


def is_known(version: str) -> bool:
    """Whether the types above are those of a library that says this of itself."""
    number = re.search(r"(\d+)\.\d", version)
    return number is not None and _OLDEST <= int(number[1]) <= _NEWEST


def _is_loaded() -> bool:
    try:
        ctypes.CDLL(NAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return False
    return True
