# SPDX-License-Identifier: Apache-2.0
"""A call that several ranks miss names all of them when its time is up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import collectives as cl

RANKS = 6


@pytest.mark.parametrize(
    ("here", "absent"), [({0, 1}, (2, 3, 4, 5)), ({0, 2, 5}, (1, 3, 4)), ({1, 2, 3, 4, 5}, (0,))]
)
def test_a_barrier_names_all_that_miss_it(here: set[int], absent: tuple[int, ...]) -> None:
    waits = cl.errors.CollectiveTimeoutError

    def rank(comm: cl.Communicator) -> str:
        comm.barrier()
        if comm.rank not in here:
            return ""
        with pytest.raises(waits) as caught:
            comm.barrier(timeout=0.5)
        return str(caught.value)

    comms = cl.local(RANKS, timeout=60)  # which live on where their rank is done
    with ThreadPoolExecutor(RANKS) as pool:
        said = list(pool.map(rank, comms))
    for number in here:
        _, _, text = said[number].partition(" gave up after ")
        named = {int(word) for part in text.split("rank")[1:] for word in _numbers(part)}
        assert set(absent) <= named, text
        assert len(absent) == 1 or "not come to this call" in text, text


def _numbers(words: str) -> list[int]:
    """Return the numbers that words begin with: "s 1-3, 7 have" as 1, 2, 3, 7."""
    found: list[int] = []
    for part in words.removeprefix("s").split(","):
        first, _, last = part.strip().partition(" ")[0].partition("-")
        if not first.isdigit():
            break
        found += range(int(first), int(last or first) + 1)
    return found
