# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments, as in test_bad_input, of rooted calls, exchanges, scans and unequal parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import collectives as cl

Call = Callable[[Any], Any]  # of a communicator; Any, because types would not let it be wrong


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def frozen(*shape: int) -> Any:
    x = ones(*shape)
    x.flags.writeable = False
    return x


BAD: dict[str, tuple[Call, str]] = {
    "gathered counts too few": (
        lambda c: c.gatherv(ones(3), [3]),
        r"gatherv: counts is \[3\]: give 2 lengths, one for each rank",
    ),
    "counts larger than an address": (
        lambda c: c.allgatherv(ones(3), [3, 2**70]),
        "give 2 lengths",
    ),
    "counts larger than memory": (
        lambda c: c.allgatherv(ones(3), [3, 2**62]),
        "the lengths of all parts, .* together, are larger than any memory",
    ),
    "x longer than its count": (
        lambda c: c.gatherv(ones(3), [2, 3]),
        r"gatherv: x has shape \(3,\), but counts\[0\] is 2: the first axis must be as long",
    ),
    "a number has no length": (
        lambda c: c.allgatherv(np.array(1.0)),
        r"allgatherv: x is a number, without an axis: pass x.reshape\(1\)",
    ),
    "a number has no length either": (lambda c: c.gatherv(np.array(1.0)), "pass x.reshape"),
    "x does not scatter": (
        lambda c: c.scatter(ones(3)),
        r"scatter: x of shape \(3,\) does not split into 2 equal parts .* to scatterv",
    ),
    "x does not exchange": (
        lambda c: c.alltoall(ones(3, 2)),
        r"alltoall: x of shape \(3, 2\) does not split into 2 equal parts .* to alltoallv",
    ),
    "a number does not exchange": (lambda c: c.alltoall(np.array(1.0)), "does not split"),
    "x shorter than the parts to scatter": (
        lambda c: c.scatterv(ones(3), [2, 2]),
        r"scatterv: x has shape \(3,\), but the sum of counts is 4",
    ),
    "x longer than the parts to reduce": (
        lambda c: c.reduce_scatterv(ones(5), [2, 2]),
        r"reduce_scatterv: x has shape \(5,\), but the sum of counts is 4",
    ),
    "reduced counts too many": (
        lambda c: c.reduce_scatterv(ones(3), [1, 1, 1]),
        "reduce_scatterv: counts is .*: give 2 lengths",
    ),
    "scattered counts not given": (
        lambda c: c.scatterv(ones(4), None),
        "scatterv: counts is None: give 2 lengths",
    ),
    "x not as long as what is sent": (
        lambda c: c.alltoallv(ones(3), [1, 1]),
        r"alltoallv: x has shape \(3,\), but the sum of send_counts is 2",
    ),
    "nothing said about what is sent": (
        lambda c: c.alltoallv(ones(3), None),
        "alltoallv: send_counts is None: give 2 lengths, .*, or those of all ranks, 2 rows of 2",
    ),
    "send_counts too many": (lambda c: c.alltoallv(ones(3), [1, 1, 1]), "send_counts is .* give 2"),
    "send_counts negative": (
        lambda c: c.alltoallv(ones(0), [1, -1]),
        r"send_counts is \[1, -1\]: -1 is no length: give 2",
    ),
    "send_counts not integers": (
        lambda c: c.alltoallv(ones(3), [1.5, 1.5]),
        r"send_counts is \[1.5, 1.5\]: 1.5 is no length: give 2",
    ),
    "send_counts of a table not integers": (
        lambda c: c.alltoallv(ones(3), [[1, 1], [1, -2]]),
        "-2 is no length: give 2",
    ),
    "send_counts of some ranks only": (
        lambda c: c.alltoallv(ones(2), [[1, 1]]),
        "send_counts is .* 2 rows of 2",
    ),
    "send_counts ragged": (
        lambda c: c.alltoallv(ones(2), [[1, 1], [2]]),
        "send_counts is .* 2 rows of 2",
    ),
    "recv_counts too few": (
        lambda c: c.alltoallv(ones(2), [1, 1], [1]),
        r"alltoallv: recv_counts is \[1\]: give 2 lengths",
    ),
    "recv_counts against the whole table": (
        lambda c: c.alltoallv(ones(2), [[1, 1], [3, 0]], [1, 2]),
        r"recv_counts is \[1, 2\], but column 0 of send_counts is \[1, 3\]",
    ),
    "gathered out too long": (lambda c: c.gather(ones(3), ones(7)), "gather: out has shape"),
    "joined out too short": (
        lambda c: c.gatherv(ones(3), [3, 2], ones(4)),
        r"gatherv: out has shape \(4,\), .* needs shape \(5,\)",
    ),
    "joined out of another width": (
        lambda c: c.allgatherv(ones(3, 2), None, ones(6, 3)),
        r"allgatherv: out has shape \(6, 3\)",
    ),
    "joined out of another dtype": (
        lambda c: c.gatherv(ones(3), None, ones(6, dtype="f8")),
        "gatherv: out has dtype float64, but x has float32",
    ),
    "joined out a number": (lambda c: c.gatherv(ones(3), None, ones()), "gatherv: out has shape"),
    "joined out read-only": (lambda c: c.gatherv(ones(3), None, frozen(6)), "out is read-only"),
    "joined out repeats itself": (
        lambda c: c.gatherv(ones(3), None, np.lib.stride_tricks.as_strided(ones(1), (6,), (0,))),
        "out of shape .* has elements that share their memory",
    ),
    "scattered part too long": (lambda c: c.scatter(ones(4), ones(3)), "scatter: out has shape"),
    "scattered part not its count": (
        lambda c: c.scatterv(ones(4), [1, 3], ones(3)),
        r"scatterv: out has shape \(3,\), .* needs shape \(1,\)",
    ),
    "reduced part not its count": (
        lambda c: c.reduce_scatterv(ones(4), [1, 3], ones(3)),
        "reduce_scatterv: out has shape",
    ),
    "exchanged out of another shape": (
        lambda c: c.alltoall(ones(4), ones(2, 2)),
        "alltoall: out has shape",
    ),
    "exchanged out too short": (
        lambda c: c.alltoallv(ones(2), [[1, 1], [3, 0]], out=ones(3)),
        r"alltoallv: out has shape \(3,\), .* needs shape \(4,\)",
    ),
    "exchanged out of another dtype": (
        lambda c: c.alltoallv(ones(2), [1, 1], out=ones(3, dtype="f8")),
        "alltoallv: out has dtype float64",
    ),
    "scanned out of another shape": (lambda c: c.scan(ones(3), ones(4)), "scan: out has shape"),
    "out before it of another dtype": (
        lambda c: c.exscan(ones(3), ones(3, dtype="f8")),
        "exscan: out has dtype float64",
    ),
    "nothing to scatter": (lambda c: c.scatter(None, ones(1)), "scatter: x is of type NoneType"),
    "no parts to scatter": (
        lambda c: c.scatterv(None, [1, 1], ones(1)),
        "scatterv: x is of type NoneType",
    ),
    "nothing expected of a scatter": (
        lambda c: c.scatter(None, root=1),
        "scatter: rank 0 gives neither x nor out, .* the root, rank 1: pass out, or as x an array",
    ),
    "no part expected of a scatter": (
        lambda c: c.scatterv(None, [1, 1], root=1),
        "scatterv: rank 0 gives neither x nor out",
    ),
    "out for a part read-only": (
        lambda c: c.scatter(None, frozen(2), root=1),
        "scatter: out is read-only",
    ),
    "x is not the part that counts say": (
        lambda c: c.scatterv(ones(4), [2, 2], root=1),
        r"scatterv: x has shape \(4,\), but counts\[0\] is 2",
    ),
    "out is not the part that counts say": (
        lambda c: c.scatterv(None, [2, 2], ones(3), root=1),
        r"scatterv: out has shape \(3,\), but counts\[0\] is 2",
    ),
    "root of a gather": (lambda c: c.gather(ones(3), root=2), "gather: root is 2: give a rank"),
    "root of a gatherv": (lambda c: c.gatherv(ones(3), root=-1), "gatherv: root is -1"),
    "root of a scatter": (lambda c: c.scatter(ones(4), root="a"), "scatter: root is 'a'"),
    "root of a scatterv": (lambda c: c.scatterv(ones(4), [2, 2], root=None), "root is None"),
    "op of a scan": (lambda c: c.scan(ones(3), op="mean"), "scan: op 'mean' is unknown"),
    "op of an exscan": (lambda c: c.exscan(ones(3), op="maxx"), "did you mean 'max'"),
    "op of unequal parts": (
        lambda c: c.reduce_scatterv(ones(2), [1, 1], op=0),
        "reduce_scatterv: op 0 is unknown",
    ),
    "scan of averages": (lambda c: c.scan(ones(3), op="avg"), "scan: avg is not defined"),
    "exscan of averages": (lambda c: c.exscan(ones(3), op="avg"), "exscan: avg is not defined"),
    "algorithm of an exchange": (
        lambda c: c.alltoallv(ones(2), [1, 1], algorithm="ring"),
        "alltoall: algorithm 'ring' is unknown: there are pairwise",
    ),
    "mode of a gather": (lambda c: c.gatherv(ones(3), mode="fast"), "gather: mode 'fast'"),
    "timeout of unequal parts": (
        lambda c: c.allgatherv(ones(3), timeout=0),
        "allgather: timeout is 0",
    ),
}


@pytest.fixture(scope="module")
def pair() -> Iterator[list[cl.Communicator]]:
    comms = cl.local(2, timeout=10)
    yield comms
    for comm in comms:
        comm.close()


@pytest.mark.parametrize("case", BAD)
def test_is_refused_by_one_rank_alone(pair: list[cl.Communicator], case: str) -> None:
    call, words = BAD[case]
    with pytest.raises(cl.InvalidArgumentError, match=words):
        call(pair[0])  # rank 1 is not there: whoever waited for it would hang
    assert pair[0].sequence == 0


def test_overlapping_arrays_are_refused(pair: list[cl.Communicator]) -> None:
    comm, x = pair[0], ones(12)
    calls: list[Call] = [
        lambda c: c.gather(x[1:5], x[:8]),
        lambda c: c.scatter(x[:8], x[2:6]),
        lambda c: c.alltoall(x[:8], x[4:]),
        lambda c: c.scan(x[:8], x[4:]),
        lambda c: c.gatherv(x[1:5], [4, 4], x[:8]),
        lambda c: c.scatterv(x[:8], [4, 4], x[2:6]),
        lambda c: c.reduce_scatterv(x[:8], [4, 4], x[2:6]),
        lambda c: c.alltoallv(x[:8], [[4, 4], [4, 4]], out=x[4:]),
    ]
    for call in calls:
        with pytest.raises(cl.InvalidArgumentError, match="overlap without being in place"):
            call(comm)
    with pytest.raises(cl.InvalidArgumentError, match="overlap without being in place"):
        pair[1].exscan(x[:8], x[4:])  # on rank 0 there is nothing to overlap
    assert comm.sequence == 0


def test_what_is_found_only_with_the_others_must_not_overlap(pair: list[cl.Communicator]) -> None:
    comm, x = pair[0], ones(12)
    calls: list[Call] = [
        lambda c: c.allgatherv(x[:4], None, x[:8]),
        lambda c: c.gatherv(x[2:4], out=x[:8]),
        lambda c: c.alltoallv(x[:8], [4, 4], out=x[:8]),
    ]
    for call in calls:
        with pytest.raises(
            cl.InvalidArgumentError, match=r"overlap.*give the lengths of all ranks"
        ):
            call(comm)
    assert comm.sequence == 0


def test_pair_still_works_after_all_that(pair: list[cl.Communicator], threads: Any) -> None:
    assert threads(pair, lambda comm: comm.allgatherv(ones(1)).tolist()) == [[1, 1]] * 2
    assert threads(pair, lambda comm: comm.scan(ones(1)).tolist()) == [[1], [2]]


def test_every_call_after_close_says_so() -> None:
    comm, x = cl.local(1)[0], ones(1)
    comm.close()
    calls: list[Callable[[], Any]] = [
        lambda: comm.gather(x),
        lambda: comm.gatherv(x),
        lambda: comm.gatherv(x, [1]),
        lambda: comm.allgatherv(x),
        lambda: comm.scatter(x),
        lambda: comm.scatterv(x, [1]),
        lambda: comm.alltoall(x),
        lambda: comm.alltoallv(x, [1]),
        lambda: comm.alltoallv(x, [[1]]),
        lambda: comm.reduce_scatterv(x, [1]),
        lambda: comm.scan(x),
        lambda: comm.exscan(x),
    ]
    for call in calls:
        with pytest.raises(cl.ClosedError, match="rank 0 has closed this communicator"):
            call()
