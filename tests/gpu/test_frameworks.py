# SPDX-License-Identifier: Apache-2.0
"""Arrays of CuPy and torch on their own streams, in every collective."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import collectives as cl
from bench.gpu.team import Team
from bench.gpu.yardsticks import Yardsticks
from tests.gpu.owners import LONG, NAMES, Owner, owner

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]

RANKS = 3
TOTAL = RANKS * (RANKS + 1) // 2  # of rank + 1


@pytest.fixture(params=NAMES)
def framework(request: pytest.FixtureRequest, yard: Yardsticks) -> Owner:
    """CuPy, then torch."""
    return owner(request.param)


def test_calls_come_after_and_before_what_is_on_the_current_stream(framework: Owner) -> None:
    def work(comm: cl.Communicator) -> list[Any]:
        stream = framework.stream()
        with framework.on(stream):
            room, x = framework.empty(LONG, "float32"), framework.empty(1000, "float32")
            found = []
            for algorithm in (None, "ring"):
                framework.fill(x, -1)
                framework.dally(room)
                framework.fill(x, comm.rank + 1)
                assert comm.allreduce(x, algorithm=algorithm) is x
                found.append(framework.host(x * 2))
            return found

    with Team(RANKS) as team:
        for found in team.run(work):
            assert all((x == 2 * TOTAL).all() for x in found), found


def test_every_collective(framework: Owner) -> None:
    def work(comm: cl.Communicator) -> list[str]:
        rank, wrong = comm.rank, []
        with framework.on(framework.stream()):
            part = framework.array(np.array([rank, rank + 10], "i4"))
            whole = comm.allgather(part)
            results: dict[str, tuple[Any, list[Any]]] = {
                "allgather": (whole, [v for r in range(RANKS) for v in (r, r + 10)])
            }
            summed = comm.reduce_scatter(whole)
            results["reduce_scatter"] = (summed, [rank * RANKS, (rank + 10) * RANKS])
            swapped = comm.alltoall(comm.allgather(part))
            results["alltoall"] = (swapped, [rank, rank + 10] * RANKS)
            sent = framework.array(np.full(5, rank, "f8"))
            results["broadcast"] = (comm.broadcast(sent, root=1), [1.0] * 5)
            running = framework.array(np.full(3, rank + 1.0))
            results["scan"] = (comm.scan(running), [(rank + 1) * (rank + 2) / 2] * 3)
            own = framework.array(np.full(4, rank + 1.0))
            reduced = comm.reduce(own, root=2)
            result, each = (reduced, TOTAL) if rank == 2 else (own, rank + 1)
            results["reduce"] = (result, [each] * 4)
            gathered = comm.gather(part, root=1)
            expected = framework.host(whole).tolist()
            results["gather"] = (gathered if rank == 1 else whole, expected)
            place = framework.empty(2, "int32")
            comm.scatter(whole if rank == 0 else place, place if rank == 0 else None, root=0)
            results["scatter"] = (place, [rank, rank + 10])
            counts = [1, 4, 2]
            mine = framework.array(np.full(counts[rank], rank, "f4"))
            together = framework.empty(sum(counts), "float32")
            comm.allgatherv(mine, out=together)
            results["allgatherv"] = (together, np.repeat(np.arange(3.0), counts).tolist())
            comm.barrier()
            for name, (found, wanted) in results.items():
                seen = framework.host(found).tolist()
                if seen != wanted:
                    wrong.append(f"rank {rank}, {name}: {seen} for {wanted}")
        return wrong

    with Team(RANKS) as team:
        assert team.run(work) == [[]] * RANKS


DTYPES = ("float16", "bfloat16", "float64", "int8", "uint8", "int64", "complex64",
          "float8_e4m3fn", "float8_e5m2")  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, framework: Owner) -> None:
    if not framework.is_torch and dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        pytest.skip("CuPy's arrays of this dtype are another matter")
    bits = np.dtype(getattr(ml_dtypes, dtype, dtype))

    def work(comm: cl.Communicator) -> Any:
        with framework.on(framework.stream()):
            x = framework.empty(77, dtype)
            framework.fill(x, comm.rank + 1)
            comm.allreduce(x)
            shown = x.view(framework.module.uint8) if framework.is_torch else x
            return framework.host(shown)

    wanted = np.full(77, TOTAL).astype(bits)
    with Team(RANKS) as team:
        for found in team.run(work):
            assert (np.asarray(found).view(bits).astype("c16") == wanted.astype("c16")).all()


def test_calls_in_flight_persistent_ones_and_groups(framework: Owner) -> None:
    def work(comm: cl.Communicator) -> None:
        with framework.on(framework.stream()):
            room = framework.empty(LONG, "float32")
            xs = [framework.empty(n, "float32") for n in (1, 1000, 300_000)]
            framework.dally(room)
            for x in xs:
                framework.fill(x, comm.rank + 1)
            handles = [comm.allreduce(x, async_op=True) for x in xs]
            for handle, x in zip(handles, xs, strict=True):
                assert handle.wait() is x
                assert (framework.host(x) == TOTAL).all()
            with comm.group():
                for x in xs:
                    comm.allreduce(x)
            for x in xs:
                assert (framework.host(x) == TOTAL * RANKS).all()
            call = comm.persistent.allreduce(xs[1])
            for times in (2, 3):
                call()
                assert (framework.host(xs[1]) == TOTAL * RANKS**times).all()

    with Team(RANKS) as team:
        team.run(work)


def test_memory_that_the_communicator_makes(framework: Owner) -> None:
    def work(comm: cl.Communicator) -> None:
        with framework.on(framework.stream()):
            kind = framework.module.float32
            x = comm.empty((3, 50), kind, device="cuda")
            assert isinstance(x, framework.module.Tensor if framework.is_torch
                              else framework.module.ndarray)  # fmt: skip
            assert comm.is_symmetric(x)
            framework.fill(x, comm.rank)
            comm.allreduce(x)
            assert (framework.host(x) == 3).all()

    with Team(RANKS) as team:
        team.run(work)


def test_memory_of_ours_is_taken_by_dlpack(framework: Owner) -> None:
    def work(comm: cl.Communicator) -> None:
        with framework.on(framework.stream()):
            ours = cl.DeviceArray((3, 50), np.dtype("float32"), 0)
            x = framework.module.from_dlpack(ours)
            del ours
            framework.fill(x, comm.rank)
            comm.allreduce(x)
            assert (framework.host(x) == 3).all()

    with Team(RANKS) as team:
        team.run(work)


class Exported:
    """What has DLPack alone."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**options)


def test_dlpack_orders_the_streams(framework: Owner) -> None:
    """The owner's stream is another than that of the call, which comes after it all the same."""

    def work(comm: cl.Communicator) -> None:
        mine, other = framework.stream(), framework.stream()
        with framework.on(mine):
            room, x = framework.empty(LONG, "float32"), framework.empty(1000, "float32")
            framework.dally(room)
            framework.fill(x, comm.rank + 1)
            with cl.on_stream(other):
                comm.allreduce(Exported(x))
        with framework.on(other):
            assert (framework.host(x) == TOTAL).all()

    with Team(RANKS) as team:
        team.run(work)


def test_a_captured_call_is_replayed(framework: Owner) -> None:
    stream = framework.stream()
    with framework.on(stream):
        xs = [framework.empty(5000, "float32") for _ in range(RANKS)]
        outs = [framework.empty(5000, "float32") for _ in range(RANKS)]
    stream.synchronize()
    with Team(RANKS) as team:

        def work(comm: cl.Communicator) -> None:
            with cl.on_stream(stream):
                comm.allreduce(xs[comm.rank], outs[comm.rank])

        team.run(work)  # takes the memory that it needs
        replay = framework.captured(stream, lambda: (team.run(work), None)[1])
        for turn in range(3):
            with framework.on(stream):
                for rank, x in enumerate(xs):
                    framework.fill(x, turn + rank)
            replay()
            with framework.on(stream):
                for out in outs:
                    assert (framework.host(out) == RANKS * turn + 3).all()


def test_strided_memory_is_refused(framework: Owner) -> None:
    with Team(1) as team:
        x = framework.array(np.zeros((4, 4), "f4"))[:, ::2]
        [error] = team.outcomes(lambda comm: comm.allreduce(x))
        assert isinstance(error, cl.InvalidArgumentError)
        assert "strided memory of a GPU" in str(error)


def test_arrays_of_the_host_go_the_hosts_way_beside_those_of_a_gpu(framework: Owner) -> None:
    def work(comm: cl.Communicator) -> None:
        x, y = framework.array(np.ones(9, "f4")), np.ones(9, "f4")
        comm.allreduce(x)
        comm.allreduce(y)
        assert (framework.host(x) == y).all()

    with Team(RANKS) as team:
        team.run(work)
