# SPDX-License-Identifier: Apache-2.0
"""Turns the public C header into the C source of ``collectives._native``.

CMake calls ``python ffi_build.py <collectives.h> <output.c>`` with the build-time Python. The
header, with those that it includes from beside it, is the only description of the interface: what
it declares is what Python sees, checked by the C compiler.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cffi import FFI

MODULE = "collectives._native"

# Functions of Python that C calls. Unlike ffi.callback() this needs no memory that is both written
# and executed, which some systems refuse: every program calls init().
CALLBACKS = 'extern "Python+C" int32_t asked_to_stop(void *context);'

# What plain.c adds to the module.
DOOR = Path(__file__).with_name("door.h")


def cdef_of(header: str) -> str:
    """Return the declarations of ``header`` as cffi reads them.

    cffi refuses preprocessor lines and ``extern "C"``. Both go; the header keeps its constants in
    enums, so nothing is lost.
    """
    plain = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", header, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^\s*#.*\n", "", plain, flags=re.MULTILINE)


def whole(header: Path) -> str:
    """Return the text of ``header``, with that of each header beside it where it is included."""
    seen = {header.name}

    def included(line: re.Match[str]) -> str:
        name = line.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return expanded(header.with_name(name).read_text(encoding="utf-8"))

    def expanded(text: str) -> str:
        return re.sub(r'^#include "([^"]+)".*\n', included, text, flags=re.MULTILINE)

    return expanded(header.read_text(encoding="utf-8"))


def write_binding(header: Path, output: Path) -> None:
    """Write the C source of the extension module for ``header`` to ``output``."""
    ffi = FFI()
    ffi.cdef(cdef_of(whole(header)))
    ffi.cdef(CALLBACKS)
    ffi.cdef(cdef_of(DOOR.read_text(encoding="utf-8")))
    ffi.set_source(MODULE, f'#include "{header.name}"\n#include "bindings/{DOOR.name}"')
    ffi.emit_c_code(str(output))
    output.touch()  # cffi leaves an unchanged file alone; the build must see that it is current


if __name__ == "__main__":
    write_binding(Path(sys.argv[1]), Path(sys.argv[2]))
