# SPDX-License-Identifier: Apache-2.0
"""Write this machine's XML, as the library of hwloc exports it, to standard output.

:mod:`collectives.topology.hwloc` runs this file in a process of its own, without any package: the
library may hang, crash, print, or move its thread from CPU to CPU as it looks around. By hand,
``python -m collectives.topology.hwloc_library`` shows what it says, or why it says nothing.
"""

import ctypes
import os
import resource
import sys

NAME = "libhwloc.so.15"  # of hwloc 2.x
_MOST_MEMORY = 1 << 30  # bytes
# With them hwloc tells of another machine, or of a part of this one.
_OF_OTHERS = ("HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_COMPONENTS")
_ALL_OF_IT = 1  # HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED: what a cgroup withholds is there, too
_FUNCTIONS = {
    "hwloc_topology_init": [ctypes.c_void_p],
    "hwloc_topology_set_flags": [ctypes.c_void_p, ctypes.c_ulong],
    "hwloc_topology_load": [ctypes.c_void_p],
    "hwloc_topology_export_xmlbuffer": [ctypes.c_void_p] * 3 + [ctypes.c_ulong],
}
_WITHOUT_RESULT = {
    "hwloc_free_xmlbuffer": [ctypes.c_void_p] * 2,
    "hwloc_topology_destroy": [ctypes.c_void_p],
}


def opened(name: str = NAME) -> ctypes.CDLL:
    """Return the library with the types of what is called. Raises OSError, AttributeError."""
    library = ctypes.CDLL(name)
    for names, result in ((_FUNCTIONS, ctypes.c_int), (_WITHOUT_RESULT, None)):
        for function, arguments in names.items():
            getattr(library, function).argtypes = arguments
            getattr(library, function).restype = result
    return library


def xml(library: ctypes.CDLL) -> bytes:
    """Return this machine's XML. Raises OSError where the library gives none."""
    topology = ctypes.c_void_p()
    _check(library.hwloc_topology_init(ctypes.byref(topology)), "begin")
    try:
        _check(library.hwloc_topology_set_flags(topology, _ALL_OF_IT), "take its flags")
        _check(library.hwloc_topology_load(topology), "look at this machine")
        return _exported(library, topology)
    finally:
        library.hwloc_topology_destroy(topology)


def _exported(library: ctypes.CDLL, topology: ctypes.c_void_p) -> bytes:
    text, length = ctypes.c_void_p(), ctypes.c_int()
    places = ctypes.byref(text), ctypes.byref(length)
    _check(library.hwloc_topology_export_xmlbuffer(topology, *places, 0), "export XML")
    try:
        return ctypes.string_at(text, length.value).rstrip(b"\0") if text else b""
    finally:
        library.hwloc_free_xmlbuffer(topology, text)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(f"hwloc cannot {what}")


if __name__ == "__main__":
    for name in _OF_OTHERS:
        os.environ.pop(name, None)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    try:
        sys.stdout.buffer.write(xml(opened()))
    except (OSError, AttributeError) as error:
        sys.exit(f"{NAME}: {error}")
