# SPDX-License-Identifier: Apache-2.0
"""Which ranks are on one host, by what each rank has told of its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


class Hosts:
    """The ranks by hosts, which are numbered as they are first met; so are the ranks of each."""

    def __init__(self, of_rank: Sequence[Hashable]) -> None:
        """Take what tells the host of each rank from others."""
        of_host: dict[Hashable, list[int]] = {}
        for rank, host in enumerate(of_rank):
            of_host.setdefault(host, []).append(rank)
        self.members = tuple(tuple(ranks) for ranks in of_host.values())
        self._places = {
            rank: (host, number)
            for host, ranks in enumerate(self.members)
            for number, rank in enumerate(ranks)
        }

    @property
    def shape(self) -> tuple[int, int]:
        """The number of hosts, and of the ranks of the first."""
        return len(self.members), len(self.members[0])

    @property
    def in_order(self) -> bool:
        """Whether the ranks are numbered host by host."""
        return [rank for ranks in self.members for rank in ranks] == sorted(self._places)

    def place(self, rank: int) -> tuple[int, int]:
        """Return the host of a rank, and its number there."""
        return self._places[rank]

    def why_flat(self) -> str:
        """Return why there are no two levels; "": every host has as many ranks, two or more."""
        hosts, ranks = self.shape
        if hosts == 1:
            return "all ranks are on one host"
        if any(len(one) != ranks for one in self.members):
            return "the hosts have different numbers of ranks"
        return "" if ranks > 1 else "each host has one rank alone"
