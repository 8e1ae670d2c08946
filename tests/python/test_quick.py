# SPDX-License-Identifier: Apache-2.0
"""The short way of plain arrays: the long way's results, objects and errors, whatever it is given.

A call with a time-out takes the long way; so each call here is made with and without one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collectives as cl
from collectives import plain_calls, quick
from collectives.arrays import PAIRS
from tests.python.ranks import on_ranks

P = 3
LONG = {"timeout": 20.0}

# A collective with an input of `rows` rows and what may be its `out`.
Call = Callable[..., Any]
CALLS: dict[str, Call] = {
    "allreduce": lambda c, x, out, **how: c.allreduce(x, out, **how),
    "allreduce max": lambda c, x, out, **how: c.allreduce(x, out, op="max", **how),
    "scan": lambda c, x, out, **how: c.scan(x, out, **how),
    "exscan": lambda c, x, out, **how: c.exscan(x, out, op="prod", **how),
    "reduce": lambda c, x, out, **how: c.reduce(x, out, root=rank_of(c, 1), **how),
    "reduce_scatter": lambda c, x, out, **how: c.reduce_scatter(x, out, **how),
    "allgather": lambda c, x, out, **how: c.allgather(x, out, **how),
    "gather": lambda c, x, out, **how: c.gather(x, out, root=rank_of(c, 2), **how),
    "scatter": lambda c, x, out, **how: scatter(c, x, out, **how),
    "alltoall": lambda c, x, out, **how: c.alltoall(x, out, **how),
    "broadcast": lambda c, x, out, **how: c.broadcast(x, rank_of(c, 2), **how),
}
ROOTED = ("reduce", "gather", "scatter")  # ranks differ in what they look at
NUMBERS = "?bBhHiIlLqQefdFD"
SHAPES = [(P,), (2 * P,), (P, 2), (2 * P, 1, 5), (0,), (P, 0)]


def rank_of(comm: cl.Communicator, rank: int) -> int:
    """Return a rank of a communicator that may have one only."""
    return rank % comm.size


def scatter(comm: cl.Communicator, x: Any, out: Any, **how: Any) -> Any:
    """Hand parts out of rank 1's x; the others say with theirs what they get."""
    root = rank_of(comm, 1)
    return comm.scatter(x if comm.rank == root else x[: len(x) // P].copy(), out, root=root, **how)


@pytest.fixture
def statuses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by what the short way returns: -1 where it has done nothing."""
    seen: list[int] = []
    original = plain_calls.run_plain

    def run_plain(*arguments: Any) -> int:
        seen.append(original(*arguments))
        return seen[-1]

    monkeypatch.setattr(quick, "run_plain", run_plain)
    return seen


def values(comm: cl.Communicator, shape: tuple[int, ...], dtype: Any) -> Any:
    n = int(np.prod(shape))
    return (np.arange(n) % 5 + comm.rank).reshape(shape).astype(dtype)


def outcome(comm: cl.Communicator, call: Call, x: Any, out: Any, **how: Any) -> Any:
    """Return all that a caller sees of a call: result or error, and what became of the arrays."""
    try:
        result = call(comm, x, out, **how)
    except cl.InvalidArgumentError as error:
        return str(error)
    which = "out" if result is out and out is not None else "x" if result is x else "new"
    shown = None if result is None else (result.dtype, result.shape, result.tobytes())
    return which, shown, x.tobytes(), None if out is None else np.asarray(out).tobytes()


def both(comm: cl.Communicator, call: Call, make: Callable[[], tuple[Any, Any]]) -> Any:
    """Make a call by the short and by the long way; they are alike. Return the outcome."""
    short = outcome(comm, call, *make())
    assert short == outcome(comm, call, *make(), **LONG)
    return short


def out_of(call: str, shape: tuple[int, ...], dtype: Any, size: int = P) -> Any:
    rows, *row = shape
    if "gather" in call:
        return np.zeros((size * rows, *row), dtype)
    return np.zeros((rows // size, *row) if "scatter" in call else shape, dtype)


@pytest.mark.parametrize("name", CALLS)
def test_all_shapes(name: str, statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        for shape in SHAPES:
            for out in (None, out_of(name, shape, np.float64)):
                if out is not None and name == "broadcast":
                    continue
                both(
                    comm,
                    CALLS[name],
                    lambda s=shape, o=out: (  # type: ignore[misc]
                        values(comm, s, float), None if o is None else o.copy()
                    ),
                )  # fmt: skip

    on_ranks(P, work)
    assert statuses
    assert set(statuses) == {0}  # none has gone the long way


@pytest.mark.parametrize("name", CALLS)
def test_all_dtypes(name: str, statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        for letter in NUMBERS:
            if letter in "FD" and "max" in name:
                continue
            both(comm, CALLS[name], lambda d=letter: (values(comm, (P,), d), None))  # type: ignore[misc]

    on_ranks(P, work)
    assert set(statuses) == {0}


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_of_another_package(name: str, dtype: str, statuses: list[int]) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def work(comm: cl.Communicator) -> None:
        made = getattr(ml_dtypes, dtype)
        comm.allreduce(np.ones(1, made), timeout=20.0)  # it is met
        both(comm, CALLS[name], lambda: (values(comm, (P,), made), None))
        x, swapped = values(comm, (P,), made), np.zeros(P, np.float32)
        if name == "allreduce":
            assert "out" in both(comm, CALLS[name], lambda: (x.copy(), swapped.copy()))

    on_ranks(P, work)
    assert 0 in statuses
    assert set(statuses) <= ({0, -1} if name == "allreduce" else {0})


def test_pairs(statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        for dtype in PAIRS.values():
            x = np.zeros(2, dtype)
            x["value"], x["index"] = comm.rank, comm.rank + 5
            found = comm.allreduce(x, op="maxloc")
            assert found["value"].tolist() == [P - 1, P - 1]
            assert found["index"].tolist() == [P + 4, P + 4]

    on_ranks(P, work)
    assert set(statuses) == {0}


@pytest.mark.parametrize("rows", ["stacked", "single"])
def test_other_shapes_of_out(rows: str, statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        x, out, names = {
            "stacked": (values(comm, (2, 3), float), np.zeros((P, 2, 3)), ("allgather", "gather")),
            "single": (values(comm, (P, 3), float), np.zeros(3), ("reduce_scatter", "scatter")),
        }[rows]
        short = [both(comm, CALLS[name], lambda: (x.copy(), out.copy())) for name in names]
        assert [type(seen) for seen in short] == [tuple, tuple]
        # A number is gathered to one axis.
        number = comm.allgather(np.array(comm.rank + 0.5))
        assert number.tolist() == [0.5, 1.5, 2.5]

    on_ranks(P, work)
    assert set(statuses) == {0}


def strided(x: Any) -> Any:
    wide = np.zeros((*x.shape, 2), x.dtype)
    wide[..., 1] = x
    return wide[..., 1]


def read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


def unaligned(x: Any) -> Any:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    other = memory[1:].view(x.dtype).reshape(x.shape)
    other[...] = x
    return other


class Own(np.ndarray[Any, Any]):
    """A class of its own."""


NOT_PLAIN: dict[str, Callable[[Any], Any]] = {
    "strided": strided,
    "columns": lambda x: np.asfortranarray(x),
    "read-only": read_only,
    "unaligned": unaligned,
    "of a subclass": lambda x: x.view(Own),
    "of foreign bytes": lambda x: x.astype(">f8"),
    "of objects": lambda x: x.astype(object),
    "of long doubles": lambda x: x.astype(np.longdouble),
    "of dates": lambda x: x.astype(np.int64).view("M8[s]"),
    "without axis": lambda x: x[:1, :1].reshape(()),
    "of a row too many": lambda x: np.concatenate([x, x[:1]]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("what", NOT_PLAIN)
def test_what_is_not_plain(name: str, what: str) -> None:
    def work(comm: cl.Communicator) -> None:
        both(comm, CALLS[name], lambda: (NOT_PLAIN[what](values(comm, (2 * P, 2), float)), None))
        x, out = values(comm, (2 * P, 2), float), out_of(name, (2 * P, 2), float, comm.size)
        if name != "broadcast":
            both(comm, CALLS[name], lambda: (x.copy(), NOT_PLAIN[what](out.copy())))
        both(comm, CALLS[name], lambda: (x.copy(), None))  # the communicator works on

    on_ranks(1 if name in ROOTED else P, work)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "broadcast"])
def test_an_out_that_does_not_fit(name: str) -> None:
    def work(comm: cl.Communicator) -> None:
        right = out_of(name, (2 * P,), float, comm.size)
        wrong = [right.astype(np.float32), np.zeros(len(right) + 1), right.reshape(-1, 1)]
        for out in [*wrong, read_only(right.copy()), [0.0] * len(right)]:
            seen = both(comm, CALLS[name], lambda o=out: (values(comm, (2 * P,), float), o))  # type: ignore[misc]
            assert isinstance(seen, str), seen
        both(comm, CALLS[name], lambda: (values(comm, (2 * P,), float), right.copy()))

    on_ranks(1 if name in ROOTED else P, work)


@pytest.mark.parametrize("root", [True, 1.0, -1, 2, 2**70, None, "0", np.float64(1)])
def test_a_root_that_is_none(root: Any) -> None:
    def work(comm: cl.Communicator) -> None:
        for name in ("reduce", "gather", "scatter", "broadcast"):
            with pytest.raises(cl.InvalidArgumentError, match="root is"):
                getattr(comm, name)(np.zeros(2), root=root)
        one: Any = np.int64(1)
        assert comm.broadcast(np.ones(2), root=one).tolist() == [1, 1]

    on_ranks(2, work)


@pytest.mark.parametrize("op", ["summ", None, ["sum"], 0])
def test_an_operation_that_is_none(op: Any) -> None:
    def work(comm: cl.Communicator) -> None:
        for name in ("allreduce", "reduce", "scan", "exscan", "reduce_scatter"):
            with pytest.raises(cl.InvalidArgumentError, match=r"op .* is unknown"):
                getattr(comm, name)(np.zeros(2), op=op)

    on_ranks(2, work)


def test_the_native_layer_still_refuses() -> None:
    def work(comm: cl.Communicator) -> None:
        memory = np.ones(8)
        for _ in range(2):
            comm.allreduce(memory[:4], memory[4:])
            with pytest.raises(cl.InvalidArgumentError, match="overlap"):
                comm.allreduce(memory[:4], memory[2:6])
            with pytest.raises(cl.InvalidArgumentError, match="overlap"):
                comm.alltoall(memory[:4], memory[2:6])
        with pytest.raises(cl.InvalidArgumentError, match="avg of int32 is not defined"):
            comm.allreduce(np.zeros(2, np.int32), op="avg")
        with pytest.raises(cl.InvalidArgumentError, match="avg is not defined"):
            comm.scan(np.zeros(2), op="avg")
        assert comm.allreduce(np.ones(4)).tolist() == [2.0] * 4

    on_ranks(2, work)


def test_alternating_buffers() -> None:
    def work(comm: cl.Communicator) -> None:
        arrays = [np.zeros(n) for n in (4, 4, 4, 40, 40)]
        for turn in range(60):
            x, out = arrays[turn % 5], arrays[(turn + turn // 5) % 5]
            x[:] = turn + comm.rank
            if len(x) == len(out):
                found = comm.allreduce(x, out)
                assert found is out
                assert (found == 2 * turn + 1).all()
                continue
            assert (comm.scan(x) == (comm.rank + 1) * turn + comm.rank).all()
            both_parts = comm.allgather(np.array([turn + comm.rank]))
            assert both_parts.tolist() == [turn, turn + 1]

    on_ranks(2, work)


def test_in_groups_and_behind_calls_in_flight(statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        one, two = np.ones(2), np.ones(2)
        with comm.group():
            comm.allreduce(one)
            comm.scan(two)
        pending = comm.allreduce(one, async_op=True)
        after = comm.allreduce(one)
        assert pending.wait() is after is one
        assert one.tolist() == [8.0, 8.0]
        assert two.tolist() == [comm.rank + 1.0] * 2

    on_ranks(2, work)
    assert statuses == []


def test_closed() -> None:
    def work(comm: cl.Communicator) -> None:
        comm.barrier()
        comm.close()
        for name in ("allreduce", "reduce", "scan", "allgather", "alltoall", "broadcast"):
            with pytest.raises(cl.ClosedError, match="make a new one"):
                getattr(comm, name)(np.zeros(2))
        with pytest.raises(cl.ClosedError, match="make a new one"):
            comm.barrier()

    on_ranks(2, work)


def test_settles_a_persistent_call(statuses: list[int]) -> None:
    def work(comm: cl.Communicator) -> None:
        x, y = np.ones(2), np.ones(2)
        call = comm.persistent.allreduce(x)
        call.start()
        comm.allreduce(y)
        assert x.tolist() == y.tolist() == [2.0, 2.0]

    on_ranks(2, work)
    assert sorted(statuses) == [-1, -1]  # the long way settles it


def test_warnings_as_errors_stay_behind() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        on_ranks(2, lambda comm: comm.allreduce(np.broadcast_to(np.ones(1), 4)))
