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
    def columns(self) -> int:
        """How many ranks each host has at least."""
        return min(len(ranks) for ranks in self.members)

    @property
    def even(self) -> bool:
        """Whether all hosts have as many ranks."""
        return all(len(ranks) == self.columns for ranks in self.members)

    @property
    def in_order(self) -> bool:
        """Whether the ranks are numbered host by host."""
        return [rank for ranks in self.members for rank in ranks] == sorted(self._places)

    def place(self, rank: int) -> tuple[int, int]:
        """Return the host of a rank, and its number there."""
        return self._places[rank]

    def why_flat(self) -> str:
        """Return why there are no two levels; "": there are hosts, and ranks on one of them."""
        if len(self.members) == 1:
            return "all ranks are on one host"
        ranks = max(len(ranks) for ranks in self.members)
        return "" if ranks > 1 else "each host has one rank alone"
