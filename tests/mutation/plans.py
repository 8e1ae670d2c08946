# SPDX-License-Identifier: Apache-2.0
"""Runs a plan as the engine would, with the ranks' ops interleaved by lot: brute force, no proof.

What orders two ranks is what is written in the plan: waits on a peer's progress, flags beside
inline messages; and the rule by which slots are used again in a later call. A move takes time:
while it runs, what it writes is garbage, and what it reads must not change. Of a plan that may
write around the caches a part of what a move has written is under way, and garbage to all but its
rank, until that rank's next fence. The caller's buffers become garbage the moment its call returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.mutation.values import Arithmetic, Element, Trees, WrongError, hold_to
from tests.mutation.words import INLINED, INPUT, OUTPUT, SCRATCH, STAGE, Operand, Plan, PlanOp

CALLS = 3
Address = tuple[int, ...]
Tick = tuple[int, int, int]  # call, iteration, op


class Rank:
    """What one rank remembers between calls, and what it shows to the others."""

    def __init__(self, depth: int) -> None:
        self.progress: Tick = (-1, 0, 0)
        self.calls_done = 0
        self.known_done = 0
        self.slot_free = [0] * depth
        self.under_way: dict[Address, Element] = {}


class PlanRun:
    """Some calls of one plan in a row, on one memory."""

    def __init__(self, plan: Plan, in_place: bool, random: Random) -> None:
        self.plan, self.outline, self.in_place = plan, plan.outline, in_place
        self.random = random
        self.arithmetic = Arithmetic(self.outline, random.getrandbits(60))
        self.tiles = [random.choice((1, 2, 3, 2 * plan.depth + 1)) for _ in range(CALLS)]
        self.used = [sum(self.tiles[:call]) for call in range(CALLS)]
        self.ranks = [Rank(plan.depth) for _ in range(self.outline.p)]
        self.memory: dict[Address, Element] = {}
        self.flags: dict[Address, Tick] = {}
        self.results: dict[tuple[int, ...], Element] = {}

    def run(self, claimed: Trees) -> None:
        """Raise WrongError where the plan is seen to be wrong."""
        processes = {rank: self._rank(rank) for rank in range(self.outline.p)}
        blocked: set[int] = set()
        slow = self.random.sample(range(self.outline.p), self.outline.p // 2)
        patience = self.random.choice((1, 4, 1000))
        while processes:
            able = [rank for rank in processes if rank not in blocked]
            if not able:
                raise WrongError(f"ranks {sorted(processes)} wait for ever")
            eager = [rank for rank in able if rank not in slow]
            rank = self.random.choice(eager if eager and self.random.random() < 0.8 else able)
            for _ in range(self.random.randint(1, patience)):
                got_on = next(processes[rank], None)
                if got_on is None:
                    del processes[rank]
                if got_on is False:
                    blocked.add(rank)
                    break
                blocked.clear()
                if got_on is None:
                    break
        hold_to(claimed, self.outline, self.results)

    def _rank(self, rank: int) -> Iterator[bool]:
        ops = self.plan.ranks[rank].ops
        for call, tiles in enumerate(self.tiles):
            self._enter(rank, call)
            yield True
            for iteration in range(tiles + self.plan.max_lag):
                for number in range(1, len(ops) - 1):
                    tile = iteration - ops[number].lag
                    if 0 <= tile < tiles:
                        yield from self._move(rank, call, number, tile)
            for wait in ops[-1].waits:
                while not self._reached(call, tiles - 1, wait):
                    yield False
            if ops[-1].fence:
                self._fence(rank)
            self._leave(rank, call)
            yield True

    def _enter(self, rank: int, call: int) -> None:
        """The caller fills its buffers and calls."""
        outline = self.outline
        for tile in range(self.tiles[call]):
            lengths = ((OUTPUT, len(outline.outputs(rank))), (SCRATCH, outline.scratch_cells))
            for buffer, cells in lengths:
                for cell in range(cells):
                    self.memory[rank, buffer, cell, tile] = self.arithmetic.garbage()
            for cell, chunk in enumerate(outline.inputs(rank)):
                self.memory[self._user(rank, (INPUT, cell), tile)] = self.arithmetic.contribution(
                    rank, chunk, call, tile
                )
        if self.plan.ranks[rank].ops[0].post:
            self.ranks[rank].progress = (call, -1, 0)

    def _leave(self, rank: int, call: int) -> None:
        """The call returns: its results are read, and its buffers used for something else."""
        me, tiles = self.ranks[rank], self.tiles[call]
        for tile in range(tiles):
            self._judge(rank, call, tile)
        for address in self.memory:
            if address[0] == rank and address[1] != STAGE:
                self.memory[address] = self.arithmetic.garbage()
        for tile in range(max(0, tiles - self.plan.depth), tiles):
            me.slot_free[self._slot(call, tile)] = call + 1
        if self.outline.closed:
            me.known_done = max(me.known_done, call)
        me.calls_done = call + 1

    def _judge(self, rank: int, call: int, tile: int) -> None:
        outline = self.outline
        for cell, chunk in enumerate(outline.outputs(rank)):
            element = self.memory[rank, OUTPUT, cell, tile]
            number = self.arithmetic.result(rank, chunk, call, tile)
            if outline.averages:
                number = self.arithmetic.mean(Element(number, 0, ())).number
            if element.number != number:
                raise WrongError(f"rank {rank} ends call {call} with a wrong chunk {chunk}")
            self.results[rank, chunk, call, tile] = element
        for cell, chunk in enumerate(outline.inputs(rank)):
            address = self._user(rank, (INPUT, cell), tile)
            operand = self.arithmetic.contribution(rank, chunk, call, tile)
            if address[1] == INPUT and self.memory[address] != operand:
                raise WrongError(f"rank {rank} finds chunk {chunk} of its input changed")

    def _slot(self, call: int, tile: int) -> int:
        return (self.used[call] + tile) % self.plan.depth

    def _user(self, rank: int, cell: tuple[int, int], tile: int) -> Address:
        return (rank, *self.outline.home(rank, cell, self.in_place), tile)

    def _addresses(self, operand: Operand, call: int, tile: int) -> list[Address]:
        if operand.area >= 0:
            slot = self._slot(call, tile)
            return [(operand.rank, STAGE, cell, slot) for _, cell in operand.cells]
        return [self._user(operand.rank, cell, tile) for cell in operand.cells]

    def _reached(self, call: int, tile: int, wait: tuple[int, int, int]) -> bool:
        peer, number, back = wait
        if back > tile:
            return True
        iteration = -1
        if number > 0:
            iteration = tile - back + self.plan.ranks[peer].ops[number].lag
        return self.ranks[peer].progress >= (call, iteration, number)

    def _credited(self, rank: int, op: PlanOp, call: int, tile: int) -> bool:
        """The first use of a slot in a call: have all left the call that used it last?"""
        me = self.ranks[rank]
        if tile >= self.plan.depth or all(o.area < 0 for o in op.destinations):
            return True
        free = me.slot_free[self._slot(call, tile)]
        if free > me.known_done:
            if any(peer.calls_done < free for peer in self.ranks if peer is not me):
                return False
            me.known_done = free
        return True

    def _flagged(self, op: PlanOp, call: int, tile: int) -> bool:
        if self.plan.mode != INLINED:
            return True
        for o in op.sources:
            if o.area < 0:
                continue
            writer = self.plan.ranks[o.rank].writers[o.area]
            due = (call, tile + self.plan.ranks[o.rank].ops[writer].lag, writer)
            if self.flags.get((o.rank, self._slot(call, tile), o.area)) != due:
                return False
        return True

    def _move(self, rank: int, call: int, number: int, tile: int) -> Iterator[bool]:
        op = self.plan.ranks[rank].ops[number]
        yield from self._ready(rank, op, call, tile)
        sources = [self._addresses(o, call, tile) for o in op.sources]
        targets = [self._addresses(o, call, tile) for o in op.destinations]
        seen = [[self._load(rank, a) for a in addresses] for addresses in sources]
        torn = self.arithmetic.garbage()
        written = {address for addresses in targets for address in addresses}
        for address in written:
            self.ranks[rank].under_way.pop(address, None)
            self.memory[address] = torn
        yield True
        what = f"rank {rank} op {number}"
        for addresses, elements in zip(sources, seen, strict=True):
            for address, element in zip(addresses, elements, strict=True):
                if address not in written and self._load(rank, address) is not element:
                    raise WrongError(f"{what} reads what changes meanwhile")
        if any(self.memory[address] is not torn for address in written):
            raise WrongError(f"{what} and another write one cell at once")
        results = [self.arithmetic.fold(items, op.balanced) for items in zip(*seen, strict=True)]
        if op.complete and self.outline.averages:
            results = [self.arithmetic.mean(total) for total in results]
        self._store(rank, sources, targets, results)
        if op.fence:
            self._fence(rank)
        self._tell(rank, call, number, tile)
        yield True

    def _ready(self, rank: int, op: PlanOp, call: int, tile: int) -> Iterator[bool]:
        """All that an op waits for, one after the other."""
        for wait in op.waits:
            while not self._reached(call, tile, wait):
                yield False
        while not self._credited(rank, op, call, tile):
            yield False
        while not self._flagged(op, call, tile):
            yield False

    def _load(self, rank: int, address: Address) -> Element:
        """What a rank finds there; what nobody ever wrote becomes garbage."""
        if address in self.ranks[rank].under_way:
            return self.ranks[rank].under_way[address]
        if address not in self.memory:
            self.memory[address] = self.arithmetic.garbage()
        return self.memory[address]

    def _fence(self, rank: int) -> None:
        self.memory.update(self.ranks[rank].under_way)
        self.ranks[rank].under_way.clear()

    def _store(
        self,
        rank: int,
        sources: list[list[Address]],
        targets: list[list[Address]],
        results: list[Element],
    ) -> None:
        """Element after element: what is written too early for a later read is lost."""
        for addresses in targets:
            for place, address in enumerate(addresses):
                if any(address in s and s.index(address) != place for s in sources):
                    raise WrongError("a move overwrites what it has still to read")
                late = self.plan.around and self.random.random() < 0.5
                into = self.ranks[rank].under_way if late else self.memory
                into[address] = results[place]

    def _tell(self, rank: int, call: int, number: int, tile: int) -> None:
        op = self.plan.ranks[rank].ops[number]
        tick = (call, tile + op.lag, number)
        for o in op.destinations:
            if o.area >= 0:
                self.flags[rank, self._slot(call, tile), o.area] = tick
        if op.post:
            self.ranks[rank].progress = tick
