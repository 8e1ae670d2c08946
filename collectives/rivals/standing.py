# SPDX-License-Identifier: Apache-2.0
"""Whether NCCL may be chosen at all among the ranks of a communicator: on all of them the same."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from collectives.nccl import find
from collectives.nccl.library import load
from collectives.nccl.versions import Version
from collectives.rivals.identity import BYTES, uuid_of
from collectives.rivals.talk import ROW, told

if TYPE_CHECKING:
    from collectives.caller import Caller

LEAST = Version(2, 18)  # load() refuses older ones
SEVERAL_ON_ONE = Version(2, 30)  # from here on ranks may share a GPU, where all
SHARING = "NCCL_MULTI_RANK_GPU_ENABLE"  # is 1
_HEAD = struct.Struct(f"<I?{BYTES}s")


class Facts(NamedTuple):
    """What a rank tells: why it has no NCCL for this, or which, on what GPU."""

    why: str
    version: int = 0  # as NCCL tells it
    shares: bool = False  # whether this rank lets others on its GPU
    gpu: bytes = bytes(BYTES)

    def packed(self) -> bytes:
        """Return it as a row."""
        said = self.why.encode("utf-8", "replace")[: ROW - _HEAD.size]
        return _HEAD.pack(self.version, self.shares, self.gpu) + said

    @classmethod
    def of_row(cls, row: bytes) -> Facts:
        """Return what a row says."""
        version, shares, gpu = _HEAD.unpack(row[: _HEAD.size])
        why = row[_HEAD.size :].rstrip(b"\0").decode("utf-8", "replace")
        return cls(why, version, shares, gpu)


def facts_of(device: int) -> Facts:
    """Return those of this rank, whose arrays are on a GPU."""
    if os.environ.get(find.VARIABLE) == find.OFF:
        return Facts(f"{find.VARIABLE} is {find.OFF}")
    try:
        library = load()
        if library.host_arrays:
            return Facts(f"{library.path} is this package's own, which calls what we call")
        shares = os.environ.get(SHARING) == "1"
        return Facts("", library.version.code, shares, uuid_of(device))
    except Exception as error:  # whatever it is, the others wait for what this rank says
        return Facts(str(error))


def why_not(facts: Sequence[Facts]) -> str:
    """Return why ranks with these facts cannot have NCCL; "" where they can."""
    first: dict[bytes, int] = {}
    for rank, one in enumerate(facts):
        if one.why:
            return f"rank {rank}: {one.why}"
        if one.version != facts[0].version:
            here, there = Version.of_code(one.version), Version.of_code(facts[0].version)
            return f"rank {rank} has NCCL {here}, and rank 0 {there}"
        other = first.setdefault(one.gpu, rank)
        may_share = Version.of_code(one.version) >= SEVERAL_ON_ONE
        if other != rank and not (may_share and all(each.shares for each in facts)):
            return (
                f"ranks {other} and {rank} share a GPU, which NCCL {SEVERAL_ON_ONE.major}."
                f"{SEVERAL_ON_ONE.minor} and later take where {SHARING} is 1 on all ranks"
            )
    return ""


class Standing(NamedTuple):
    """What holds for all ranks: why there is no NCCL ("": there is), and which.

    ``sharing`` is the largest number of ranks on one GPU.
    """

    why: str
    version: Version = LEAST
    sharing: int = 1


def agreed(comm: Caller, device: int) -> Standing:
    """Return what holds for these ranks. Every rank must call it."""
    if comm.size == 1:
        return Standing("there is one rank alone")
    rows = told(comm, facts_of(device).packed(), "arrays on GPUs: is there NCCL")
    facts = [Facts.of_row(row) for row in rows]
    sharing = max(Counter(one.gpu for one in facts).values())
    return Standing(why_not(facts), Version.of_code(facts[0].version), sharing)
