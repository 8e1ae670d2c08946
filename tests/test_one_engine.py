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
    assert makers == {"transport/memory.cc", *arenas}
    choosers = users_of(r"\b(HeapArena|FileArena)\b") - arenas
    assert choosers == {
        "bootstrap/membership.cc",
        "transport/arena.h",
        "transport/file_arena.h",
    }


def test_only_the_refusal_of_direct_access_asks_which_one_it_is() -> None:
    # pull and push read the peers' buffers, which another process does not have.
    askers = users_of(r"\bshares_memory_?\b")
    assert askers == {"communicator/communicator.cc", "communicator/communicator.h"}
    code = (NATIVE / "communicator" / "communicator.cc").read_text()
    # Kept, handed on to the groups of its members, and asked once.
    assert len(re.findall(r"\bshares_memory_\b", code)) == 3
    assert "if (direct && !shares_memory_)" in code


def test_nothing_that_moves_bytes_knows_of_processes() -> None:
    knowing = users_of(r"\b(memfd|fork|getpid|kill|SCM_RIGHTS|std::thread|pid)\b")
    folders = {path.split("/")[0] for path in knowing}
    assert folders.isdisjoint({"schedule", "plan", "prove", "kernels", "engine", "algorithms"})
