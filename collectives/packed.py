# SPDX-License-Identifier: Apache-2.0
"""Trees for networks of any shape, packed by what each link carries: :func:`pack`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collectives.defined import DefinedForOne, define
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.names import KINDS, checked_root, choose_from, integer
from collectives.own import ScheduleBuilder, written

if TYPE_CHECKING:
    from collectives.packing.pipes import Pipe
    from collectives.packing.search import Packing
    from collectives.topology import Topology

BLINK = (
    "Wang, Venkataraman, Phanishayee, Thelin, Devanur & Stoica, Blink: Fast and Generic "
    "Collectives for Distributed ML, MLSys 2020"
)
FORESTCOLL = (
    "Zhao et al., ForestColl: Throughput-Optimal Collective Communications on Heterogeneous "
    "Network Fabrics, arXiv 2402.06787, 2024"
)
_FOREST = ("allgather", "reduce_scatter")
_MOST_BLOCKS = 64


@dataclass(frozen=True)
class SpanningTree:
    """One tree of a :class:`Pack`.

    ``rate`` is what it carries, in bytes of the vector per second; ``parents`` has the parent of
    each rank, -1 for the root.
    """

    rate: float
    parents: tuple[int, ...]

    @property
    def root(self) -> int:
        """The rank without a parent."""
        return self.parents.index(-1)

    @property
    def height(self) -> int:
        """How many links are between the root and the farthest rank."""
        from collectives.packing.pipes import depths

        return max(depths(self.parents))


@dataclass(frozen=True)
class Pack(DefinedForOne):
    """An algorithm of trees that share the links of a network, made by :func:`pack`.

    ``capacities[a][b]`` is what goes from rank a to rank b, in bytes per second, 0 where there is
    no link; ``most`` is how many trees there may be, ``blocks`` in how many parts each passes its
    chunks on. ``root`` is the one that ``rate``, ``bound``, ``gap`` and ``trees`` speak of; calls
    may have any.
    """

    kind: str
    name: str
    p: int
    root: int
    capacities: tuple[tuple[float, ...], ...] = field(repr=False)
    most: int
    blocks: int
    same_bits: bool = True
    _found: dict[int, Packing] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def rate(self) -> float:
        """Bytes of the vector per second, of long vectors, without latencies.

        No link is given more than it carries. Chunks and trees as they are: what pruning and
        whole numbers of chunks cost is in it.
        """
        return self._packing(self.root).rate

    @property
    def bound(self) -> float:
        """Bytes of the vector per second that no algorithm exceeds on such links.

        Of a broadcast, reduce, allgather or reduce_scatter what the narrowest cut lets through; of
        an allreduce, what every partition does, with each link counted as its weaker way.
        """
        return self._packing(self.root).bound

    @property
    def gap(self) -> float:
        """How far ``rate`` is below ``bound``, as a share of it: 0 is optimal."""
        gap = 1 - self.rate / self.bound if self.p > 1 else 0.0
        return gap if gap > 1e-9 else 0.0

    @property
    def trees(self) -> tuple[SpanningTree, ...]:
        """The trees, by root, those that carry the most first; together they carry ``rate``."""
        found = self._packing(self.root)
        each = found.rate / found.total / (self.p if self.kind in _FOREST else 1)
        return tuple(SpanningTree(each * part, parents) for parents, part in found.trees)

    @property
    def paper(self) -> str:  # type: ignore[override]
        """Where the method comes from."""
        return FORESTCOLL if self.kind in _FOREST else BLINK

    @property
    def summary(self) -> str:  # type: ignore[override]
        """What it is, in one line."""
        links = sum(1 for row in self.capacities for rate in row if rate)
        count = len(self._packing(self.root).trees)
        trees = f"{count} tree" if count == 1 else f"{count} trees"
        return f"{self.p} ranks, {links} links: {trees}, {100 * self.gap:.1f} % below the bound."

    def encoded(self, p: int, root: int = 0) -> list[int]:
        """Return the schedule of all ranks as numbers (docs/encoding.md), not yet proved."""
        from collectives.packing.pipes import write
        from collectives.packing.search import KINDS as WAYS

        self._check_fits(p)
        up, down, everywhere = WAYS[self.kind]
        chunks, pipes = self._pipes(root)
        if everywhere:
            chunks *= p

        def program(builder: ScheduleBuilder) -> None:
            write(builder, pipes, up, down)

        return written(self.kind, p, root, chunks, program)

    def _packing(self, root: int) -> Packing:
        from collectives.packing.search import KINDS as WAYS
        from collectives.packing.search import find

        if WAYS[self.kind][2] or self.kind == "allreduce":
            root = 0  # one packing serves all
        if root not in self._found:
            self._found[root] = find(self.kind, self.capacities, root, self.most, self.blocks)
        return self._found[root]

    def _pipes(self, root: int) -> tuple[int, list[Pipe]]:
        """Return the chunks of a part, and which of all chunks go through which tree."""
        from collectives.packing.pipes import Pipe

        packing, pipes, first = self._packing(root), list[Pipe](), 0
        for parents, part in packing.trees:
            pipes.append(Pipe(parents, first, part, self.blocks))
            first += part * self.blocks
        return packing.total * self.blocks, pipes


def pack(
    topology: Topology | Mapping[tuple[int, int], float],
    *,
    kind: str = "allreduce",
    root: int = 0,
    name: str = "pack",
    trees: int | None = None,
    blocks: int = 8,
) -> Pack:
    """Make an algorithm of spanning trees, packed into a network of any shape.

    Args:
        topology: what each link carries: ``{(0, 1): 25e9, (1, 0): 25e9}``, bytes per second from
            the first rank to the second, or a :class:`Topology`. There a pair with a link of its
            own has 1 / ``beta``; others share the ports of their level equally, with all pairs
            that use them. At most 64 ranks; switches in between are not modelled.
        kind: allreduce, which sums up each tree and returns down it; broadcast, down, or reduce,
            up; allgather or reduce_scatter, with trees for every rank.
        root: of a broadcast or reduce: the one that ``rate``, ``bound``, ``gap`` and ``trees`` of
            the result speak of. Calls may have any root.
        name: what ``algorithm=`` calls it.
        trees: how many there may be, of an allgather or reduce_scatter for each rank; None: 16, or
            2 p where that is more. Fewer send fewer messages; ``gap`` says what that costs.
        blocks: in how many parts each tree passes its chunks on, one behind the other.

    The trees are optimal, but for what ``gap`` tells: a vector is cut into 256 shares at most, and
    there may be more trees than are wanted. Latencies (``alpha``) do not count: it is for long
    vectors. Like one of :func:`algorithm` it is proved before its first use; all ranks define the
    same, of the same numbers.

    Raises InvalidArgumentError where ranks are cut off, a link of an allreduce goes one way, or
    what is given is no graph; UnsupportedError for another kind.
    """
    from collectives.packing.graph import capacities

    choose_from(kind, KINDS, "collective")
    from collectives.packing.search import KINDS as WAYS

    if kind not in WAYS:
        raise UnsupportedError(f"pack: {kind} has no trees: there are {', '.join(WAYS)}")
    found = capacities(topology)
    p = len(found)
    made = Pack(
        kind=kind,
        name=name,
        p=p,
        root=checked_root("pack", root, p),
        capacities=found,
        most=max(16, 2 * p) if trees is None else _number("trees", trees, 4096),
        blocks=_number("blocks", blocks, _MOST_BLOCKS),
    )
    made.encoded(p, made.root)
    return define(made)


def _number(what: str, value: object, most: int) -> int:
    number = integer(value)
    if number is None or not 1 <= number <= most:
        raise InvalidArgumentError(f"pack: {what} is {value!r:.40}: give a number from 1 to {most}")
    return number
