# SPDX-License-Identifier: Apache-2.0
"""Sizes and ranges as people write them: ``64K``, ``8,1K,1M``, ``8:64M``, ``1:16``."""

from __future__ import annotations

import re
from itertools import pairwise

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LARGEST = UNITS["T"]

_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:I?B)?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes of ``8``, ``64K``, ``1MiB``; K, M, G and T are powers of 1024.

    Raises ``ValueError`` with a sentence.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text.strip()!r} is not a size; write for instance 8, 64K or 1M")
    size = int(found[1]) * UNITS[found[2].upper()]
    if size > LARGEST:
        raise ValueError(f"size {text.strip()} is above {format_size(LARGEST)}")
    return size


def parse_sizes(text: str, factor: int = 4) -> list[int]:
    """Return the sizes of a list whose items are sizes or ranges, increasing, each once.

    ``8:64M`` grows by `factor` from 8, and 64M itself is always the last.
    """
    if factor < 2:
        raise ValueError(f"the factor between sizes must be 2 or more, got {factor}")
    sizes: set[int] = set()
    for item in text.split(","):
        first, colon, last = item.partition(":")
        low = parse_size(first)
        sizes.add(low)
        if colon:
            sizes.update(_range(low, parse_size(last), factor, item.strip()))
    return sorted(sizes)


def _range(low: int, high: int, factor: int, text: str) -> list[int]:
    if high < low:
        raise ValueError(f"range {text!r} ends before it begins; write the smaller size first")
    if low == 0:
        raise ValueError(f"range {text!r} cannot grow from 0; begin with 1 or more")
    steps = []
    while low < high:
        steps.append(low)
        low *= factor
    return [*steps, high]


def parse_ranks(text: str) -> list[int]:
    """Return the numbers of ``4``, ``2,3,8`` or ``1:64`` (both ends included), increasing."""
    ranks: set[int] = set()
    for item in text.split(","):
        first, colon, last = (part.strip() for part in item.partition(":"))
        if not first.isdecimal() or (colon and not last.isdecimal()):
            raise ValueError(f"{item.strip()!r} is no number of ranks; write 4, 2,3,8 or 1:64")
        low, high = int(first), int(last) if colon else int(first)
        if low < 1 or high < low or high > 1 << 16:
            raise ValueError(f"ranks {item.strip()} must rise within 1 ... {1 << 16}")
        ranks.update(range(low, high + 1))
    return sorted(ranks)


def format_size(size: int) -> str:
    """Write a size as briefly as it can be without rounding: 8, 64K, 1M."""
    for unit in ("T", "G", "M", "K"):
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def format_ranks(ranks: list[int]) -> str:
    """Write numbers of ranks with ranges: 1:64 or 2,3,8."""
    if not ranks:
        return "none"
    runs = [[ranks[0]]]
    for before, now in pairwise(ranks):
        if now == before + 1:
            runs[-1].append(now)
        else:
            runs.append([now])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}:{run[-1]}" for run in runs)
