# SPDX-License-Identifier: Apache-2.0
"""The words of the interface (kinds, operations, modes, algorithms) and their numbers."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, SupportsFloat, TypeAlias, TypeGuard, cast

from collectives._ffi import ffi, lib, text
from collectives.errors import InvalidArgumentError

KINDS: dict[str, int] = {
    "allreduce": lib.COLL_ALLREDUCE,
    "reduce_scatter": lib.COLL_REDUCE_SCATTER,
    "allgather": lib.COLL_ALLGATHER,
    "broadcast": lib.COLL_BROADCAST,
    "reduce": lib.COLL_REDUCE,
    "barrier": lib.COLL_BARRIER,
    "gather": lib.COLL_GATHER,
    "scatter": lib.COLL_SCATTER,
    "alltoall": lib.COLL_ALLTOALL,
    "scan": lib.COLL_SCAN,
    "exscan": lib.COLL_EXSCAN,
}
KIND_NAMES = {code: name for name, code in KINDS.items()}

OPS: dict[str, int] = {
    "sum": lib.COLL_SUM,
    "prod": lib.COLL_PROD,
    "min": lib.COLL_MIN,
    "max": lib.COLL_MAX,
    "avg": lib.COLL_AVG,
    "land": lib.COLL_LAND,
    "lor": lib.COLL_LOR,
    "lxor": lib.COLL_LXOR,
    "band": lib.COLL_BAND,
    "bor": lib.COLL_BOR,
    "bxor": lib.COLL_BXOR,
    "minloc": lib.COLL_MINLOC,
    "maxloc": lib.COLL_MAXLOC,
}

MODES: dict[str, int] = {
    "auto": lib.COLL_MODE_AUTO,
    "staged": lib.COLL_MODE_STAGED,
    "inline": lib.COLL_MODE_INLINE,
    "pull": lib.COLL_MODE_PULL,
    "push": lib.COLL_MODE_PUSH,
}
STORES: dict[str, int] = {
    "ordinary": lib.COLL_STORES_ORDINARY,
    "non_temporal": lib.COLL_STORES_NON_TEMPORAL,
}

ACCUMULATORS: dict[str, int] = {
    "float32": lib.COLL_ACCUMULATE_FLOAT32,
    "float64": lib.COLL_ACCUMULATE_FLOAT64,
    "complex64": lib.COLL_ACCUMULATE_COMPLEX64,
    "complex128": lib.COLL_ACCUMULATE_COMPLEX128,
}

MOST_RANKS = 2**31 - 1  # the native layer holds them in 32 bits; no machine has as many

# A dtype of NumPy or torch, or its name: in what partial results are kept.
Accumulate: TypeAlias = Any

# True: the same bits by any algorithm; "any_p": also for any number of ranks.
Reproducible: TypeAlias = bool | Literal["any_p"]

# Algorithm, mode, time-out in seconds, in what is accumulated, how reproducible it is.
Options: TypeAlias = tuple[int, int, float, int, int]

# Algorithms that the program has defined (collectives.own): kind and name to a number below -1.
OWN: dict[tuple[str, str], int] = {}

# Ways of NCCL in the place of an algorithm, of arrays on GPUs, and the collectives that they have:
# alone, and within hosts with ours between them (collectives.rivals).
RIVALS = {"nccl": -(2**31), "mixed": 1 - 2**31}
_OF_MIXED = ("allreduce", "reduce_scatter", "allgather", "broadcast", "reduce")
OF_RIVALS = {"nccl": (*_OF_MIXED, "alltoall"), "mixed": _OF_MIXED}

# What a call gets that leaves everything to the library.
AUTOMATIC: Options = (
    -1,
    lib.COLL_MODE_AUTO,
    0.0,
    lib.COLL_ACCUMULATE_AS_STORED,
    lib.COLL_NOT_REPRODUCIBLE,
)


def _shown(value: object) -> str:
    """Return a value as errors show it, whatever it is."""
    from collectives.topology.checked import shown  # only for what is wrong

    return shown(value)


def choose_from(word: object, words: Iterable[str], what: str) -> str:
    """Return ``word`` when it is one of ``words``; else say which there are."""
    known = list(words)
    if isinstance(word, str) and word in known:
        return word
    import difflib  # only for a word that is wrong

    close = difflib.get_close_matches(word, known, 1) if isinstance(word, str) else []
    hint = f"did you mean {close[0]!r}? There are" if close else "there are"
    raise InvalidArgumentError(f"{what} {_shown(word)} is unknown: {hint} {', '.join(known)}")


def kind_code(kind: str) -> int:
    """Return the number of a kind of collective."""
    return KINDS[choose_from(kind, KINDS, "collective")]


def op_code(call: str, op: object) -> int:
    """Return the number of a reduction, or of an operation of the program (collectives.op)."""
    try:
        return OPS[op]  # type: ignore[index]
    except (KeyError, TypeError):
        code = getattr(op, "code", None)
        return code if isinstance(code, int) else OPS[choose_from(op, OPS, f"{call}: op")]


def how(
    call: str,
    algorithm: str | None,
    mode: str | None,
    timeout: float | None,
    accumulate: Accumulate | None = None,
    reproducible: Reproducible = False,
) -> Options:
    """Turn a call's options to numbers."""
    index, code, seconds, wide, _ = AUTOMATIC
    if algorithm is not None:
        own = None
        if isinstance(algorithm, str):
            own = OWN.get((call, algorithm))
            if own is None and call in OF_RIVALS.get(algorithm, ()):
                own = RIVALS[algorithm]
        index = algorithm_index(call, algorithm) if own is None else own
    if mode is not None:
        code = MODES[choose_from(mode, MODES, f"{call}: mode")]
    if timeout is not None:
        seconds = checked_seconds(f"{call}: timeout", timeout)
    if accumulate is not None:
        name = choose_from(_dtype_name(accumulate), ACCUMULATORS, f"{call}: accumulate")
        wide = ACCUMULATORS[name]
    return index, code, seconds, wide, how_reproducible(call, reproducible)


def how_reproducible(call: str, wish: object) -> int:
    """Return the number of a wish for reproducible results."""
    if isinstance(wish, bool) or _is_numpys(wish, "bool_"):
        return int(lib.COLL_REPRODUCIBLE if wish else lib.COLL_NOT_REPRODUCIBLE)
    if isinstance(wish, str) and wish == "any_p":
        return int(lib.COLL_REPRODUCIBLE_ANY_P)
    raise InvalidArgumentError(
        f'{call}: reproducible is {_shown(wish)}: give True, "any_p" (any number of ranks), or '
        "False"
    )


def _dtype_name(dtype: object) -> object:
    """Return the name of a dtype of NumPy or torch; anything else as it is."""
    if isinstance(dtype, type) or _is_numpys(dtype, "dtype"):
        import numpy as np  # a class may be its name for one: float

        with suppress(TypeError):  # as np.floating
            return np.dtype(cast(Any, dtype)).name
    if type(dtype).__module__ == "torch":
        return str(dtype).removeprefix("torch.")
    return dtype


class Rest(float):
    """What is left of a time-out, for a call that is a step of another one; ``of``: of how much."""

    of: float

    def __new__(cls, left: float, of: float) -> Rest:
        """Make it of seconds that are left of as many or more."""
        made = super().__new__(cls, left)
        made.of = of
        return made


def rest_of(seconds: float) -> float:
    """Return what a time-out is the rest of, for error texts; 0: it is all."""
    return seconds.of if isinstance(seconds, Rest) else 0.0


def checked_seconds(what: str, timeout: float) -> float:
    """Return a time-out as a float, more than 0 and at most 1e9 (30 years)."""
    if isinstance(timeout, Rest):
        return timeout
    seconds = real(timeout)
    if not 0 < seconds <= 1e9:
        raise InvalidArgumentError(
            f"{what} is {_shown(timeout)}: give seconds, above 0 and at most 1e9, or None"
        )
    return seconds


def _is_numpys(value: object, *classes: str) -> bool:
    """Tell whether a value is of one of these classes of NumPy, which nothing here loads."""
    numpy = sys.modules.get("numpy")  # another thread may be loading it
    return any(isinstance(value, getattr(numpy, name, ())) for name in classes)


def integer(value: object) -> int | None:
    """Return an integer, NumPy's as well, as an int; None for anything else.

    A bool is one to Python, and as a number of ranks, a rank or a length always a slip.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool) or _is_numpys(value, "bool_"):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def real(value: object) -> float:
    """Return a number, NumPy's as well, as a float; NaN for anything else, as bools and words."""
    odd = _is_numpys(value, "bool_", "complexfloating")
    if odd or isinstance(value, bool | complex) or not isinstance(value, SupportsFloat):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def checked_ranks(what: str, p: object) -> int:
    """Return a number of ranks that the native layer can hold; whether it fits is its to say."""
    ranks = integer(p)
    if ranks is None or not -MOST_RANKS <= ranks <= MOST_RANKS:
        raise InvalidArgumentError(f"{what} is {_shown(p)}: give the number of ranks, 1 or more")
    return ranks


def are_several(p: object) -> TypeGuard[Iterable[int]]:
    """Tell whether there are several numbers of ranks; else it is one, or no such thing."""
    if integer(p) is not None:
        return False
    try:
        iter(p)  # type: ignore[call-overload]
    except TypeError:  # an array of no axes looks iterable
        return False
    return True


def several_ranks(p: Iterable[int]) -> Iterator[int]:
    """Yield numbers of ranks. Raises InvalidArgumentError for what is none of 1 or more."""
    for one in p:
        ranks = checked_ranks("verify: p", one)
        if ranks < 1:
            raise InvalidArgumentError(f"verify: p has {ranks}: give numbers of 1 or more")
        yield ranks


def checked_root(call: str, root: int, size: int) -> int:
    """Return ``root`` when it is a rank."""
    rank = integer(root)
    if rank is None or not 0 <= rank < size:
        raise InvalidArgumentError(
            f"{call}: root is {_shown(root)}: give a rank from 0 to {size - 1}"
        )
    return rank


def algorithm_index(kind: str, name: str) -> int:
    """Return the place of an algorithm in the native table."""
    if not isinstance(kind, str) or not isinstance(name, str):  # a cache refuses what has no hash
        return _found_index.__wrapped__(kind, name)
    return _found_index(kind, name)


@lru_cache(maxsize=256)
def _found_index(kind: str, name: str) -> int:
    code = kind_code(kind)
    known = choose_from(name, algorithm_names(code), f"{kind}: algorithm")
    return int(lib.coll_algorithm_find(code, known.encode()))


@lru_cache(maxsize=64)
def algorithm_names(kind: int) -> tuple[str, ...]:
    """Return the names of all algorithms of a kind, in the order of the table."""
    record = ffi.new("coll_algorithm *")
    names = []
    for index in range(lib.coll_algorithm_count()):
        lib.coll_algorithm_get(index, record)
        if record.kind == kind:
            names.append(text(record.name))
    return tuple(names)
