# SPDX-License-Identifier: Apache-2.0
"""Each method of a process group, by all of its forms: programs that check their own results."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch
from torch import distributed as dist

import collectives as cl

LONG = timedelta(seconds=20)


def me() -> tuple[Any, int, int]:
    return dist.group.WORLD, dist.get_rank(), dist.get_world_size()


def equal(found: torch.Tensor, wanted: Any) -> None:
    aim = torch.as_tensor(wanted, dtype=found.dtype).reshape(found.shape)
    assert torch.equal(found, aim), (found, aim)


def allreduce() -> None:
    """Of one tensor, a list of one, with options, words, and a time-out."""
    group, rank, size = me()
    total = size * (size + 1) / 2
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.MAX
    for arguments, words, aim in (
        (([torch.full((3,), rank + 1.0)],), {}, total),
        (([torch.full((3,), rank + 1.0)], options), {}, size),
        (([torch.full((3,), rank + 1.0)],), {"opts": options}, size),
        ((torch.full((3,), rank + 1.0),), {"op": dist.ReduceOp.MIN}, 1),
        (([torch.full((3,), rank + 1.0)], dist.ReduceOp.MAX), {"timeout": LONG}, size),
    ):
        x = arguments[0] if isinstance(arguments[0], torch.Tensor) else arguments[0][0]
        group.allreduce(*arguments, **words).wait()
        equal(x, [aim] * 3)
    for op, aim in (("SUM", total), ("AVG", total / size), ("MIN", 1), ("MAX", size)):
        x = torch.full((3,), rank + 1.0)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        equal(x, [aim] * 3)
    for op, aim in (("BOR", (1 << size) - 1), ("BAND", 0), ("BXOR", (1 << size) - 1)):
        bits = torch.full((3,), 1 << rank)
        dist.all_reduce(bits, getattr(dist.ReduceOp, op))
        equal(bits, [aim] * 3)


def coalesced() -> None:
    """Several tensors in a call, and in torch's coalescing block."""
    group, rank, size = me()
    a, b = torch.ones(2), torch.ones(3)
    group.allreduce_coalesced([a, b]).wait()
    equal(torch.cat([a, b]), [size] * 5)
    with dist._coalescing_manager():
        dist.all_reduce(a)
        dist.all_reduce(b)
    equal(torch.cat([a, b]), [size * size] * 5)
    outs = [torch.empty(size), torch.empty(2 * size)]
    xs = [torch.full((1,), float(rank)), torch.full((2,), float(rank))]
    for name in ("all_gather_single_coalesced", "allgather_into_tensor_coalesced"):
        getattr(group, name)(outs, xs).wait()
        equal(outs[0], range(size))
        equal(outs[1], [r for r in range(size) for _ in range(2)])
    for name in ("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"):
        parts = [torch.empty(1), torch.empty(2)]
        getattr(group, name)(parts, [torch.ones(size), torch.ones(2 * size)]).wait()
        equal(torch.cat(parts), [size] * 3)
    lists = [[torch.empty(1), torch.empty(2)] for _ in range(size)]
    group.allgather_coalesced(lists, xs).wait()
    for other in range(size):
        equal(torch.cat(lists[other]), [other] * 3)


def broadcast_and_reduce() -> None:
    """By position, by word, by options."""
    group, rank, size = me()
    options = dist.BroadcastOptions()
    options.rootRank = 1
    for form in range(3):
        x = torch.full((3,), float(rank))
        if form == 0:
            group.broadcast([x], options).wait()
        elif form == 1:
            group.broadcast(x, 1).wait()
        else:
            group.broadcast(x, root=1, timeout=LONG).wait()
        equal(x, [1.0] * 3)
    for form in range(2):
        x = torch.ones(3)
        if form == 0:
            group.reduce(x, 1, dist.ReduceOp.SUM).wait()
        else:
            dist.reduce(x, 1)
        if rank == 1:
            equal(x, [size] * 3)


def gathers() -> None:
    """Lists, one tensor, tensors that differ in size, old names and new ones."""
    group, rank, size = me()
    for sizes in ([2] * size, list(range(1, size + 1))):
        outs = [torch.empty(n) for n in sizes]
        x = torch.full((sizes[rank],), float(rank))
        for form in range(3):
            for out in outs:
                out.fill_(-1)
            if form == 0:
                dist.all_gather(outs, x)
            elif form == 1:
                group.allgather([outs], [x]).wait()
            else:
                group.allgather(outs, x, timeout=LONG).wait()
            for other, out in enumerate(outs):
                equal(out, [other] * sizes[other])
        mine = [torch.empty(n) for n in sizes] if rank == 0 else None
        if len(set(sizes)) == 1 or dist.get_backend() == "collectives":
            dist.gather(x, mine, 0)
            for other, out in enumerate(mine or []):
                equal(out, [other] * sizes[other])


def gathers_into_one() -> None:
    """One tensor, of several shapes, by old names and new ones."""
    group, rank, size = me()
    for shape in ((2 * size,), (size, 2)):
        for name in ("all_gather_single", "_allgather_base"):
            whole = torch.empty(shape)
            getattr(group, name)(whole, torch.full((2,), float(rank))).wait()
            equal(whole.view(-1), [r for r in range(size) for _ in range(2)])
    strided = torch.zeros(size, 4)[:, ::2]
    dist.all_gather_into_tensor(strided, torch.full((2,), float(rank)))
    equal(strided.reshape(-1), [r for r in range(size) for _ in range(2)])


def scatters() -> None:
    """Lists of equal parts and others, one tensor, old names and new ones."""
    group, rank, size = me()
    for sizes in ([2] * size, list(range(1, size + 1))):
        out = torch.empty(sizes[rank])
        dist.reduce_scatter(out, [torch.full((n,), float(r)) for r, n in enumerate(sizes)])
        equal(out, [size * rank] * sizes[rank])
    for name in ("reduce_scatter_single", "_reduce_scatter_base"):
        out = torch.empty(2)
        getattr(group, name)(out, torch.arange(2.0 * size)).wait()
        equal(out, [size * 2 * rank, size * (2 * rank + 1)])
    out = torch.empty(2)
    parts = [torch.full((2,), float(r)) for r in range(size)] if rank == 1 else None
    dist.scatter(out, parts, 1)
    equal(out, [rank] * 2)


def exchanges() -> None:
    """all_to_all of lists and of one tensor, of equal parts and others."""
    group, rank, size = me()
    out = torch.empty(size)
    dist.all_to_all_single(out, torch.arange(float(size)) + 10 * rank)
    equal(out, [10 * other + rank for other in range(size)])
    rows = list(range(1, size + 1))
    for name in ("all_to_all_single", "alltoall_base"):
        out = torch.empty(size * (rank + 1), 2)
        x = torch.full((sum(rows), 2), float(rank))
        getattr(group, name)(out, x, [rank + 1] * size, rows).wait()
        equal(out[:, 0], [other for other in range(size) for _ in range(rank + 1)])
    outs = [torch.empty(rank + 1) for _ in range(size)]
    group.alltoall(outs, [torch.full((n,), float(rank)) for n in rows]).wait()
    for other, one in enumerate(outs):
        equal(one, [other] * (rank + 1))


def messages() -> None:
    """send, recv, from any rank, both ways at once, and while a collective is in flight."""
    group, rank, size = me()
    after, before = (rank + 1) % size, (rank - 1) % size
    x, got = torch.full((3,), float(rank)), torch.empty(3)
    for batch in range(3):
        calls = [
            dist.P2POp(dist.isend, x + batch, after, tag=batch),
            dist.P2POp(dist.irecv, got, before, tag=batch),
        ]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        equal(got, [before + batch] * 3)
    if rank == 0:
        found = set()
        for _ in range(size - 1):
            found.add(dist.recv(got))
        assert found == set(range(1, size))
        works = [group.recv_anysource([torch.empty(3)], 7) for _ in range(size - 1)]
        for work in works:
            work.wait()
        assert {work._source_rank() for work in works} == set(range(1, size))
    else:
        dist.send(x, 0)
        dist.send(x, 0, tag=7)
    # A collective in flight holds no message up, whichever rank comes first.
    big = torch.ones(1 << 20)
    if rank == 0:
        work = dist.all_reduce(big, async_op=True)
        dist.send(x, 1)
        work.wait()
    else:
        if rank == 1:
            dist.recv(got, 0)
        dist.all_reduce(big)
    assert bool((big == size).all())


def objects() -> None:
    """Collectives of Python objects."""
    _, rank, size = me()
    found: list[Any] = [None] * size
    dist.all_gather_object(found, {"rank": rank, "more": "x" * rank})
    assert [one["rank"] for one in found] == list(range(size))
    shared = [("of", "rank 0")] if rank == 0 else [None]
    dist.broadcast_object_list(shared, 0)
    assert shared == [("of", "rank 0")]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, list(range(size)) if rank == 0 else None, 0)
    assert mine == [rank]
    gathered: list[Any] | None = [None] * size if rank == 0 else None
    dist.gather_object(rank, gathered, 0)
    assert gathered in (None, list(range(size)))
    come: list[Any] = [None, None]
    if rank == 0:
        dist.send_object_list([{"a": 1}, "b"], 1)
    elif rank == 1:
        dist.recv_object_list(come, 0)
        assert come == [{"a": 1}, "b"]


def groups() -> None:
    """Groups of some ranks, named groups, and what a group says of itself."""
    group, rank, size = me()
    pair = dist.new_group([0, size - 1], group_desc="the ends")
    if rank in (0, size - 1):
        x = torch.ones(2)
        dist.all_reduce(x, group=pair)
        equal(x, [2, 2])
        assert (pair.size(), pair.group_desc) == (2, "the ends")
        dist.destroy_process_group(pair)
        among = dist.new_group([0, size - 1], use_local_synchronization=True)  # of two alone
        dist.all_reduce(x, group=among)
        equal(x, [4, 4])
        dist.destroy_process_group(among)
    assert (group.rank(), group.size(), group.name()) == (rank, size, "collectives")
    assert dist.get_backend() == "collectives"
    before = group._get_sequence_number_for_group()
    dist.barrier()
    assert group._get_sequence_number_for_group() == before + 1
    import collectives.torch as ours

    assert ours.communicator_of().size == size


def splits() -> None:
    """Groups that the method of a group makes, of ranks that call it together."""
    group, rank, size = me()
    for turn in range(2):
        mine = [r for r in range(size) if r % 2 == rank % 2]
        part = group.split_group(mine, group_desc="every other")
        assert part is not None
        x = torch.full((3,), rank + turn)
        part.allreduce([x]).wait()
        equal(x, [sum(mine) + len(mine) * turn] * 3)
        assert (part.rank(), part.size()) == (mine.index(rank), len(mine))
        assert part.group_desc == "every other"
        part.shutdown()
    others = [r for r in range(size) if r != rank]
    assert group.split_group(others) is None
    for wrong in ([], [0, 0], [size], [-1]):
        with pytest.raises(cl.InvalidArgumentError, match="give ranks of this group"):
            group.split_group(wrong)


def roots() -> None:
    """Without options the root is rank 0, by the methods of a group."""
    group, rank, size = me()
    parts = [torch.empty(2) for _ in range(size)]
    group.gather([parts] if rank == 0 else [], [torch.full((2,), float(rank))]).wait()
    if rank == 0:
        equal(torch.stack(parts)[:, 0], list(range(size)))
    x = torch.empty(2)
    group.scatter(
        [x], [[torch.full((2,), r + 5.0) for r in range(size)]] if rank == 0 else []
    ).wait()
    equal(x, [rank + 5] * 2)
    y = torch.full((2,), rank + 1.0)
    group.broadcast([y]).wait()
    equal(y, [1, 1])
    group.reduce([y]).wait()
    if rank == 0:
        equal(y, [size, size])


def functional_gradients() -> None:
    """Torch marks what it gets as part of a gradient while the call is still in flight."""
    _, rank, size = me()
    from torch.distributed import _functional_collectives as functional

    for _ in range(30):
        x = torch.full((size, 2), rank + 1.0, requires_grad=True)
        whole = functional.all_gather_tensor_autograd(x, 0, dist.group.WORLD)
        whole.square().sum().backward()
        equal(x.grad, torch.full((size, 2), 2.0 * size * (rank + 1)))
        part = functional.reduce_scatter_tensor_autograd(x, "sum", 0, dist.group.WORLD)
        equal(part.detach(), torch.full((1, 2), size * (size + 1) / 2))
        equal(
            functional.all_reduce(x, "sum", dist.group.WORLD), [[size * (size + 1) / 2] * 2] * size
        )


def works() -> None:
    """What a call in flight says, and its future."""
    _, _, size = me()
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2)
    equal(doubled.wait(), [2 * size] * 4)
    assert (work.wait(), work.is_completed(), work.is_success()) == (True, True, True)
    assert work.exception() is None
    assert work.result()[0] is x

    def chained(done: Any) -> Any:
        dist.all_reduce(done.value()[0])  # waits for another one
        return done.value()[0]

    futures = [dist.all_reduce(torch.ones(2), async_op=True).get_future() for _ in range(3)]
    for future in [future.then(chained) for future in futures]:
        equal(future.wait(), [size * size] * 2)


def monitored() -> None:
    """The barrier that names who is missing: ours, the group's own, and of ranks outside it."""
    import collectives.torch as ours

    group, rank, _ = me()
    ours.monitored_barrier(timeout=LONG)
    group.monitored_barrier()
    group.monitored_barrier(LONG, wait_all_ranks=True)
    ours.monitored_barrier(dist.new_group([0]), 5.0)
    if rank:  # torch's gives up on seconds as well
        dist.barrier(async_op=True).wait(LONG)
    else:
        dist.barrier(async_op=True).wait(5.0)
