# SPDX-License-Identifier: Apache-2.0
"""The graph that trees are packed into: how many bytes per second go from each rank to each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Real

from collectives.errors import InvalidArgumentError
from collectives.names import integer
from collectives.packing.flow import Matrix
from collectives.packing.levels import rates
from collectives.topology.checked import shown
from collectives.topology.value import Topology

MOST_RANKS = 64
_LEAST, _MOST = 1e-100, 1e100  # bytes per second, so that nothing overflows
_DIGITS = 12  # of the largest capacity that are kept, and at least half as many of the least

# [a][b]: from rank a to rank b, 0 where there is no link.
Capacities = tuple[tuple[float, ...], ...]


def capacities(graph: object) -> Capacities:
    """Return the capacities that a topology, or a mapping of pairs of ranks, gives.

    Raises InvalidArgumentError where it is neither, or has what no graph has.
    """
    if isinstance(graph, Topology):
        _check_ranks(graph.size)
        return _checked(tuple(map(tuple, rates(graph))))
    if isinstance(graph, Mapping):
        return _checked(_of_mapping(graph))
    raise InvalidArgumentError(
        f"pack: the topology is {shown(graph)}: give a Topology, or a mapping of pairs of ranks to "
        "bytes per second, such as {(0, 1): 25e9, (1, 0): 25e9}"
    )


def whole(given: Capacities) -> tuple[Matrix, float]:
    """Return capacities as whole numbers, and how many bytes per second a unit is.

    They are kept to 12 digits; those that are multiples of one number become small.
    """
    values = [value for row in given for value in row if value]
    high, low = (math.floor(math.log10(f(values))) + 1 for f in (max, min))
    scale = 10 ** max(_DIGITS - high, _DIGITS // 2 - low, 0)
    units = [[round(Fraction(value) * scale) for value in row] for row in given]
    common = math.gcd(*(unit for row in units for unit in row))
    return [[unit // common for unit in row] for row in units], common / scale


def _checked(found: Capacities) -> Capacities:
    for a, row in enumerate(found):
        for b, value in enumerate(row):
            if value and not _LEAST <= value <= _MOST:
                raise InvalidArgumentError(
                    f"pack: from rank {a} to rank {b} go {value!r} bytes per second: give a "
                    f"number from {_LEAST} to {_MOST}"
                )
    return found


def _of_mapping(given: Mapping[object, object]) -> Capacities:
    links = dict[tuple[int, int], float]()
    for key, value in given.items():
        links[_pair(key)] = _rate(key, value)
    if not links:
        raise InvalidArgumentError("pack: there is no link: give pairs of ranks, bytes per second")
    p = 1 + max(max(pair) for pair in links)
    return tuple(tuple(links.get((a, b), 0.0) for b in range(p)) for a in range(p))


def _pair(key: object) -> tuple[int, int]:
    ranks = [integer(rank) for rank in key] if isinstance(key, tuple) else []
    known = [rank for rank in ranks if rank is not None and rank >= 0]
    if not (len(known) == len(ranks) == 2 and known[0] != known[1]):
        raise InvalidArgumentError(
            f"pack: {shown(key)} is no link: give pairs of two ranks, from 0 on, such as (0, 1)"
        )
    _check_ranks(max(known) + 1)
    return known[0], known[1]


def _rate(key: object, value: object) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        rate = float(value) if number else math.nan  # type: ignore[arg-type]
    except OverflowError:  # an integer above 1e308
        rate = math.inf
    if not (math.isfinite(rate) and rate > 0):
        raise InvalidArgumentError(
            f"pack: the capacity of {shown(key)} is {shown(value)}: give bytes per second, a "
            "number above 0; a link that is not there is left out"
        )
    return rate


def _check_ranks(p: int) -> None:
    if p > MOST_RANKS:
        raise InvalidArgumentError(
            f"pack: there are {p} ranks: trees are packed for {MOST_RANKS} at most; cl.product "
            "takes more, as hosts of ranks"
        )
