# SPDX-License-Identifier: Apache-2.0
"""One rank of a soak: groups of groups, then the drawn calls. Also what collrun starts."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack

import collectives as cl
from tests.soak.draw import calls
from tests.soak.player import Player


def groups_of(comm: cl.Communicator) -> tuple[list[cl.Communicator | None], list[int]]:
    """Everybody, the even ranks, the odd ranks, and everybody backwards; and how many each has."""
    halves = comm.split(comm.rank % 2)
    even = halves if comm.rank % 2 == 0 else None
    odd = halves if comm.rank % 2 == 1 else None
    backwards = comm.split(0, -comm.rank)
    groups = [comm, even, backwards, odd]
    sizes = [comm.size, (comm.size + 1) // 2, comm.size, comm.size // 2]
    return (groups, sizes) if comm.size > 1 else (groups[:3], sizes[:3])


def soak(comm: cl.Communicator, seed: int, number: int) -> None:
    """Make ``number`` calls on this rank; AssertionError where one is wrong."""
    groups, sizes = groups_of(comm)
    with ExitStack() as stack:
        for group in groups[1:]:
            if group is not None:
                stack.enter_context(group)  # an error on one rank ends the calls of the others
        player = Player(groups)
        for call in calls(seed, sizes, number):
            player.play(call)
        player.finish()
        comm.barrier()


def in_threads(ranks: int, seed: int, number: int) -> None:
    """Run all ranks as threads of this process; raise the first error."""
    errors: list[BaseException] = []

    def run(comm: cl.Communicator) -> None:
        try:
            with comm:
                soak(comm, seed, number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(comm,)) for comm in cl.local(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The ranks that only hear of it come later, or say less.
    wrong = [error for error in errors if isinstance(error, AssertionError)]
    for error in wrong or errors:
        raise error


if __name__ == "__main__":
    with cl.init(timeout=60) as communicator:
        soak(communicator, int(sys.argv[1]), int(sys.argv[2]))
