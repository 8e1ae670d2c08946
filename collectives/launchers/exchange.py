# SPDX-License-Identifier: Apache-2.0
"""What each rank says, made known to all through rank 0: p look-ups, not p * p."""

from __future__ import annotations

import json
import zlib

from collectives.errors import BootstrapError
from collectives.launchers.directory import Deadline, Directory

_PIECE = 1 << 15  # bytes of a value: what every store takes
_LONGEST = 1 << 24  # bytes of what all ranks say together


def exchange(
    directory: Directory, key: str, saying: str, rank: int, size: int, deadline: Deadline
) -> list[str]:
    """Return what each rank says, by rank; all ranks call it with the same ``key``.

    A launcher answers one question at a time, so ranks that each ask for all the others would wait
    for p * p answers. Rank 0 alone asks for each, and hands all out as one value, in few pieces.
    Raises BootstrapError where that value is damaged, and what the directory raises.
    """
    directory.put(f"{key}{rank}", saying.encode(), deadline)
    directory.fence(deadline)
    if directory.tells_all_at_fences:
        return [_text(directory, f"{key}{r}", deadline) for r in range(size)]
    if rank == 0:
        all_say = [_text(directory, f"{key}{r}", deadline) for r in range(size)]
        for number, piece in enumerate(_pieces(all_say)):
            directory.put(f"{key}all{number}", piece, deadline)
    directory.fence(deadline)
    return _together(directory, f"{key}all", size, deadline)


def columns(all_say: list[str], number: int) -> list[list[str]]:
    """Return what ranks say that say so many lines: line by line, of all ranks.

    Raises BootstrapError where a rank says fewer.
    """
    lines = [saying.split("\n", number - 1) for saying in all_say]
    short = [rank for rank, its in enumerate(lines) if len(its) != number]
    if short:
        raise BootstrapError(
            f"what rank {short[0]} has told all ranks is damaged: {len(lines[short[0]])} lines "
            f"of {number}: start the job again",
            short[0],
        )
    return [list(column) for column in zip(*lines, strict=True)]


def _text(directory: Directory, key: str, deadline: Deadline) -> str:
    try:
        return directory.get(key, deadline).decode()
    except UnicodeDecodeError as error:
        raise BootstrapError(
            f"the value '{key}', which a rank has left for the others, is damaged: {error}: start "
            "the job again"
        ) from error


def _pieces(all_say: list[str]) -> list[bytes]:
    """Pack it: addresses and names of hosts are much alike. The first piece tells the length."""
    packed = zlib.compress(json.dumps(all_say).encode())
    whole = f"{len(packed)}:".encode() + packed
    return [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)]


def _together(directory: Directory, key: str, size: int, deadline: Deadline) -> list[str]:
    length, _, packed = directory.get(f"{key}0", deadline).partition(b":")
    if not length.isdigit() or len(length) > len(str(_LONGEST)):
        raise _damaged(key, "it does not begin with its length")
    number = 0
    while len(packed) < int(length):
        number += 1
        piece = directory.get(f"{key}{number}", deadline)
        if not piece:
            raise _damaged(key, f"piece {number} is empty")
        packed += piece
    if len(packed) != int(length):
        raise _damaged(key, f"it has {len(packed)} bytes and says {int(length)}")
    return _unpacked(packed, key, size)


def _unpacked(packed: bytes, key: str, size: int) -> list[str]:
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, _LONGEST)
        all_say = json.loads(text) if unpacking.eof else None
    except (zlib.error, ValueError) as error:
        raise _damaged(key, str(error)) from error
    if not isinstance(all_say, list) or len(all_say) != size:
        raise _damaged(key, f"it is no list of what {size} ranks say")
    return [str(it) for it in all_say]


def _damaged(key: str, how: str) -> BootstrapError:
    return BootstrapError(
        f"the value '{key}' by which rank 0 tells all ranks what each of them said is damaged: "
        f"{how}: start the job again"
    )
