# SPDX-License-Identifier: Apache-2.0
"""Whether NCCL may be chosen at all, among all ranks or within hosts: on all ranks the same."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from collectives.nccl import find
from collectives.nccl.library import load
from collectives.nccl.versions import Version
from collectives.rivals.hosts import Hosts
from collectives.rivals.identity import BYTES, this_host, uuid_of
from collectives.rivals.talk import ROW, told

if TYPE_CHECKING:
    from collectives.caller import Caller

LEAST = Version(2, 18)  # load() refuses older ones
SEVERAL_ON_ONE = Version(2, 30)  # from here on ranks may share a GPU, where all
SHARING = "NCCL_MULTI_RANK_GPU_ENABLE"  # is 1
_HEAD = struct.Struct(f"<I?{BYTES}s{BYTES}s")


class Facts(NamedTuple):
    """What a rank tells: why it has no NCCL for this, or which, on what GPU."""

    why: str
    version: int = 0  # as NCCL tells it
    shares: bool = False  # whether this rank lets others on its GPU
    gpu: bytes = bytes(BYTES)
    host: bytes = bytes(BYTES)

    def packed(self) -> bytes:
        """Return it as a row."""
        said = self.why.encode("utf-8", "replace")[: ROW - _HEAD.size]
        return _HEAD.pack(self.version, self.shares, self.gpu, self.host) + said

    @classmethod
    def of_row(cls, row: bytes) -> Facts:
        """Return what a row says."""
        version, shares, gpu, host = _HEAD.unpack(row[: _HEAD.size])
        why = row[_HEAD.size :].rstrip(b"\0").decode("utf-8", "replace")
        return cls(why, version, shares, gpu, host)


def facts_of(device: int) -> Facts:
    """Return those of this rank, whose arrays are on a GPU."""
    if os.environ.get(find.VARIABLE) == find.OFF:
        return Facts(f"{find.VARIABLE} is {find.OFF}")
    try:
        library = load()
        if library.host_arrays:
            return Facts(f"{library.path} is this package's own, which calls what we call")
        shares = os.environ.get(SHARING) == "1"
        return Facts("", library.version.code, shares, uuid_of(device), this_host())
    except Exception as error:  # whatever it is, the others wait for what this rank says
        return Facts(str(error))


def why_not(facts: Sequence[Facts], members: Sequence[int]) -> str:
    """Return why these of the ranks that have told their facts cannot have NCCL; "": they can."""
    first: dict[bytes, int] = {}
    version = facts[members[0]].version
    for rank in members:
        one = facts[rank]
        if one.why:
            return f"rank {rank}: {one.why}"
        if one.version != version:
            here, there = Version.of_code(one.version), Version.of_code(version)
            return f"rank {rank} has NCCL {here}, and rank {members[0]} {there}"
        other = first.setdefault(one.gpu, rank)
        may_share = Version.of_code(one.version) >= SEVERAL_ON_ONE
        if other != rank and not (may_share and all(facts[each].shares for each in members)):
            return (
                f"ranks {other} and {rank} share a GPU, which NCCL {SEVERAL_ON_ONE.major}."
                f"{SEVERAL_ON_ONE.minor} and later take where {SHARING} is 1 on all ranks"
            )
    return ""


class Standing(NamedTuple):
    """What holds for all ranks.

    ``why_not`` there is no NCCL among all of them, and none within hosts, "": there is;
    ``sharing`` is the largest number of ranks on one GPU.
    """

    why_not: str
    why_not_mixed: str
    version: Version
    sharing: int
    hosts: Hosts


def agreed(comm: Caller, device: int) -> Standing:
    """Return what holds for these ranks. Every rank must call it."""
    if comm.size == 1:
        alone = "there is one rank alone"
        return Standing(alone, alone, LEAST, 1, Hosts([0]))
    rows = told(comm, facts_of(device).packed(), "arrays on GPUs: is there NCCL")
    facts = [Facts.of_row(row) for row in rows]
    hosts = Hosts([one.host for one in facts])
    within = [why_not(facts, members) for members in hosts.members]
    return Standing(
        why_not=why_not(facts, range(comm.size)),
        why_not_mixed=next(filter(None, [hosts.why_flat(), *within]), ""),
        version=min(Version.of_code(one.version) for one in facts),
        sharing=max(Counter(one.gpu for one in facts).values()),
        hosts=hosts,
    )
