# SPDX-License-Identifier: Apache-2.0
"""A rank that cannot take part, as its settings make no sense, comes all the same: to say why.

Else the others would wait for it until their time is up, and then not know the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from collectives import errors
from collectives.errors import CollectiveError
from collectives.launchers.directory import Deadline, Directory
from collectives.launchers.exchange import exchange

PATIENCE = 10.0  # seconds that such a rank waits for the others
_LONGEST = 2000  # characters of a reason
_WELL, _REFUSED = "+", "-"


def exchange_or_raise(
    directory: Directory,
    key: str,
    own: Callable[[], str],
    rank: int,
    size: int,
    deadline: Deadline,
) -> list[str]:
    """Return what each rank says, by rank, as exchange() does; ``own`` makes this rank's words.

    Where that raises a CollectiveError on some ranks, all raise: these ranks their own, the others
    one of its class that names the first of these ranks and repeats its reason.
    """
    own_error = None
    try:
        saying = _WELL + own()
    except CollectiveError as error:
        own_error = error
        saying = f"{_REFUSED}{type(error).__name__}:{error}"[:_LONGEST]
        deadline = deadline.at_most(PATIENCE)
    try:
        told = exchange(directory, key, saying, rank, size, deadline)
        with together(directory, deadline):
            _check(rank, told)
    except CollectiveError:
        if own_error is None:
            raise
    if own_error is not None:
        raise own_error
    return [saying[1:] for saying in told]


@contextmanager
def together(directory: Directory, deadline: Deadline) -> Iterator[None]:
    """What all ranks raise alike within they raise when all have read what they judge by.

    Or rank 0 might end at once, and with it the directory.
    """
    try:
        yield
    except CollectiveError:
        with suppress(CollectiveError):
            directory.fence(deadline)
        raise


def _check(rank: int, told: list[str]) -> None:
    refused = [peer for peer, saying in enumerate(told) if not saying.startswith(_WELL)]
    if refused:
        name, _, reason = told[refused[0]].removeprefix(_REFUSED).partition(":")
        raise _class_of(name)(sentence(refused[0], reason, rank), refused[0])


def sentence(culprit: int, reason: str, rank: int) -> str:
    """Return what the others say where a rank cannot take part."""
    return f"rank {culprit} cannot take part: {reason} (this is rank {rank})"


def _class_of(name: str) -> type[CollectiveError]:
    known = {it.__name__: it for it in errors.CLASSES.values()}
    return known.get(name, errors.BootstrapError)
