# SPDX-License-Identifier: Apache-2.0
"""Collectives of sparse vectors, from Python to the native layer."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np

from collectives._ffi import check, ffi, lib, text
from collectives.arrays import NAMES, numpy_dtype
from collectives.errors import InvalidArgumentError
from collectives.names import KIND_NAMES, KINDS, checked_seconds, choose_from, op_code
from collectives.sparse.compression import QSGD
from collectives.sparse.conversion import Converted, converted
from collectives.sparse.vector import Sparse

if TYPE_CHECKING:
    from collectives.caller import Caller

Output: TypeAlias = Literal["auto", "sparse", "dense"]
Coding: TypeAlias = Literal["auto", "raw", "coded", "quick"]

OUTPUTS: dict[str, int] = {
    "auto": lib.COLL_SPARSE_AUTO,
    "sparse": lib.COLL_SPARSE_PAIRS,
    "dense": lib.COLL_SPARSE_DENSE,
}

CODINGS: dict[str, int] = {
    "auto": lib.COLL_SPARSE_CODING_AUTO,
    "raw": lib.COLL_SPARSE_CODING_RAW,
    "coded": lib.COLL_SPARSE_CODING_CODED,
    "quick": lib.COLL_SPARSE_CODING_QUICK,
}


class SparseOptions(TypedDict, total=False):
    """What is there for sparse arrays only; the same on all ranks.

    ``output``: "sparse", "dense", or that which takes fewer bytes ("auto"). ``dense_above``: a part
    of the vector travels with all its values where more than this share of them is there.
    ``coding``: how indices travel, "raw", "coded" in the fewest bytes, "quick" in fewer at hardly
    any time; "auto" is raw where all ranks share memory, else coded. ``compress``: an allreduce's
    result is rounded to a few levels.
    """

    output: Output
    dense_above: float | None
    coding: Coding | None
    compress: QSGD | None


class SparseCall(NamedTuple):
    """What a sparse collective has in common with a dense one."""

    op: Any = "sum"
    algorithm: str | None = None
    timeout: float | None = None
    async_op: bool = False
    root: int = 0


class SparseAlgorithm(NamedTuple):
    """One algorithm of sparse vectors: a schedule whose messages carry pairs."""

    kind: str
    name: str
    paper: str
    summary: str
    number: int


class Taken(NamedTuple):
    """What a sparse collective took."""

    algorithm: str
    rounds: int
    bytes: int  # that this rank sent
    messages: int


@lru_cache(maxsize=1)
def sparse_algorithms() -> tuple[SparseAlgorithm, ...]:
    """All algorithms of sparse vectors, of all kinds."""
    found = []
    for number in range(lib.coll_sparse_algorithm_count()):
        out = ffi.new("coll_sparse_algorithm *")
        check(lib.coll_sparse_algorithm_get(number, out))
        words = (text(out.name), text(out.paper), text(out.summary))
        found.append(SparseAlgorithm(KIND_NAMES[out.kind], *words, number))
    return tuple(found)


def _number(kind: str, algorithm: str | None) -> int:
    if algorithm is None or algorithm == "auto":
        return int(lib.COLL_SPARSE_CHOOSE)
    if algorithm == "dense" and kind == "allreduce":
        return int(lib.COLL_SPARSE_AS_DENSE)
    names = {a.name: a.number for a in sparse_algorithms() if a.kind == kind}
    if algorithm not in names:
        more = ["dense"] if kind == "allreduce" else []
        raise InvalidArgumentError(
            f"{kind}: there is no algorithm {algorithm!r} of sparse vectors; these are: "
            + ", ".join([*names, *more])
        )
    return names[algorithm]


def name_of(kind: str, number: int) -> str:
    """Return the name of an algorithm that ran."""
    return "dense" if number == lib.COLL_SPARSE_AS_DENSE else sparse_algorithms()[number].name


def sparse_call(
    comm: Caller,
    kind: str,
    x: Any,
    common: SparseCall,
    refused: dict[str, Any],
    options: SparseOptions,
) -> Any:
    """Run the collective of a kind on a sparse array; return what its caller gets, a new array.

    ``refused``: options of dense arrays, which may not be given.
    """
    for name, value in refused.items():
        if value is not None and value is not False:
            raise InvalidArgumentError(f"{kind}: {name} is not there for sparse arrays")
    _known(kind, options)
    whole = converted(x, f"{kind}: x")
    places, values = whole.vector.operands(kind)
    request = ffi.new("coll_sparse_call *")
    request.size = ffi.sizeof("coll_sparse_call")
    request.kind, request.dtype, request.root = KINDS[kind], values.dtype, common.root
    request.op = op_code(kind, common.op) if kind in ("allreduce", "reduce_scatter") else 0
    request.algorithm = _number(kind, common.algorithm)
    request.output = _word(kind, "output", options, OUTPUTS)
    request.coding = _word(kind, "coding", options, CODINGS)
    request.quantise_bits, request.seed = _quantised(kind, options.get("compress"))
    request.index_dtype, request.entries = places.dtype, places.elements
    request.indices, request.values = places.pointer, values.pointer
    request.length, request.dense_above = (
        whole.vector.length,
        _share(kind, options.get("dense_above")),
    )
    request.timeout = _seconds(kind, common.timeout)
    agreed = ffi.new("char[]", whole.agreed.encode())
    request.agreed = agreed if whole.agreed else ffi.NULL
    alive = (places, values, agreed)

    def run() -> Any:
        place = ffi.new("coll_sparse **")

        def start(native: Any) -> int:
            assert alive
            return int(lib.coll_sparse_run(native, request, place))

        comm._call(f"sparse {kind}", start)
        return _result(comm, kind, ffi.gc(place[0], lib.coll_sparse_free), whole, values)

    return comm._submit(kind, run) if common.async_op else run()


def refuse_sparse_options(kind: str, options: SparseOptions) -> None:
    """Refuse what is there for sparse arrays only."""
    _known(kind, options)
    for name in options:
        raise InvalidArgumentError(f"{kind}: {name} is there for sparse arrays only")


def _word(kind: str, name: str, options: SparseOptions, words: dict[str, int]) -> int:
    word = options.get(name)
    return words[choose_from("auto" if word is None else word, words, f"{kind}: {name}")]


def _quantised(kind: str, compress: Any) -> tuple[int, int]:
    if compress is None:
        return 0, 0
    if not isinstance(compress, QSGD):
        raise InvalidArgumentError(f"{kind}: compress is {compress!r}: pass cl.QSGD(bits)")
    return compress.bits, compress.seed


def _seconds(kind: str, timeout: float | None) -> float:
    return 0.0 if timeout is None else checked_seconds(f"{kind}: timeout", timeout)


def _known(kind: str, options: SparseOptions) -> None:
    for name in options:
        if name not in SparseOptions.__annotations__:
            raise TypeError(f"{kind}() got an unexpected keyword argument {name!r}")


def _share(kind: str, dense_above: float | None) -> float:
    if dense_above is None:
        return 0.0
    if not 0 <= dense_above <= 1:
        raise InvalidArgumentError(f"{kind}: dense_above is {dense_above}: it is a share, 0 to 1")
    return max(float(dense_above), 1e-300)  # 0 lets the library choose


def _result(comm: Caller, kind: str, native: Any, whole: Converted, given: Any) -> Any:
    view = ffi.new("coll_sparse_view *")
    check(lib.coll_sparse_look(native, view))
    comm.last_sparse = Taken(name_of(kind, view.algorithm), view.rounds, view.bytes, view.messages)
    values = _array(native, view.values, view.entries, _dtype(given.dtype))
    same = view.length == whole.vector.length
    if view.dense:
        return whole.back_dense(values) if same else values
    unsigned = np.uint32 if view.index_bytes == 4 else np.uint64
    places = _array(native, view.indices, view.entries, np.dtype(unsigned))
    narrow = view.index_bytes == 4 and view.length <= 1 << 31
    signed = places.view(np.int32) if narrow else places.astype(np.int64)
    result = Sparse(signed, values, view.length)
    return whole.back(result) if same else result


def _dtype(code: int) -> np.dtype[Any]:
    try:
        return numpy_dtype(code)
    except InvalidArgumentError:  # tensors need no ml_dtypes
        return np.dtype(np.uint16 if NAMES[code] == "bfloat16" else np.uint8)


def _array(native: Any, pointer: Any, count: int, dtype: Any) -> Any:
    """Return an array over memory of a result, which it keeps alive."""
    if count == 0:
        return np.empty(0, dtype)
    memory = _Memory(native, int(ffi.cast("uintptr_t", pointer)), count * dtype.itemsize)
    return np.asarray(memory).view(dtype)


class _Memory:
    """Bytes of a native result, for NumPy."""

    def __init__(self, native: Any, address: int, size: int) -> None:
        self._native = native
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }
