# SPDX-License-Identifier: Apache-2.0
"""Collectives of sparse vectors, from Python to the native layer."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np

from collectives._ffi import check, ffi, lib
from collectives.arrays import Array
from collectives.compression.codec import Compressor
from collectives.errors import InvalidArgumentError
from collectives.names import (
    KINDS,
    Reproducible,
    checked_seconds,
    choose_from,
    how_reproducible,
    integer,
    op_code,
    rest_of,
)
from collectives.sparse.algorithms import algorithm_number, name_of
from collectives.sparse.compression import QSGD
from collectives.sparse.conversion import Converted, Shape, converted, result_dtype
from collectives.sparse.vector import Sparse

if TYPE_CHECKING:
    from collectives.caller import Caller
    from collectives.last import LastCall

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
_REDUCING = ("allreduce", "reduce_scatter")
_MOVING_ROWS = ("reduce_scatter", "allgather")


class SparseOptions(TypedDict, total=False):
    """What is there for sparse arrays only; the same on all ranks.

    ``output``: "sparse", "dense", or that which takes fewer bytes ("auto"). ``dense_above``: a part
    of the vector travels with all its values where more than this share of them is there.
    ``coding``: how indices travel, "raw", "coded" in the fewest bytes, "quick" in fewer at hardly
    any time; "auto" is raw where all ranks share memory, else coded. ``compress``: an allreduce's
    result is rounded to a few levels (of dense arrays another compressor says what travels).
    ``largest``: of an allreduce's sum only so many elements, those that are largest in magnitude,
    exactly; fewer where fewer are not zero.
    """

    output: Output
    dense_above: float | None
    coding: Coding | None
    compress: QSGD | Compressor | None
    largest: int | None


class SparseCall(NamedTuple):
    """What a sparse collective has in common with a dense one."""

    op: Any = "sum"
    algorithm: str | None = None
    timeout: float | None = None
    async_op: bool = False
    root: int = 0
    reproducible: Reproducible = False


class SparseTaken(NamedTuple):
    """What a call took; its words are made when somebody asks."""

    kind: str
    view: Any  # coll_sparse_view
    seconds: float
    sequence: int
    dtype: int

    def told(self) -> LastCall:
        """Return what ``comm.last`` says of it."""
        from collectives.last import LastCall

        view = self.view
        dense = view.algorithm == lib.COLL_SPARSE_AS_DENSE
        return LastCall(
            kind=f"sparse {self.kind}",
            algorithm=name_of(view.algorithm),
            mode="messages",
            nbytes=int(view.length * result_dtype(self.dtype).itemsize if dense else view.bytes),
            seconds=self.seconds,
            busbw=math.nan,
            waiting=math.nan,
            sequence=self.sequence,
            rounds=int(view.rounds),
            messages=int(view.messages),
        )


class Ready(NamedTuple):
    """A call that can be made."""

    request: Any  # coll_sparse_call
    whole: Converted
    indices: Array
    dtype: int  # of the values
    kept: Any  # what the request points to


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
    check_names(kind, options)
    request = ffi.new("coll_sparse_call *")
    request.size = ffi.sizeof("coll_sparse_call")
    request.kind, request.root = KINDS[kind], common.root
    request.op = op_code(kind, common.op) if kind in _REDUCING else 0
    request.algorithm = algorithm_number(kind, common.algorithm)
    request.output = _word(kind, "output", options, OUTPUTS)
    request.coding = _word(kind, "coding", options, CODINGS)
    request.quantise_bits, request.seed = _quantised(kind, options.get("compress"))
    request.largest = _checked_largest(kind, options.get("largest"))
    request.dense_above = _share(kind, options.get("dense_above"))
    request.reproducible = how_reproducible(kind, common.reproducible)
    timeout = common.timeout
    seconds = 0.0 if timeout is None else checked_seconds(f"{kind}: timeout", timeout)
    request.timeout, request.of_timeout = seconds, rest_of(seconds)
    ready = _ready(comm, kind, request, x, "")
    later = common.async_op or not comm._plain
    if comm._collected() is not None and (kind != "broadcast" or comm.rank == common.root):
        _check_indices(kind, ready)  # before the calls of the group that are made before it

    def run(words: str = "") -> Any:
        # Calls before this one may have written to what was converted or packed.
        again = _ready(comm, kind, request, x, words) if later else ready
        return made(comm, kind, again)

    return comm._alone(f"sparse {kind}", run, common.async_op)


def refuse_sparse_options(kind: str, options: SparseOptions) -> None:
    """Refuse what is there for sparse arrays only."""
    check_names(kind, options)
    for name, value in options.items():
        if value is not None:
            raise InvalidArgumentError(f"{kind}: {name} is there for sparse arrays only")


def check_names(kind: str, options: SparseOptions) -> None:
    """Raise TypeError for an option that there is not."""
    for name in options:
        if name not in SparseOptions.__annotations__:
            raise TypeError(f"{kind}() got an unexpected keyword argument {name!r}")


def _word(kind: str, name: str, options: SparseOptions, words: dict[str, int]) -> int:
    word = options.get(name)
    return words[choose_from("auto" if word is None else word, words, f"{kind}: {name}")]


def _quantised(kind: str, compress: Any) -> tuple[int, int]:
    if compress is None:
        return 0, 0
    if not isinstance(compress, QSGD):
        raise InvalidArgumentError(f"{kind}: compress is {compress!r}: pass cl.QSGD(bits)")
    return compress.bits, compress.seed


def _checked_largest(kind: str, largest: Any) -> int:
    if largest is None:
        return 0
    wanted = integer(largest)
    if wanted is None or not 0 < wanted < 1 << 64:
        raise InvalidArgumentError(
            f"{kind}: largest is {largest!r}: it is how many elements of the sum are wanted, "
            "1 or more"
        )
    return wanted


def _share(kind: str, dense_above: float | None) -> float:
    if dense_above is None:
        return 0.0
    try:
        share = float(dense_above)
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise InvalidArgumentError(f"{kind}: dense_above is {dense_above!r}: it is a share, 0 to 1")
    return max(share, 1e-300)  # 0 lets the library choose


def _ready(comm: Caller, kind: str, request: Any, x: Any, words: str) -> Ready:
    """Point a request to the parts of ``x``. All ranks must agree on ``words``."""
    whole = converted(x, f"{kind}: x")
    if kind in _MOVING_ROWS:
        _check_rows(kind, whole, comm.size)
    places, values = whole.vector.operands(kind)
    request.dtype, request.values = values.dtype, values.pointer
    request.index_dtype, request.indices = places.dtype, places.pointer
    request.entries, request.length = places.elements, whole.vector.length
    said = " as ".join(filter(None, (whole.agreed, words)))
    agreed = ffi.new("char[]", said.encode("utf-8", "replace"))
    request.agreed = agreed if said else ffi.NULL
    return Ready(request, whole, places.array, values.dtype, (places, values, agreed))


def _check_indices(kind: str, ready: Ready) -> None:
    index, length = np.asarray(ready.indices), ready.whole.vector.length
    if index.size == 0 or (index.min() >= 0 and index.max() < length):
        return
    at = int(np.argmax((index < 0) | (index >= length)))
    raise InvalidArgumentError(
        f"sparse {kind}: index {index[at]} (at {at}) is none of a vector of {length} elements"
    )


def _check_rows(kind: str, whole: Converted, ranks: int) -> None:
    if not whole.by_rows:
        raise InvalidArgumentError(
            f"{kind}: x is a csc array, whose columns lie one after another, while parts are "
            "rows: pass x.tocsr()"
        )
    if not whole.shape:
        raise InvalidArgumentError(f"{kind}: x has no axis: parts are along the first one")
    rows = whole.shape[0]
    if kind == "reduce_scatter" and rows % ranks:
        what = "elements" if len(whole.shape) == 1 else "rows"
        raise InvalidArgumentError(
            f"reduce_scatter: the {rows} {what} of x are no {ranks} equal parts"
        )


def made(comm: Caller, kind: str, ready: Ready) -> Any:
    """Make the call now; return its result."""
    place = ffi.new("coll_sparse **")

    def start(native: Any) -> int:
        return int(lib.coll_sparse_run(native, ready.request, place))

    begin = time.perf_counter()
    comm._handle.call(f"sparse {kind}", start)
    seconds = time.perf_counter() - begin
    native, view = ffi.gc(place[0], lib.coll_sparse_free), ffi.new("coll_sparse_view *")
    check(lib.coll_sparse_look(native, view))
    comm._handle.last_taken = SparseTaken(kind, view, seconds, comm._handle.sequence, ready.dtype)
    return _result(native, view, ready, _result_shape(kind, ready.whole.shape, comm.size))


def _result_shape(kind: str, shape: Shape, ranks: int) -> Shape:
    if kind == "reduce_scatter":
        return (shape[0] // ranks, *shape[1:])
    return (shape[0] * ranks, *shape[1:]) if kind == "allgather" else shape


def _result(native: Any, view: Any, ready: Ready, shape: Shape) -> Any:
    values = _array(native, view.values, view.entries, result_dtype(ready.dtype))
    if view.dense:
        return ready.whole.back_dense(values, shape)
    unsigned = np.uint32 if view.index_bytes == 4 else np.uint64
    places = _array(native, view.indices, view.entries, np.dtype(unsigned))
    narrow = view.index_bytes == 4 and view.length <= 1 << 31
    signed = places.view(np.int32) if narrow else places.astype(np.int64)
    return ready.whole.back(Sparse.of_result(signed, values, view.length), shape)


def _array(native: Any, pointer: Any, count: int, dtype: Any) -> Any:
    """Return an array over memory of a result, which it keeps alive."""
    if count == 0:
        return np.empty(0, dtype)
    owned = ffi.gc(ffi.cast("char *", pointer), lambda _, kept=native: None)
    return np.frombuffer(ffi.buffer(owned, count * dtype.itemsize), dtype)
