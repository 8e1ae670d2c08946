# SPDX-License-Identifier: Apache-2.0
"""Collectives of unequal parts: who has how much, where each rank has told only its own share.

The ranks first gather a few numbers from everybody. What these say is judged here, from the same
numbers on every rank: so all ranks go on, or all raise the same error, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from collectives.errors import MismatchError

UNKNOWN = -1  # a length that a rank leaves to the others


def joined(call: str, rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the lengths of all parts that are joined; ``rows[r]``: rank r's part, room in out."""
    lengths = [row[0] for row in rows]
    total = sum(lengths)
    for rank, row in enumerate(rows):
        _check_room(call, rank, row[1], total)
    return lengths


def exchanged(call: str, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the lengths of all blocks that are exchanged, ``[sender][receiver]``.

    ``rows[r]`` is what rank r told: what it sends to each rank, what it expects from each, and
    the room in its out.
    """
    p = len(rows)
    table = [list(row[:p]) for row in rows]
    for receiver, row in enumerate(rows):
        arriving = [sent[receiver] for sent in table]
        for sender, (expected, sent) in enumerate(zip(row[p : 2 * p], arriving, strict=True)):
            if expected not in (UNKNOWN, sent):
                raise MismatchError(
                    f"{call}: rank {receiver} expects {expected} from rank {sender} "
                    f"(recv_counts[{sender}]), which sends it {sent} (send_counts[{receiver}]): "
                    "make the two equal, or leave recv_counts out. Nothing else was sent: the "
                    "communicator works on",
                    receiver,
                )
        _check_room(call, receiver, row[2 * p], sum(arriving))
    return table


def _check_room(call: str, rank: int, room: int, needed: int) -> None:
    if room not in (UNKNOWN, needed):
        raise MismatchError(
            f"{call}: out of rank {rank} has {room} rows, but {needed} arrive there from all "
            "ranks together: give an out with as many, or none. Nothing else was sent: the "
            "communicator works on",
            rank,
        )
