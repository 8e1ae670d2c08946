# SPDX-License-Identifier: Apache-2.0
"""Who has come to a store of torch, as one of how many ranks.

Ranks that give different sizes never meet. That need be no mistake, as some may meet for something
else; but where time is up, it may be why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collectives.errors import CollectiveTimeoutError
from collectives.launchers.torch_store import TorchStore

GAVE_UP = b"gave up"  # what a rank leaves that ends without the others; else it has met them
_CAME = "came"
_MOST = 64  # arrivals that are looked at, before this one and after it


@contextmanager
def noted(store: TorchStore, rank: int, size: int, end: str) -> Iterator[None]:
    """Note an arrival; where its time is up, tell of those that were there with another size.

    ``end``: the key under which this rank leaves how its meeting has ended.
    """
    own = store.count(_CAME)
    store.put(f"{_CAME}{own}", f"{size} {rank} {end}".encode())
    try:
        yield
    except CollectiveTimeoutError as error:
        others = _others(store, own, size)
        if not others:
            raise
        raise CollectiveTimeoutError(
            f"{error}; to this store {', '.join(others)} came, too, and met nobody: give all "
            "ranks that are to meet one size",
            error.rank,
        ) from None


def _others(store: TorchStore, own: int, size: int) -> list[str]:
    """Return which ranks of other sizes wait, or have waited in vain."""
    found: dict[str, None] = {}
    for number in range(max(own - _MOST, 0), own + _MOST):
        came = store.find(f"{_CAME}{number}")
        if came is None and number > own:
            break
        ranks, rank, end = (came or b"0 0 0").decode("ascii", "replace").split(" ", 2)
        if ranks not in ("0", str(size)) and store.find(end) in (None, GAVE_UP):
            found[f"rank {rank} of {ranks}"] = None
    return list(found)
