# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads run the code of ranks that are processes: only the memory differs.

Else the thread sanitizer, which sees nothing between processes, would test what is never shipped.
"""

from __future__ import annotations

import re
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent / "native"
SOURCES = [p for p in sorted(NATIVE.rglob("*")) if p.suffix in (".h", ".cc")]


def users_of(pattern: str) -> set[str]:
    """Return the files below native/ whose code, comments apart, matches."""
    found = set()
    for path in SOURCES:
        code = re.sub(r"//.*", "", path.read_text())
        if re.search(pattern, code):
            found.add(path.relative_to(NATIVE).as_posix())
    return found


def test_one_file_chooses_between_the_two_sources_of_memory() -> None:
    makers = users_of(r"\bMemory::(allocate|shared|map|range)\b")
    arenas = {"transport/arena.cc", "transport/file_arena.cc"}
    # Rings for two ranks of a job on several machines: bytes between streams, no segment.
    assert makers == {"transport/memory.cc", "transport/local_pipe.cc", *arenas}
    choosers = users_of(r"\b(HeapArena|FileArena)\b") - arenas
    assert choosers == {
        "bootstrap/membership.cc",
        "transport/arena.h",
        "transport/file_arena.h",
    }


def test_only_the_names_of_buffers_ask_which_one_it_is() -> None:
    # What threads reach of each other is all memory; processes, the symmetric heap.
    askers = users_of(r"\bshares_memory_?\b")
    assert askers == {
        "communicator/buffers.cc",
        "communicator/communicator.cc",
        "communicator/communicator.h",
    }
    users = {path.split("/")[0] for path in users_of(r"\bSymmetricHeap\b")}
    assert users == {"transport", "engine", "communicator", "abi"}


def test_nothing_that_moves_bytes_knows_of_processes() -> None:
    knowing = users_of(r"\b(memfd|fork|getpid|kill|SCM_RIGHTS|std::thread|pid)\b")
    folders = {path.split("/")[0] for path in knowing}
    assert folders.isdisjoint({"schedule", "plan", "prove", "kernels", "engine", "algorithms"})
